#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "common/fs.h"

int fuzz_file(const uint8_t *data, size_t n, char path[40])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_MUST(fd >= 0 && !sl_fs_write_all(fd, data, n, NULL));
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    return fd;
}

static char folder[64];
static pid_t owner;

static void remove_folder(void)
{
    if (getpid() == owner)
        sl_fs_remove_tree(folder, NULL);
}

const char *fuzz_folder(void)
{
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/sl-fuzz-XXXXXX");
        FUZZ_MUST(mkdtemp(folder));
        owner = getpid();
        atexit(remove_folder);
    }
    return folder;
}
