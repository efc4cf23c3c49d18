#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fs.h"
#include "common/mem.h"

static int enter(void **state)
{
    static char dir[128];

    snprintf(dir, sizeof dir, "%s/sl-fs-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int leave(void **state)
{
    return sl_fs_remove_tree(*state, NULL);
}

static const char *in(void **state, const char *name)
{
    static char path[4][256];
    static int k;

    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", (const char *)*state, name);
    return path[k];
}

static void folders_are_made_with_their_parents(void **state)
{
    struct sl_err err = {0};
    struct stat st;

    assert_int_equal(sl_fs_mkdirs(in(state, "a/b//c/"), 0700, &err), 0);
    assert_int_equal(sl_fs_mkdirs(in(state, "a/b/c"), 0700, &err), 0); /* again is fine */
    assert_int_equal(stat(in(state, "a/b/c"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(sl_fs_write_atomic(in(state, "file"), "x", 1, 0600, &err), 0);
    assert_int_equal(sl_fs_mkdirs(in(state, "file/sub"), 0700, &err), -1);
    assert_non_null(strstr(err.msg, "Not a directory"));
    assert_int_equal(sl_fs_mkdirs(in(state, "file"), 0700, &err), -1);
    assert_int_equal(sl_fs_mkdirs("", 0700, &err), -1);
}

static void a_write_replaces_whole_files_only(void **state)
{
    struct sl_err err = {0};
    struct stat st;
    size_t n;

    assert_int_equal(sl_fs_write_atomic(in(state, "f"), "one", 3, 0640, &err), 0);
    assert_int_equal(sl_fs_write_atomic(in(state, "f"), "a\0b", 3, 0640, &err), 0);
    char *p = sl_fs_read(in(state, "f"), 3, &n, &err);
    assert_int_equal(n, 3);
    assert_memory_equal(p, "a\0b", 4);
    free(p);
    assert_int_equal(stat(in(state, "f"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    /* a failure leaves the old file and nothing beside it */
    assert_int_equal(sl_fs_mkdirs(in(state, "d/x"), 0700, &err), 0);
    assert_int_equal(sl_fs_write_atomic(in(state, "d"), "x", 1, 0600, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
    assert_int_equal(sl_fs_write_atomic(in(state, "none/x"), "x", 1, 0600, &err), -1);
    assert_int_equal(unlink(in(state, "f")), 0);
    assert_int_equal(rmdir(in(state, "d/x")), 0);
    assert_int_equal(rmdir(in(state, "d")), 0);
    assert_int_equal(rmdir((const char *)*state), 0); /* empty: no temporary file is left */
    assert_int_equal(sl_fs_mkdirs(*state, 0700, &err), 0);
}

static void a_read_is_bounded(void **state)
{
    struct sl_err err = {0};
    char want[300];

    sl_fs_write_atomic(in(state, "f"), "12345", 5, 0600, NULL);
    char *p = sl_fs_read(in(state, "f"), 5, NULL, &err);
    assert_string_equal(p, "12345");
    free(p);
    assert_null(sl_fs_read(in(state, "f"), 4, NULL, &err));
    snprintf(want, sizeof want, "read \"%s\": longer than 4 bytes", in(state, "f"));
    assert_string_equal(err.msg, want);
    assert_int_equal(err.code, SL_USAGE);
    assert_null(sl_fs_read("/dev/zero", 100000, NULL, &err)); /* grows without end */
    assert_null(sl_fs_read(in(state, "none"), 4, NULL, &err));
    assert_null(sl_fs_read(in(state, ""), 4, NULL, &err));
    for (long k = 0; k < 2; k++) {
        sl_mem_fail_after(k);
        p = sl_fs_read(in(state, "f"), 5, NULL, &err);
        sl_mem_fail_after(-1);
        if (p)
            break;
        assert_int_equal(err.code, SL_SYSTEM);
    }
    free(p);
}

static void the_state_folder_follows_the_environment(void **state)
{
    static const struct {
        const char *state, *xdg, *home, *want;
    } cases[] = {
        {"/s", "/x", "/h", "/s"},
        {NULL, "/x", "/h", "/x/shardlaunch"},
        {"", "", "/h", "/h/.local/state/shardlaunch"},
        {NULL, NULL, NULL, NULL},
        {"", "", "", NULL},
        {"rel", "/x", "/h", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};
        char *p = sl_fs_state_dir(cases[i].state, cases[i].xdg, cases[i].home, &err);

        if (cases[i].want) {
            assert_string_equal(p, cases[i].want);
        } else {
            assert_null(p);
            assert_int_equal(err.code, SL_USAGE);
            assert_non_null(strstr(err.hint, "SHARDLAUNCH_STATE"));
        }
        free(p);
    }
}

static void paths_become_absolute(void **state)
{
    char cwd[1024], want[1200];

    (void)state;
    assert_non_null(getcwd(cwd, sizeof cwd));
    static const struct {
        const char *base, *path, *want; /* %s: the current folder */
    } cases[] = {
        {"/b", "/p", "/p"}, {"/b", "p", "/b/p"}, {"/b/", "p", "/b/p"}, {"", "p", "%s/p"},
        {NULL, "p", "%s/p"}, {"c", "p", "%s/c/p"}, {".", "p", "%s/p"}, {"/", "p", "/p"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *p = sl_fs_absolute(cases[i].base, cases[i].path, NULL);

        if (cases[i].want[0] == '%')
            snprintf(want, sizeof want, "%s%s", cwd, cases[i].want + 2);
        else
            snprintf(want, sizeof want, "%s", cases[i].want);
        assert_string_equal(p, want);
        free(p);
    }
}

static void a_tree_goes_but_not_what_links_point_to(void **state)
{
    struct sl_err err = {0};
    struct stat st;

    sl_fs_mkdirs(in(state, "t/sub"), 0700, NULL);
    sl_fs_mkdirs(in(state, "other"), 0700, NULL);
    sl_fs_write_atomic(in(state, "other/f"), "x", 1, 0600, NULL);
    assert_int_equal(symlink(in(state, "other"), in(state, "t/sub/link")), 0);
    assert_int_equal(sl_fs_remove_tree(in(state, "t"), &err), 0);
    assert_int_equal(stat(in(state, "t"), &st), -1);
    assert_int_equal(stat(in(state, "other/f"), &st), 0);
    assert_int_equal(sl_fs_remove_tree(in(state, "t"), &err), 0); /* absent is fine */
    assert_int_equal(sl_fs_remove_tree("/", &err), -1);
    assert_int_equal(sl_fs_remove_tree("", &err), -1);
}

static void the_proc_file_system_is_no_network(void **state)
{
    struct sl_err err = {0};

    (void)state;
    assert_int_equal(sl_fs_is_network("/proc", &err), 0);
    assert_int_equal(sl_fs_is_network(in(state, "none"), &err), -1);
}

static void folders_can_be_declared_to_be_on_a_network(void **state)
{
    struct sl_err err = {0};

    (void)state;
    setenv("SHARDLAUNCH_NETWORK_FS", "/none:/proc/self/:/sys/k", 1);
    assert_int_equal(sl_fs_is_network("/proc/self/task", &err), 0); /* links are followed */
    assert_int_equal(sl_fs_is_network("/proc", &err), 0);
    assert_int_equal(sl_fs_is_network("/sys/kernel", &err), 0); /* only begins like one */
    setenv("SHARDLAUNCH_NETWORK_FS", "/none:/proc/", 1);
    assert_int_equal(sl_fs_is_network("/proc/self/task", &err), 1);
    assert_int_equal(sl_fs_is_network("/proc", &err), 1);
    setenv("SHARDLAUNCH_NETWORK_FS", "/", 1);
    assert_int_equal(sl_fs_is_network("/proc", &err), 1);
    unsetenv("SHARDLAUNCH_NETWORK_FS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_are_made_with_their_parents, enter, leave),
        cmocka_unit_test_setup_teardown(a_write_replaces_whole_files_only, enter, leave),
        cmocka_unit_test_setup_teardown(a_read_is_bounded, enter, leave),
        cmocka_unit_test(the_state_folder_follows_the_environment),
        cmocka_unit_test(paths_become_absolute),
        cmocka_unit_test_setup_teardown(a_tree_goes_but_not_what_links_point_to, enter, leave),
        cmocka_unit_test_setup_teardown(the_proc_file_system_is_no_network, enter, leave),
        cmocka_unit_test(folders_can_be_declared_to_be_on_a_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
