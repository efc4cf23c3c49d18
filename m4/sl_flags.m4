# SL_FLAGS
#
# C17, the warnings that the code is free of, and --enable-sanitizers=LIST.
# Sets SL_CFLAGS, SL_CXXFLAGS and SL_LDFLAGS; the user's own CFLAGS are left alone.
# -ffp-contract=off: a CPU kernel rounds after each operation, as its formula is written.
AC_DEFUN([SL_FLAGS], [
  SL_CFLAGS="-std=c17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
  SL_CFLAGS="$SL_CFLAGS -Wvla -ffp-contract=off"
  SL_CXXFLAGS="-std=c++17 -Wall -Wextra -fno-exceptions"
  SL_SAN=
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--disable-werror], [do not treat warnings as errors])],
    [], [enable_werror=yes])
  AS_IF([test "x$enable_werror" = xyes],
    [SL_CFLAGS="$SL_CFLAGS -Werror"; SL_CXXFLAGS="$SL_CXXFLAGS -Werror"])
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [e.g. address,undefined or thread])],
    [AS_IF([test "x$enable_sanitizers" != xno], [
       SL_SAN="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"
       SL_LDFLAGS="-fsanitize=$enable_sanitizers"])])
  SL_CFLAGS="$SL_CFLAGS $SL_SAN"
  SL_CXXFLAGS="$SL_CXXFLAGS $SL_SAN"
  AC_SUBST([SL_CFLAGS])
  AC_SUBST([SL_CXXFLAGS])
  AC_SUBST([SL_LDFLAGS])
])
