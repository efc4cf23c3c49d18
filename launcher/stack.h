#ifndef SL_STACK_H
#define SL_STACK_H

/*
 * stack.h - where a process stands: its call stack by gdb, else what /proc tells
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * Fill `ret` with lines (each ends in a newline) about process `pid`: its state, and the frames
 * that gdb shows, or, without gdb or when it may not attach, the kernel's wait channel. Takes
 * at most about 8 s and calls `alive` (may be NULL) every 200 ms meanwhile. Never fails: an empty
 * text says that nothing could be learned.
 */
void sl_stack_read(pid_t pid, void (*alive)(void *user), void *user, char *ret, size_t size);

#endif
