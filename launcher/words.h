#ifndef SL_WORDS_H
#define SL_WORDS_H

/*
 * words.h - what the chief and the other agents say to each other over the star
 *
 * a, b, c and the data of a message (launcher/star.h) by its type. Both ends are the same program.
 */

#include <stdint.h>

#include "executor/checkpoint/checkpoint.h"
#include "executor/data/dataset.h"
#include "executor/report.h"
#include "launcher/hang.h"

enum sl_word {
    SL_WORD_PING = 1,
    /* to the chief */
    SL_WORD_REPORT,  /* data: struct sl_report */
    SL_WORD_LINE,    /* a rank; data: a line of its output */
    SL_WORD_DEATH,   /* struct sl_word_death */
    SL_WORD_STATES,  /* struct sl_word_states: rows of the node's ranks */
    SL_WORD_SIGNAL,  /* a: its number */
    SL_WORD_FENCE,   /* a attempt, b number, c PMIx status; data: what the node's ranks have put */
    SL_WORD_DRAINED, /* a attempt: none of my ranks lives */
    SL_WORD_LOOK,    /* a rank; struct sl_hang_rank: how it stands */
    SL_WORD_STACK,   /* a rank; data: text */
    SL_WORD_FAIL,    /* a exit status; data: text: my ranks cannot be started */
    SL_WORD_LOST,    /* a: records of mine that were dropped since the last such message */
    /* from the chief */
    SL_WORD_START = 64, /* struct sl_order, then the job's text */
    SL_WORD_FENCED,     /* a attempt, b number, c PMIx status; data: of all nodes */
    SL_WORD_STOP,       /* a: number of the signal: leave after this step */
    SL_WORD_OVER,       /* a: first rank that failed, -1: the attempt is over, leave every wait */
    SL_WORD_KILL,       /* a attempt: end your ranks */
    SL_WORD_LOOKQ,      /* say how your ranks stand */
    SL_WORD_STACKQ,     /* a rank */
    SL_WORD_QUIT,       /* a: exit status of the run */
};

/* All that an agent needs to start its ranks of an attempt. */
struct sl_order {
    int32_t attempt, ranks, per_node, units, threads;
    uint32_t text_bytes;
    int64_t job, arena_bytes;
    double hang_timeout;
    char nspace[160];
    char checkpoints[SL_CKPT_PATH], from[SL_CKPT_PATH];
    struct sl_dataset_files data;
};

struct sl_word_death {
    int32_t attempt, rank, pid, wait_status;
    uint64_t state;
};

struct sl_word_row {
    uint64_t state, since;
    uint32_t stepped, pid;
    int32_t kind, unit, away, pad;
};

struct sl_word_states {
    int32_t attempt, first, n;
    uint64_t now; /* the sender's clock, to which `since` belongs */
    struct sl_word_row row[SL_MAX_RANKS];
};

#endif
