# Fuzz targets: with libFuzzer where configure was told so (script/fuzz), else over their corpora.
fuzz_targets = %D%/fuzz_job %D%/fuzz_tokens %D%/fuzz_text %D%/fuzz_http %D%/fuzz_api \
	%D%/fuzz_report %D%/fuzz_start %D%/fuzz_manifest %D%/fuzz_safetensors
fuzz_common = %D%/fuzz.c %D%/fuzz.h
if HAVE_FUZZER
noinst_PROGRAMS += $(fuzz_targets)
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
check_PROGRAMS += $(fuzz_targets)
fuzz_ldflags = $(AM_LDFLAGS)
fuzz_common += %D%/replay.c
endif
%C%_fuzz_job_SOURCES = %D%/fuzz_job.c $(fuzz_common)
%C%_fuzz_job_LDADD = $(sl_libs) -lm
%C%_fuzz_job_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_job_SOURCES = dummy.cxx
%C%_fuzz_tokens_SOURCES = %D%/fuzz_tokens.c $(fuzz_common)
%C%_fuzz_tokens_LDADD = $(sl_libs) -lm
%C%_fuzz_tokens_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_tokens_SOURCES = dummy.cxx
%C%_fuzz_text_SOURCES = %D%/fuzz_text.c $(fuzz_common)
%C%_fuzz_text_LDADD = $(sl_libs) -lm
%C%_fuzz_text_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_text_SOURCES = dummy.cxx
%C%_fuzz_http_SOURCES = %D%/fuzz_http.c $(fuzz_common)
%C%_fuzz_http_LDADD = $(sl_libs) -lm
%C%_fuzz_http_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_http_SOURCES = dummy.cxx
%C%_fuzz_report_SOURCES = %D%/fuzz_report.c $(fuzz_common)
%C%_fuzz_report_LDADD = $(sl_libs) -lm
%C%_fuzz_report_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_report_SOURCES = dummy.cxx
%C%_fuzz_start_SOURCES = %D%/fuzz_start.c $(fuzz_common)
%C%_fuzz_start_LDADD = $(sl_libs) -lm
%C%_fuzz_start_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_start_SOURCES = dummy.cxx
%C%_fuzz_api_SOURCES = %D%/fuzz_api.c $(fuzz_common)
%C%_fuzz_api_LDADD = $(sl_libs) -lm
%C%_fuzz_api_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_api_SOURCES = dummy.cxx
%C%_fuzz_manifest_SOURCES = %D%/fuzz_manifest.c $(fuzz_common)
%C%_fuzz_manifest_LDADD = $(sl_libs) -lm
%C%_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_manifest_SOURCES = dummy.cxx
%C%_fuzz_safetensors_SOURCES = %D%/fuzz_safetensors.c $(fuzz_common)
%C%_fuzz_safetensors_LDADD = $(sl_libs) -lm
%C%_fuzz_safetensors_LDFLAGS = $(fuzz_ldflags)
nodist_EXTRA_%C%_fuzz_safetensors_SOURCES = dummy.cxx
TESTS += %D%/corpora.sh
EXTRA_DIST += %D%/corpora.sh %D%/corpus %D%/dictionary
