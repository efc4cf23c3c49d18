#ifndef SL_FS_H
#define SL_FS_H

/*
 * fs.h - files and folders: whole reads with a bound, writes that are whole or absent
 *
 * Errors are SL_SYSTEM with the path and the cause unless said otherwise. All descriptors are
 * close-on-exec.
 */

#include <stddef.h>

#include "common/err.h"

int sl_fs_mkdirs(const char *path, unsigned mode, struct sl_err *err); /* like mkdir -p */

/*
 * The whole file and a NUL behind it; *n (NULL is fine) is its length. Caller frees. A file of more
 * than `max` bytes, a folder and a file that is absent are SL_USAGE, the rest SL_SYSTEM.
 */
char *sl_fs_read(const char *path, size_t max, size_t *n, struct sl_err *err);

/* Write to a temporary file beside `path`, fsync, rename: readers see the old file or the new. */
int sl_fs_write_atomic(const char *path, const void *data, size_t n, unsigned mode,
                       struct sl_err *err);

int sl_fs_write_all(int fd, const void *data, size_t n, struct sl_err *err); /* EINTR, short writes */

/*
 * Where the product keeps its state: the first that is set of `state` (the value of
 * $SHARDLAUNCH_STATE), `xdg` ($XDG_STATE_HOME) + "/shardlaunch", `home` ($HOME) +
 * "/.local/state/shardlaunch". NULL and "" are not set. Caller frees. SL_USAGE: none is set, or the
 * path is not absolute. Main reads the environment; sl_fs_state_env does both.
 */
char *sl_fs_state_dir(const char *state, const char *xdg, const char *home, struct sl_err *err);
char *sl_fs_state_env(struct sl_err *err);

/*
 * 1: on a network file system (NFS, SMB, Lustre, ...: no WAL, no locks to trust), 0: not. Folders that
 * $SHARDLAUNCH_NETWORK_FS names, separated by ":", count as such with all below them: for file systems
 * that do not show what they are (FUSE), and for tests.
 */
int sl_fs_is_network(const char *path, struct sl_err *err);

char *sl_fs_absolute(const char *base, const char *path, struct sl_err *err); /* base + path, freed */

int sl_fs_remove_tree(const char *path, struct sl_err *err); /* follows no link; absent is fine */

#endif
