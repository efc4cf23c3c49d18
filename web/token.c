#include "web/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fs.h"

enum { BYTES = 32 };

/* Written beside and linked into place, so that of two makers one wins and both read the same. */
static int make(const char *path, struct sl_err *err)
{
    unsigned char raw[BYTES];
    char text[2 * BYTES + 2], temp[4200];
    int fd, rc;

    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return sl_fail(err, SL_SYSTEM, "no random bytes for a token: %s", strerror(errno));
    for (int i = 0; i < BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    strcat(text, "\n");
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    fd = mkostemp(temp, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "cannot make \"%s\": %s", path, strerror(errno));
    rc = sl_fs_write_all(fd, text, strlen(text), err);
    close(fd);
    if (!rc && link(temp, path) && errno != EEXIST)
        rc = sl_fail(err, SL_SYSTEM, "cannot make \"%s\": %s", path, strerror(errno));
    unlink(temp);
    return rc;
}

static int read_token(int fd, const char *path, struct sl_token *ret, struct sl_err *err)
{
    char text[2 * BYTES + 2] = "";
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st))
        return sl_fail(err, SL_SYSTEM, "cannot look at \"%s\": %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077) {
        sl_fail(err, SL_USAGE, "\"%s\" is not a file that only you can read", path);
        return sl_hint(err, "others may know the token: remove the file, a new one will be made");
    }
    n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return sl_fail(err, SL_SYSTEM, "cannot read \"%s\": %s", path, strerror(errno));
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (strspn(text, "0123456789abcdef") != 2 * BYTES || text[2 * BYTES]) {
        sl_fail(err, SL_USAGE, "\"%s\" holds no token", path);
        return sl_hint(err, "remove the file, a new one will be made");
    }
    memcpy(ret->text, text, sizeof ret->text);
    snprintf(ret->cookie, sizeof ret->cookie, "shardlaunch_%.8s", text);
    return 0;
}

int sl_token_load(const char *dir, struct sl_token *ret, struct sl_err *err)
{
    char path[4096];
    int fd, rc, n = snprintf(path, sizeof path, "%s/token", dir);

    if (n < 0 || (size_t)n >= sizeof path)
        return sl_fail(err, SL_SYSTEM, "the path of the token is too long");
    for (int turn = 0; turn < 2; turn++) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0) {
            rc = read_token(fd, path, ret, err);
            close(fd);
            return rc;
        }
        if (errno != ENOENT)
            break;
        if (make(path, err))
            return -1;
    }
    return sl_fail(err, SL_SYSTEM, "cannot open \"%s\": %s", path, strerror(errno));
}

int sl_token_right(const struct sl_token *t, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    unsigned wrong = n != sizeof t->text - 1;

    for (size_t i = 0; i < sizeof t->text - 1; i++)
        wrong |= (unsigned char)t->text[i] ^ (unsigned char)(n ? text[i % n] : 0);
    return text && !wrong;
}
