/* death.c - read a wait status as the end of a rank */
#include "launcher/death.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "executor/rank.h"

enum sl_end sl_death_kind(const struct sl_death *d)
{
    enum sl_phase ph = sl_ctl_phase(d->state);

    if (!WIFEXITED(d->wait_status))
        return SL_END_FAULT;
    switch (WEXITSTATUS(d->wait_status)) {
    case SL_RANK_DONE:
        return ph == SL_PHASE_DONE ? SL_END_DONE : SL_END_FAULT;
    case SL_RANK_STOPPED:
        return d->asked ? SL_END_STOPPED : SL_END_FAULT;
    case SL_RANK_PEER:
        return SL_END_PEER;
    default:
        return SL_END_FAULT;
    }
}

int sl_death_status(const struct sl_death *d)
{
    if (WIFEXITED(d->wait_status)) {
        switch (WEXITSTATUS(d->wait_status)) {
        case SL_RANK_USAGE:
        case SL_RANK_MACHINE:
        case SL_RANK_HANG:
            return WEXITSTATUS(d->wait_status);
        }
    }
    return 1;
}

int sl_death_code(const struct sl_death *d)
{
    return WIFSIGNALED(d->wait_status) ? 128 + WTERMSIG(d->wait_status)
                                       : WEXITSTATUS(d->wait_status);
}

void sl_death_text(const struct sl_death *d, const char *host, char *ret, size_t size)
{
    unsigned step = sl_ctl_step(d->state);
    enum sl_phase ph = sl_ctl_phase(d->state);
    const char *phase = ph < SL_PHASES ? sl_phase_names[ph] : "unknown";
    char how[100], where[60];

    if (WIFSIGNALED(d->wait_status))
        snprintf(how, sizeof how, "was killed by signal %d (%s)%s", WTERMSIG(d->wait_status),
                 strsignal(WTERMSIG(d->wait_status)),
                 WCOREDUMP(d->wait_status) ? ", core dumped" : "");
    else if (WEXITSTATUS(d->wait_status) == 0)
        snprintf(how, sizeof how, "exited with status 0 before the job was done");
    else if (WEXITSTATUS(d->wait_status) == SL_RANK_DIVERGED)
        snprintf(how, sizeof how, "stopped: loss or gradient is not finite");
    else if (WEXITSTATUS(d->wait_status) == SL_RANK_PEER)
        snprintf(how, sizeof how, "left because a peer failed, but no peer has");
    else
        snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(d->wait_status));
    if (step && ph == SL_PHASE_FAILED) /* it marked the last step that it had finished */
        snprintf(where, sizeof where, "after step %u", step);
    else if (step)
        snprintf(where, sizeof where, "in step %u, %s", step, phase);
    else
        snprintf(where, sizeof where, "before the first step, %s", phase);
    snprintf(ret, size, "rank %d on %s (pid %d) %s %s", d->rank, host, (int)d->pid, how, where);
}

void sl_death_hint(const struct sl_death *d, long oom, char *ret, size_t size)
{
    ret[0] = '\0';
    if (WIFSIGNALED(d->wait_status) && WTERMSIG(d->wait_status) == SIGBUS)
        snprintf(ret, size,
                 "Signal 7 on a machine in order: a file of data.train or data.valid was cut short"
                 " while it was read, or no memory was left for what the ranks share.");
    if (!WIFSIGNALED(d->wait_status) || WTERMSIG(d->wait_status) != SIGKILL)
        return;
    if (oom > 0)
        snprintf(ret, size,
                 "The kernel's out-of-memory killer has struck %ld time%s since the start:"
                 " use fewer ranks, a smaller micro_batch or recompute = \"unit\".",
                 oom, oom == 1 ? "" : "s");
    else
        snprintf(ret, size,
                 "Signal 9 comes from a person, a batch system, or the kernel when memory"
                 " is short (dmesg tells).");
}

long sl_death_oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    char line[128];
    long n = -1;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "oom_kill %ld", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}
