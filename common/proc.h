#ifndef SL_PROC_H
#define SL_PROC_H

/*
 * proc.h - processes and what the machine gives them
 *
 * Processes are ended by their id and only when they are ours, never by name.
 */

#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* Orphans below this process become its children (also after setsid or a double fork). */
int sl_proc_subreaper(struct sl_err *err);

typedef void (*sl_proc_reaped_f)(void *u, pid_t pid, int status);

/*
 * SIGKILL everything below this process and reap it, until there is no child left or `ns` nanoseconds
 * have passed. Returns how many were reaped; -1 and SL_BUSY: some stayed. The caller should be a
 * subreaper, else grandchildren of dead children are out of reach. `reaped` may be NULL.
 */
int sl_proc_kill_below(int64_t ns, sl_proc_reaped_f reaped, void *u, struct sl_err *err);

/* A descriptor that becomes readable when the process ends. SL_SYSTEM, errno ENOSYS: old kernel. */
int sl_proc_pidfd(pid_t pid, struct sl_err *err);

/*
 * When the process started, in clock ticks since boot: with the boot id and the pid it names a
 * process for ever. -1: no such process. sl_proc_alive: 1 when that very process runs (a zombie
 * does not), 0 when it certainly does not, -1: cannot be told (no descriptor left, no /proc).
 */
int64_t sl_proc_start_time(pid_t pid);
int sl_proc_alive(pid_t pid, int64_t start_time);
int sl_proc_boot_id(char ret[40], struct sl_err *err);

/* Bytes of a process: PSS, shared pages counted in parts. SL_SYSTEM: gone, or not ours. */
int sl_proc_pss(pid_t pid, int64_t *ret, struct sl_err *err);

int sl_proc_cpus(void);             /* what affinity and the cgroup's quota allow, at least 1 */
int64_t sl_proc_memory_limit(void); /* bytes: the tightest of cgroup and machine; 0: not known */

/* A wait status in words: "status 7", "signal 9 (Killed)". */
const char *sl_proc_status(char buf[64], int status);

#endif
