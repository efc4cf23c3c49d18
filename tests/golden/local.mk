check_LIBRARIES += %D%/libgolden.a
%C%_libgolden_a_SOURCES = %D%/golden.c %D%/golden.h
EXTRA_DIST += %D%/README.md %D%/gpt.py %D%/tied.bin %D%/tied.txt %D%/untied.bin %D%/untied.txt
