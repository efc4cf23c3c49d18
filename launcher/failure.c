/* failure.c - reason, hang, stack, last lines: to the terminal and to the store */
#include "launcher/failure.h"

#include <stdio.h>
#include <string.h>

#include "launcher/hang.h"
#include "launcher/stack.h"

static void tell_stack(const struct sl_failure *f, int rank)
{
    char stack[8192], *line, *next;

    if (!f->team || !sl_team_stack(f->team, rank, stack, sizeof stack)) {
        if (!sl_local_lives(f->local, rank))
            return;
        sl_stack_read(sl_local_pid(f->local, rank), f->alive, f->user, stack, sizeof stack);
    }
    if (!stack[0])
        return;
    if (f->rec)
        sl_recorder_event(f->rec, rank, "stack", "%s", stack);
    sl_term_printf(f->term, "shardlaunch: rank %d when it hung:", rank);
    for (line = stack; *line; line = next) {
        next = line + strcspn(line, "\n");
        sl_term_line(f->term, line, (size_t)(next - line));
        next += *next == '\n';
    }
}

static void tell_hang(const struct sl_failure *f)
{
    struct sl_supervise *sup = f->sup;
    struct sl_hang_rank look[SL_MAX_RANKS];
    size_t n = strlen(sup->reason);
    int who = sup->culprit;

    if (f->team)
        sl_team_look(f->team, look);
    sl_hang_look(sl_local_ctl(f->local), 0, f->mine, f->alive, f->user, look);
    if (who >= 0)
        snprintf(sup->reason + n, sizeof sup->reason - n, "; %s", look[who].verdict);
    sl_term_printf(f->term, "shardlaunch: %s", sup->reason);
    for (int r = 0; r < f->ranks; r++) {
        if (f->rec)
            sl_recorder_event(f->rec, r, "hang", "%s: %s", look[r].text, look[r].verdict);
        sl_term_printf(f->term, "shardlaunch: %s: %s%s", look[r].text, look[r].verdict,
                       r == who ? "  <- behind" : "");
    }
    if (who >= 0)
        tell_stack(f, who);
}

void sl_failure_tell(const struct sl_failure *f)
{
    int rank = f->sup->culprit;
    const char *line;

    if (f->sup->status == 6 && f->local)
        tell_hang(f);
    else
        sl_term_printf(f->term, "shardlaunch: %s", f->sup->reason);
    if (f->sup->hint[0])
        sl_term_printf(f->term, "shardlaunch: %s", f->sup->hint);
    if (rank < 0)
        return;
    if (f->rec)
        sl_recorder_event(f->rec, rank, "culprit", "%s", f->sup->reason);
    if (sl_logs_tail(f->logs, rank, 0))
        sl_term_printf(f->term, "shardlaunch: last output of rank %d (%s/rank-%d.log):", rank,
                       f->folder, rank);
    else
        sl_term_printf(f->term, "shardlaunch: rank %d has printed nothing", rank);
    for (int i = 0; (line = sl_logs_tail(f->logs, rank, i)); i++)
        sl_term_printf(f->term, "  | %s", line);
}
