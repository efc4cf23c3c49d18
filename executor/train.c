/* train.c - the steps of a rank, and its reports */
#include "executor/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/saver.h"
#include "executor/memory.h"

struct loop {
    const struct sl_training *t;
    struct sl_run run;
    int64_t micro_batch, accum, context;
    int32_t *ids, *targets; /* in the arena of the graph that is next */
    struct sl_memory memory;
    struct sl_saver *saver; /* NULL: no checkpoints */
    int64_t saved;          /* last step whose save began, or that was resumed from */
    double data_s; /* of this step */
    int diverged;
};

static double seconds(int64_t since)
{
    return 1e-9 * (double)(sl_clock_ns() - since);
}

/* The graph that runs from now on. */
static void take(struct loop *l, const struct sl_graph *g)
{
    l->run.g = g;
    l->ids = sl_run_at(&l->run, g->ids);
    l->targets = sl_run_at(&l->run, g->targets);
}

static void report(const struct sl_training *t, struct sl_report *rep)
{
    if (t->report)
        t->report(t->report_to, rep);
}

static void metric(const struct sl_training *t, int64_t step, const char *name, double value)
{
    struct sl_report rep = {.type = SL_REPORT_METRIC, .step = step};

    if (t->comm->rank)
        return;
    snprintf(rep.u.metric.name, sizeof rep.u.metric.name, "%s", name);
    rep.u.metric.value = value;
    report(t, &rep);
}

/* This rank's samples of a micro-step into the arena. */
static int load(struct loop *l, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    int64_t t0 = sl_clock_ns(), first = (l->run.step - 1) * t->job->train.batch + l->run.sample0;

    for (int64_t i = 0; i < l->micro_batch; i++)
        if (t->samples.train(t->samples.from, first + i, l->ids + i * l->context,
                             l->targets + i * l->context, err))
            return sl_within(err, "step %lld", (long long)l->run.step);
    l->data_s += seconds(t0);
    return 0;
}

/* Forward and backward of all micro-steps. */
static int micro_steps(struct loop *l, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    const struct sl_graph *g = t->program->train;
    struct sl_run *r = &l->run;
    int64_t round = l->micro_batch * t->comm->n;

    take(l, g);
    r->scale = 1 / (double)(t->job->train.batch * l->context);
    r->lr = sl_lr_at(&t->job->train, r->step, t->steps);
    r->loss = 0;
    l->data_s = 0;
    for (int64_t a = 0; a < l->accum; a++) {
        r->micro = (int)a;
        r->sample0 = a * round + l->micro_batch * t->comm->rank;
        if (load(l, err) || sl_run_ops(r, 0, g->opt_start, err))
            return -1;
    }
    return 0;
}

static int one_step(struct loop *l, struct sl_err *err)
{
    struct sl_run *r = &l->run;

    if (micro_steps(l, err))
        return -1;
    if (l->saver)
        sl_saver_settle(l->saver, r); /* the optimizer changes what it reads */
    return sl_run_ops(r, r->g->opt_start, r->g->nops, err);
}

/* --- steps that are not finite ------------------------------------------------------------------ */

/*
 * Do the step again, up to its merge, and look at every result: which rank's which operation made the
 * first one that is not finite? All ranks agree on it. Nothing of the state has changed since.
 */
static int search(struct loop *l, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    struct sl_comm *c = t->comm;
    struct sl_merge *m = &l->run.merge;
    int64_t least = -1;
    int rc;

    l->run.search = 1;
    l->run.found = -1;
    rc = micro_steps(l, err);
    l->run.search = 0;
    if (rc)
        return -1;
    c->ctl->r[c->rank].bad_place = l->run.found;
    if (c->n > 1 && sl_comm_barrier(c, SL_WAIT_SEARCH, -1, err))
        return -1;
    m->searched = 1;
    for (int r = 0; r < c->n; r++) {
        int64_t at = c->ctl->r[r].bad_place;

        if (at < 0 || (least >= 0 && at >= least))
            continue;
        least = at;
        m->bad_rank = r;
        m->bad_op = (int)(at % l->run.g->nops);
    }
    return 0;
}

/* One rank tells where it went bad, one counts; or the job ends here, and one is the culprit. */
static int bad_step(struct loop *l, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    const struct sl_run *r = &l->run;
    int skip = t->job->failure.on_nan == SL_NAN_SKIP, mine;
    char text[400], row[64] = "";

    if (search(l, err))
        return -1;
    sl_merge_text(&r->merge, r->g, text, sizeof text);
    mine = r->merge.bad_rank == t->comm->rank;
    if (skip && r->bad_row < SL_RUN_MAX_BAD) {
        if (mine)
            sl_report_event(t->report, t->report_to, r->step, "nan", "step %lld is skipped: %s",
                            (long long)r->step, text);
        metric(t, r->step, "skipped", (double)r->skipped);
        return 0;
    }
    if (skip)
        snprintf(row, sizeof row, "the last of %d such steps in a row: ", r->bad_row);
    l->diverged = 1;
    sl_fail(err, mine ? SL_USAGE : SL_PEER, "step %lld: %s%s", (long long)r->step, row, text);
    return sl_hint(err, "A lower train.lr, a longer warmup or train.grad_clip often helps.");
}

