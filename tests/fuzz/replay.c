/* replay.c - a fuzz target over the files and folders of files that are named, without libFuzzer */
#include <dirent.h>
#include <string.h>

#include "common/fs.h"
#include "tests/fuzz/fuzz.h"

static long runs;

static void replay(const char *path)
{
    struct sl_err err = {0};
    size_t n;
    char *data = sl_fs_read(path, 16 << 20, &n, &err);

    if (!data) {
        fprintf(stderr, "%s\n", err.msg);
        exit(2);
    }
    LLVMFuzzerTestOneInput((const uint8_t *)data, n);
    free(data);
    runs++;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);

        if (!d)
            replay(argv[i]);
        for (struct dirent *e; d && (e = readdir(d));) {
            char path[4096];

            if (*e->d_name == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            replay(path);
        }
        if (d)
            closedir(d);
    }
    printf("%ld inputs\n", runs);
    return runs ? 0 : 2;
}
