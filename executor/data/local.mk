libexecutor_a_SOURCES += \
	%D%/dataset.h \
	%D%/permute.h \
	%D%/text.h \
	%D%/tokenizer.h \
	%D%/tokens.h
