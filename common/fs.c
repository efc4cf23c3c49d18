#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"

int sl_fs_mkdirs(const char *path, unsigned mode, struct sl_err *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    struct stat st;

    if (!n || n >= sizeof part)
        return sl_fail(err, SL_USAGE, "folder name of %zu bytes: use 1 to %zu", n, sizeof part - 1);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) == 0)
            continue;
        if (errno != EEXIST && errno != EISDIR && !(errno == EROFS && !stat(part, &st)))
            return sl_fail(err, SL_SYSTEM, "make folder \"%s\": %s", part, strerror(errno));
    }
    if (stat(path, &st))
        return sl_fail(err, SL_SYSTEM, "look at folder \"%s\": %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return sl_fail(err, SL_SYSTEM, "make folder \"%s\": %s", path, strerror(ENOTDIR));
    return 0;
}

/* Read fd to its end; the file may grow or shrink while we read. */
static char *slurp(int fd, size_t max, size_t *n, struct sl_err *err)
{
    struct sl_buf b;
    char piece[16384], *p = NULL;
    ssize_t k = 0;

    sl_buf_init(&b, max);
    while (!b.failed && (k = read(fd, piece, sizeof piece)) != 0) {
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            break;
        sl_buf_add(&b, piece, (size_t)k);
    }
    size_t len = b.len;
    if (k < 0)
        sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    else if (b.failed == EFBIG)
        sl_fail(err, SL_USAGE, "longer than %zu bytes", max);
    else if ((p = sl_buf_take(&b, err)) && n)
        *n = len;
    sl_buf_fini(&b);
    return p;
}

char *sl_fs_read(const char *path, size_t max, size_t *n, struct sl_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    char *p = NULL;

    if (fd < 0) {
        int user = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG;

        sl_fail(err, user ? SL_USAGE : SL_SYSTEM, "open \"%s\": %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        sl_fail(err, SL_USAGE, "read \"%s\": is a folder, not a file", path);
    } else {
        p = slurp(fd, max, n, err);
        if (!p)
            sl_within(err, "read \"%s\"", path);
    }
    close(fd);
    return p;
}

