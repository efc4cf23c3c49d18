libexecutor_a_SOURCES += \
	%D%/dataset.c %D%/dataset.h \
	%D%/permute.c %D%/permute.h \
	%D%/prepare.c \
	%D%/text.c %D%/text.h \
	%D%/tokenizer.c %D%/tokenizer.h \
	%D%/tokens.c %D%/tokens.h \
	%D%/xxh64.c %D%/xxh64.h
