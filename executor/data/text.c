#include "executor/data/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int sl_text_open(struct sl_text *text, const char *path, struct sl_err *err)
{
    struct stat st;
    int fd, rc = -1;

    *text = (struct sl_text){0};
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait for a writer */
    if (fd < 0) {
        int missing = errno == ENOENT || errno == ENOTDIR;

        return sl_fail(err, missing ? SL_USAGE : SL_SYSTEM, "cannot read \"%s\": %s", path,
                       strerror(errno));
    }
    if (fstat(fd, &st)) {
        sl_fail(err, SL_SYSTEM, "cannot read \"%s\": %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        sl_fail(err, SL_USAGE, "\"%s\" is not a regular file", path);
        sl_hint(err, "Name a file of text or of tokens; write what a pipe gives to a file first.");
        goto out;
    }
    if (!st.st_size) {
        sl_fail(err, SL_USAGE, "\"%s\" is empty", path);
        sl_hint(err, "Training needs at least one sample of context + 1 tokens.");
        goto out;
    }
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        sl_fail(err, SL_SYSTEM, "cannot map \"%s\": %s", path, strerror(errno));
        goto out;
    }
    text->data = p;
    text->size = (size_t)st.st_size;
    rc = 0;
out:
    close(fd);
    return rc;
}

void sl_text_close(struct sl_text *text)
{
    if (text->data)
        munmap((void *)text->data, text->size);
    *text = (struct sl_text){0};
}

/* Length of the character at p, or 0 when it is not UTF-8. */
static size_t character(const unsigned char *p, size_t n)
{
    unsigned char a = p[0], low = 0x80, high = 0xbf; /* limits of the second byte */
    size_t len;

    if (a < 0x80)
        return 1;
    if (a >= 0xc2 && a <= 0xdf)
        len = 2;
    else if ((a & 0xf0) == 0xe0)
        len = 3;
    else if (a >= 0xf0 && a <= 0xf4)
        len = 4;
    else
        return 0;
    if (len > n)
        return 0;
    if (a == 0xe0)
        low = 0xa0; /* below: an overlong form */
    else if (a == 0xed)
        high = 0x9f; /* above: surrogates */
    else if (a == 0xf0)
        low = 0x90;
    else if (a == 0xf4)
        high = 0x8f; /* above: beyond U+10FFFF */
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

int sl_text_check_utf8(const struct sl_text *text, const char *path, struct sl_err *err)
{
    long long line = 1, column = 1;

    for (size_t i = 0; i < text->size;) {
        size_t len = character(text->data + i, text->size - i);

        if (!len) {
            sl_fail(err, SL_USAGE, "%s:%lld:%lld: byte 0x%02x at offset %zu is not UTF-8", path,
                    line, column, text->data[i], i);
            return sl_hint(err, "Convert the file (for instance: iconv -f LATIN1 -t UTF-8), or use "
                                "tokenizer = \"byte\", which takes any bytes.");
        }
        column++;
        if (text->data[i] == '\n') {
            line++;
            column = 1;
        }
        i += len;
    }
    return 0;
}