int sl_fs_write_all(int fd, const void *data, size_t n, struct sl_err *err)
{
    const char *p = data;

    while (n) {
        ssize_t k = write(fd, p, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* The name in the folder has to be on disk, too. Some file systems cannot; the data then is. */
static void sync_folder(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;

    if (n >= sizeof dir)
        return;
    memcpy(dir, path, n);
    dir[n] = '\0';
    int fd = open(n ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!fsync(fd);
    close(fd);
}

int sl_fs_write_atomic(const char *path, const void *data, size_t n, unsigned mode,
                       struct sl_err *err)
{
    char temp[PATH_MAX];
    int k = snprintf(temp, sizeof temp, "%s.XXXXXX", path);

    if (k < 0 || (size_t)k >= sizeof temp)
        return sl_fail(err, SL_USAGE, "write a file: its name has more than %zu bytes",
                       sizeof temp - 8);
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "write \"%s\": %s", path, strerror(errno));
    if (sl_fs_write_all(fd, data, n, err)) {
        sl_within(err, "write \"%s\"", path);
        goto fail;
    }
    if (fchmod(fd, mode) || fsync(fd)) {
        sl_fail(err, SL_SYSTEM, "write \"%s\": %s", path, strerror(errno));
        goto fail;
    }
    if (close(fd)) {
        fd = -1;
        sl_fail(err, SL_SYSTEM, "write \"%s\": %s", path, strerror(errno));
        goto fail;
    }
    fd = -1;
    if (rename(temp, path)) {
        sl_fail(err, SL_SYSTEM, "rename to \"%s\": %s", path, strerror(errno));
        goto fail;
    }
    sync_folder(path);
    return 0;
fail:
    if (fd >= 0)
        close(fd);
    unlink(temp);
    return -1;
}

static int set(const char *s)
{
    return s && *s;
}

char *sl_fs_state_dir(const char *state, const char *xdg, const char *home, struct sl_err *err)
{
    struct sl_buf b;

    sl_buf_init(&b, PATH_MAX);
    if (set(state))
        sl_buf_str(&b, state);
    else if (set(xdg))
        sl_buf_printf(&b, "%s/shardlaunch", xdg);
    else if (set(home))
        sl_buf_printf(&b, "%s/.local/state/shardlaunch", home);
    if (!b.len && !b.failed) {
        sl_fail(err, SL_USAGE, "no place for the state: HOME is not set");
        sl_hint(err, "Set SHARDLAUNCH_STATE to a folder, or HOME.");
        return NULL;
    }
    if (b.len && b.p[0] != '/') {
        sl_fail(err, SL_USAGE, "state folder \"%.120s\" is not an absolute path", b.p);
        sl_hint(err, "Set SHARDLAUNCH_STATE to a path that begins with \"/\".");
        sl_buf_fini(&b);
        return NULL;
    }
    char *p = sl_buf_take(&b, err);
    sl_buf_fini(&b);
    return p;
}

char *sl_fs_state_env(struct sl_err *err)
{
    return sl_fs_state_dir(getenv("SHARDLAUNCH_STATE"), getenv("XDG_STATE_HOME"), getenv("HOME"),
                           err);
}

/* Is path, whose links are followed, one of the folders in `list` or below one? */
static int is_named(const char *path, const char *list)
{
    char real[PATH_MAX];

    if (!set(list) || !realpath(path, real))
        return 0;
    for (const char *p = list; *p; p += strcspn(p, ":"), p += *p == ':') {
        size_t n = strcspn(p, ":");

        while (n > 1 && p[n - 1] == '/')
            n--;
        if (n && !strncmp(real, p, n) && (!real[n] || real[n] == '/' || p[n - 1] == '/'))
            return 1;
    }
    return 0;
}

int sl_fs_is_network(const char *path, struct sl_err *err)
{
    /* Magic numbers from statfs(2) and the file systems' own headers. */
    static const uint32_t net[] = {
        0x6969 /* NFS */,        0x517B /* SMB */,       0xFF534D42 /* CIFS */,
        0xFE534D42 /* SMB2 */,   0x0BD00BD0 /* Lustre */, 0x47504653 /* GPFS */,
        0x19830326 /* BeeGFS */, 0x00C36400 /* Ceph */,  0x5346414F /* AFS */,
        0x6B414653 /* kAFS */,   0x01021997 /* 9p */,    0x73757245 /* Coda */,
        0x20030528 /* OrangeFS */, 0xAAD7AAEA /* PanFS */, 0x7461636F /* OCFS2 */,
        0x01161970 /* GFS2 */,   0x564C /* NCP */,
    };
    struct statfs s;

    if (statfs(path, &s))
        return sl_fail(err, SL_SYSTEM, "look at the file system of \"%s\": %s", path,
                       strerror(errno));
    for (size_t i = 0; i < sizeof net / sizeof *net; i++)
        if ((uint32_t)s.f_type == net[i])
            return 1;
    return is_named(path, getenv("SHARDLAUNCH_NETWORK_FS"));
}

char *sl_fs_absolute(const char *base, const char *path, struct sl_err *err)
{
    struct sl_buf b;
    char cwd[PATH_MAX];

    sl_buf_init(&b, PATH_MAX);
    if (path[0] != '/') {
        if (!base || base[0] != '/') {
            if (!getcwd(cwd, sizeof cwd)) {
                sl_fail(err, SL_SYSTEM, "find the current folder: %s", strerror(errno));
                return NULL;
            }
            sl_buf_printf(&b, "%s/", strcmp(cwd, "/") ? cwd : "");
        }
        if (base && *base && strcmp(base, "."))
            sl_buf_printf(&b, "%s%s", base, base[strlen(base) - 1] == '/' ? "" : "/");
    }
    sl_buf_str(&b, path);
    char *p = sl_buf_take(&b, err);
    sl_buf_fini(&b);
    return p;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(path) && errno != ENOENT ? -1 : 0;
}

int sl_fs_remove_tree(const char *path, struct sl_err *err)
{
    if (!*path || !strcmp(path, "/"))
        return sl_fail(err, SL_BUG, "refuse to remove the folder \"%s\"", path);
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
        return sl_fail(err, SL_SYSTEM, "remove \"%s\": %s", path, strerror(errno));
    return 0;
}