static int step(struct loop *l, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    struct sl_comm *c = t->comm;
    struct sl_report rep = {.type = SL_REPORT_STEP, .step = l->run.step};
    double comm = c->waited + c->copied;
    int64_t t0 = sl_clock_ns();

    c->step = l->run.step;
    sl_ctl_mark(c->ctl, c->rank, c->collective, c->step, SL_PHASE_COMPUTE);
    c->ctl->r[c->rank].bad_param = -1; /* all have read it: they met at the last step's end */
    if (one_step(l, err))
        return -1;
    rep.u.step_.units = (double)(l->micro_batch * l->accum * l->context);
    snprintf(rep.u.step_.unit, sizeof rep.u.step_.unit, "%ss", t->program->model->item);
    rep.u.step_.step_ms = 1e3 * seconds(t0);
    rep.u.step_.comm_ms = 1e3 * (c->waited + c->copied - comm);
    rep.u.step_.data_ms = 1e3 * l->data_s;
    rep.u.step_.loss = l->run.merge.loss;
    report(t, &rep);
    metric(t, l->run.step, "lr", l->run.lr);
    metric(t, l->run.step, "grad_norm", l->run.merge.norm);
    return l->run.bad_row ? bad_step(l, err) : 0;
}

/* This rank's samples of a round of evaluation; the places behind the last sample are masked. */
static int load_valid(struct loop *l, int64_t first, int64_t samples, int64_t *counted,
                      struct sl_err *err)
{
    const struct sl_samples *s = &l->t->samples;

    for (int64_t i = 0; i < l->micro_batch; i++) {
        int32_t *ids = l->ids + i * l->context, *targets = l->targets + i * l->context;

        if (first + i < samples) {
            if (s->valid(s->from, first + i, ids, targets, err))
                return sl_within(err, "evaluation");
            *counted += l->context;
            continue;
        }
        for (int64_t k = 0; k < l->context; k++) {
            ids[k] = 0;
            targets[k] = -1;
        }
    }
    return 0;
}

/*
 * The mean loss over the chosen validation samples, the same on all ranks. Stands between two
 * steps, as comm.h asks for.
 */
static int evaluate(struct loop *l, double *ret, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    const struct sl_graph *g = t->program->eval;
    struct sl_comm *c = t->comm;
    struct sl_ctl_rank *me = &c->ctl->r[c->rank];
    int64_t want = t->job->train.eval_samples, all = t->samples.valid_samples;
    int64_t samples = want > 0 && want < all ? want : all;
    int64_t round = l->micro_batch * c->n, counted = 0;
    double loss = 0, tokens = 0;

    take(l, g);
    l->run.scale = 1;
    l->run.loss = 0;
    l->run.micro = 0;
    for (int64_t at = 0; at < samples; at += round) {
        if (load_valid(l, at + l->micro_batch * c->rank, samples, &counted, err)
            || sl_run_ops(&l->run, 0, g->nops, err))
            return -1;
    }
    me->eval_loss = l->run.loss;
    me->eval_tokens = (double)counted;
    if (c->n > 1 && sl_comm_barrier(c, SL_WAIT_EVAL, -1, err))
        return -1;
    for (int r = 0; r < c->n; r++) {
        loss += c->ctl->r[r].eval_loss;
        tokens += c->ctl->r[r].eval_tokens;
    }
    *ret = loss / tokens;
    metric(t, l->run.step, "valid.loss", *ret);
    return 0;
}

