# SL_ISA
#
# The instruction sets beyond the baseline that the CPU kernels are compiled for, where the compiler
# and the machine's family have them. Sets ISA_V3_CFLAGS, ISA_V4_CFLAGS, KERNELS_CPPFLAGS and the
# conditionals HAVE_ISA_V3 and HAVE_ISA_V4.
AC_DEFUN([SL_ISA_TRY], [
  AC_CACHE_CHECK([whether $CC compiles for $1], [sl_cv_isa_$2], [
    sl_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $1 -Werror"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[]], [[
#ifndef __x86_64__
#error not x86-64
#endif
    ]])], [sl_cv_isa_$2=yes], [sl_cv_isa_$2=no])
    CFLAGS=$sl_saved_CFLAGS])
])
AC_DEFUN([SL_ISA], [
  KERNELS_CPPFLAGS=
  ISA_V3_CFLAGS="-march=x86-64-v3"
  ISA_V4_CFLAGS="-march=x86-64-v4 -mprefer-vector-width=512"
  SL_ISA_TRY([$ISA_V3_CFLAGS], [v3])
  SL_ISA_TRY([$ISA_V4_CFLAGS], [v4])
  AS_IF([test $sl_cv_isa_v3 = yes], [KERNELS_CPPFLAGS="$KERNELS_CPPFLAGS -DSL_HAVE_V3=1"])
  AS_IF([test $sl_cv_isa_v4 = yes], [KERNELS_CPPFLAGS="$KERNELS_CPPFLAGS -DSL_HAVE_V4=1"])
  AM_CONDITIONAL([HAVE_ISA_V3], [test $sl_cv_isa_v3 = yes])
  AM_CONDITIONAL([HAVE_ISA_V4], [test $sl_cv_isa_v4 = yes])
  dnl GCC's word for it; clang weighs by itself.
  AC_CACHE_CHECK([whether $CC takes -fvect-cost-model], [sl_cv_vect], [
    sl_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fvect-cost-model=dynamic -Werror"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [sl_cv_vect=yes], [sl_cv_vect=no])
    CFLAGS=$sl_saved_CFLAGS])
  AS_IF([test $sl_cv_vect = yes], [VECT_CFLAGS=-fvect-cost-model=dynamic], [VECT_CFLAGS=])
  AC_SUBST([VECT_CFLAGS])
  AC_SUBST([KERNELS_CPPFLAGS])
  AC_SUBST([ISA_V3_CFLAGS])
  AC_SUBST([ISA_V4_CFLAGS])
])
