#include "tests/unit/executor/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "saved: %s\n", what);
    abort();
}

void saved_open(struct saved *s, enum sl_strategy strategy, enum sl_precision precision, int ranks)
{
    struct sl_job *j;

    *s = (struct saved){.team = team_tiny(strategy, ranks)};
    j = &s->team.job;
    j->resources.nodes = j->resources.ranks_per_node = 1;
    j->resources.device = "cpu";
    j->data.train = "none";
    j->train.precision = precision;
    j->train.steps = SAVED_STEPS;
    j->checkpoint.resume = "auto";
    s->team.valid_samples = 5;
    snprintf(s->top, sizeof s->top, "/tmp/sl-saved-XXXXXX");
    must(mkdtemp(s->top) != NULL, "no temporary folder");
    snprintf(s->dir, sizeof s->dir, "%s/ckpt", s->top);
}

void saved_close(struct saved *s)
{
    sl_fs_remove_tree(s->top, NULL);
}

int saved_try(struct saved *s, int every, int from, struct team_result *ret)
{
    struct sl_err err = {0};
    char path[SL_CKPT_PATH], *text;
    int rc;

    s->team.job.checkpoint.every = every;
    text = sl_job_text(&s->team.job, &err);
    must(text != NULL, err.msg);
    snprintf(path, sizeof path, "%s/step-%08d", s->dir, from);
    s->conf = (struct sl_ckpt_conf){.dir = s->dir,
                                    .from = from ? path : NULL,
                                    .text = text,
                                    .job = 1,
                                    .steps = SAVED_STEPS,
                                    .samples = SAVED_SAMPLES};
    s->team.checkpoint = &s->conf;
    rc = team_run(&s->team, ret);
    free(text);
    return rc;
}

void saved_run(struct saved *s, int every, int from, struct team_result *ret)
{
    if (!saved_try(s, every, from, ret))
        return;
    for (int k = 0; k < s->team.ranks; k++)
        fprintf(stderr, "rank %d: %s\n", k, ret->r[k].msg);
    must(0, "a rank failed");
}