static int eval_due(const struct sl_training *t, int64_t s)
{
    if (t->samples.valid_samples < 1 || !t->program->eval)
        return 0;
    return s == t->steps || (t->job->train.eval_every > 0 && s % t->job->train.eval_every == 0);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

/* What has become of a save, once it is known. */
static void tell_saved(struct loop *l)
{
    const struct sl_training *t = l->t;
    struct sl_saved s;

    if (!l->saver || !sl_saver_poll(l->saver, &s))
        return;
    if (!s.ok && *s.text)
        sl_report_event(t->report, t->report_to, s.step, "warning",
                        "no checkpoint of step %lld: %s; training goes on", (long long)s.step,
                        s.text);
    if (t->comm->rank)
        return;
    metric(t, s.step, "ckpt_ms", s.stall_ms);
    if (s.ok)
        sl_report_event(t->report, t->report_to, s.step, "checkpoint",
                        "step %lld: %.1f MB in %.2f s (%.0f MB/s), training waited %.0f ms: %s",
                        (long long)s.step, 1e-6 * (double)s.bytes, s.seconds,
                        1e-6 * (double)s.bytes / s.seconds, s.stall_ms, s.text);
    if (*s.warning)
        sl_report_event(t->report, t->report_to, s.step, "warning",
                        "cannot remove an old checkpoint: %s", s.warning);
}

static int save_due(const struct loop *l, int64_t s, int stopped)
{
    int64_t every = l->t->job->checkpoint.every;

    if (!l->saver || s == l->saved)
        return 0;
    return stopped || (every > 0 && (s % every == 0 || s == l->t->steps));
}

/* Several nodes: rank 0 hears of the last shards at a meeting of all ranks. */
static int finish_save(struct loop *l, struct sl_err *err)
{
    if (!l->saver)
        return 0;
    if (l->t->comm->nodes > 1) {
        sl_saver_written(l->saver, &l->run);
        if (sl_comm_barrier(l->t->comm, SL_WAIT_SAVE, -1, err))
            return -1;
    }
    sl_saver_finish(l->saver, &l->run);
    tell_saved(l);
    return 0;
}

static int save(struct loop *l, int64_t step, struct sl_err *err)
{
    if (finish_save(l, err))
        return -1;
    take(l, l->t->program->train);
    sl_saver_start(l->saver, &l->run, step);
    l->saved = step;
    return 0;
}

/* Parameters and optimizer state: from a checkpoint, or new. *done: the steps behind them. */
static int first_state(struct loop *l, int64_t *done, struct sl_err *err)
{
    const struct sl_training *t = l->t;

    *done = 0;
    if (!t->checkpoint || !t->checkpoint->from)
        return sl_run_init(&l->run, t->job->train.seed, err);
    if (sl_ckpt_load(&l->run, t->job, t->checkpoint, done, err))
        return -1;
    l->saved = *done;
    if (!t->comm->rank)
        sl_report_event(t->report, t->report_to, *done, "resume", "%s",
                        t->checkpoint->from);
    return 0;
}

static int start(struct loop *l, int64_t *done, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    struct sl_comm *c = t->comm;

    sl_ctl_mark(c->ctl, c->rank, c->collective, 0, SL_PHASE_LOAD);
    if (t->poison)
        memset(t->arena, 0xff, (size_t)(c->rank ? t->program->arena : t->program->arena0));
    take(l, t->program->train);
    if (first_state(l, done, err))
        return -1;
    if (t->checkpoint) {
        if (!c->rank && sl_ckpt_sweep(t->checkpoint->dir, err)) /* what a killed save has left */
            return -1;
        l->saver = sl_saver_open(t->checkpoint, t->job, t->program, err);
        if (!l->saver)
            return -1;
    }
    return c->n > 1 ? sl_comm_barrier(c, SL_WAIT_START, -1, err) : 0;
}

static int steps(struct loop *l, struct sl_trained *ret, struct sl_err *err)
{
    const struct sl_training *t = l->t;
    int64_t first;

    if (start(l, &ret->step, err))
        return -1;
    first = ret->step + 1;
    sl_memory_plan(&l->memory, ret->step);
    for (int64_t s = first; s <= t->steps && !ret->stopped; s++) {
        l->run.step = s;
        if (step(l, err)) {
            ret->diverged = l->diverged;
            return -1;
        }
        ret->step = s;
        atomic_store(&t->comm->ctl->r[t->comm->rank].stepped, 1);
        ret->loss = l->run.merge.loss;
        ret->norm = l->run.merge.norm;
        ret->skipped = l->run.skipped;
        ret->stopped = l->run.merge.stop && s < t->steps;
        tell_saved(l);
        if (save_due(l, s, ret->stopped) && save(l, s, err))
            return -1;
        if (!ret->stopped && eval_due(t, s) && evaluate(l, &ret->valid_loss, err))
            return -1;
        sl_memory_process(&l->memory, s, s == first);
    }
    sl_memory_process(&l->memory, ret->step, 1); /* while the last save runs, and peers live */
    if (finish_save(l, err))
        return -1;
    sl_memory_plan(&l->memory, ret->step);
    return 0;
}

int sl_train(const struct sl_training *t, struct sl_trained *ret, struct sl_err *err)
{
    const struct sl_train_spec *spec = &t->job->train;
    struct loop l = {
        .t = t,
        .run = {.dev = t->dev,
                .comm = t->comm,
                .arena = t->arena,
                .spec = spec,
                .accum = (int)t->program->accum,
                .poison = t->poison,
                .after = t->after,
                .after_user = t->after_user,
                .merge = {.bad_rank = -1}},
        .micro_batch = t->program->micro,
        .accum = t->program->accum,
        .context = t->job->model.context,
    };
    int rc;

    *ret = (struct sl_trained){.loss = NAN, .norm = NAN, .valid_loss = NAN};
    sl_memory_init(&l.memory, t->job, t->program, t->comm->rank, t->report, t->report_to);
    rc = steps(&l, ret, err);
    sl_saver_close(l.saver);
    sl_ctl_mark(t->comm->ctl, t->comm->rank, t->comm->collective, ret->step,
                rc             ? SL_PHASE_FAILED
                : ret->stopped ? SL_PHASE_STOPPED
                               : SL_PHASE_DONE);
    return rc;
}
