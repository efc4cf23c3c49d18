/* The token: private, stable, made once, refused when others could know it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store/fixture.h"
#include "web/token.h"

static void it_is_made_once_and_only_ours_to_read(void **state)
{
    struct fixture *f = *state;
    struct sl_token a = {0}, b = {0};
    char path[128];
    struct stat st;

    ok(sl_token_load(f->dir, &a, err));
    ok(sl_token_load(f->dir, &b, err));
    assert_string_equal(a.text, b.text);
    assert_int_equal(strspn(a.text, "0123456789abcdef"), 64);
    snprintf(path, sizeof path, "%s/token", f->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    snprintf(path, sizeof path, "%s/state", f->dir);
    ok(sl_token_load(path, &b, err));
    assert_string_not_equal(a.text, b.text);
    assert_string_not_equal(a.cookie, b.cookie);
}

static void what_others_could_read_or_have_put_there_is_refused(void **state)
{
    struct fixture *f = *state;
    char path[128], other[128];
    struct sl_token t;
    struct sl_err e = {0};

    ok(sl_token_load(f->dir, &t, err));
    snprintf(path, sizeof path, "%s/token", f->dir);
    snprintf(other, sizeof other, "%s/other", f->dir);
    chmod(path, 0644);
    assert_int_equal(sl_token_load(f->dir, &t, &e), -1);
    assert_int_equal(e.code, SL_USAGE);
    chmod(path, 0600);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(sl_token_load(f->dir, &t, &e), -1);
    unlink(path);
    ok(sl_fs_write_atomic(path, "short\n", 6, 0600, err));
    assert_int_equal(sl_token_load(f->dir, &t, &e), -1);
    assert_int_equal(e.code, SL_USAGE);
}

static void makers_at_the_same_moment_agree(void **state)
{
    struct fixture *f = *state;
    struct sl_token mine = {0};
    pid_t pid[6];

    for (int i = 0; i < 6; i++)
        if ((pid[i] = fork()) == 0) {
            struct sl_token a, b;

            _exit(sl_token_load(f->dir, &a, NULL) || sl_token_load(f->dir, &b, NULL)
                  || strcmp(a.text, b.text));
        }
    for (int i = 0; i < 6; i++) {
        int status = -1;

        waitpid(pid[i], &status, 0);
        assert_int_equal(status, 0);
    }
    ok(sl_token_load(f->dir, &mine, err));
}

static void only_the_whole_token_is_right(void **state)
{
    struct fixture *f = *state;
    struct sl_token t;
    char twice[140];

    ok(sl_token_load(f->dir, &t, err));
    assert_true(sl_token_right(&t, t.text));
    assert_false(sl_token_right(&t, NULL));
    assert_false(sl_token_right(&t, ""));
    snprintf(twice, sizeof twice, "%s%s", t.text, t.text);
    assert_false(sl_token_right(&t, twice));
    for (int i = 0; i < 64; i++) {
        snprintf(twice, sizeof twice, "%s", t.text);
        twice[i] = twice[i] == '0' ? '1' : '0';
        assert_false(sl_token_right(&t, twice));
        twice[i] = '\0';
        assert_false(sl_token_right(&t, twice));
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(it_is_made_once_and_only_ours_to_read),
        T(what_others_could_read_or_have_put_there_is_refused),
        T(makers_at_the_same_moment_agree),
        T(only_the_whole_token_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
