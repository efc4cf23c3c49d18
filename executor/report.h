#ifndef SL_REPORT_H
#define SL_REPORT_H

/*
 * report.h - what a rank tells its agent: fixed-size records on an inherited SEQPACKET socket
 *
 * One record a datagram. A rank never blocks on it: samples that do not fit are dropped and counted
 * (`dropped` of the next sample); events and ends are retried for a bounded time. The agent
 * checks type and size and ignores what it does not know.
 */

#include <stdint.h>

enum sl_report_type {
    SL_REPORT_HELLO,  /* pid, host and device of a rank, once */
    SL_REPORT_STEP,   /* per rank and optimizer step */
    SL_REPORT_MEMORY, /* one category, when it changes and at the end */
    SL_REPORT_METRIC, /* rank 0: lr, grad_norm, valid.loss, ... */
    SL_REPORT_EVENT,  /* free text */
};

struct sl_report {
    uint32_t type;
    int32_t rank;
    int64_t step; /* from 1; 0 before the first */
    double time;  /* unix seconds (real) */
    union {
        struct {
            int32_t pid;
            char host[64], device[64];
        } hello;
        struct {
            double units; /* of this rank: tokens of the step */
            char unit[16];
            double step_ms, comm_ms, data_ms;
            double loss; /* mean over the global batch, the same on all ranks */
            int64_t dropped;
        } step_;
        struct {
            char category[16]; /* sl_cat_names, "total" or "process" */
            int64_t bytes, peak_bytes;
        } memory;
        struct {
            char name[48];
            double value;
        } metric;
        struct {
            char kind[24]; /* "nan", "hang", "error", "note" */
            char message[400];
        } event;
    } u;
};

#endif
