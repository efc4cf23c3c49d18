noinst_LIBRARIES += libexecutor.a
libexecutor_a_SOURCES = \
	%D%/job.c %D%/job.h \
	%D%/job_keys.c %D%/job_keys.h \
	%D%/report.h \
	%D%/graph/graph.c %D%/graph/graph.h \
	%D%/graph/build.c %D%/graph/build.h \
	%D%/graph/ops.c %D%/graph/ops.h \
	%D%/graph/autodiff.c %D%/graph/autodiff.h \
	%D%/graph/recompute.c %D%/graph/recompute.h \
	%D%/graph/precision.c %D%/graph/precision.h \
	%D%/graph/shard.c %D%/graph/shard.h \
	%D%/graph/schedule.c %D%/graph/schedule.h \
	%D%/graph/persist.c %D%/graph/persist.h \
	%D%/graph/pack.c %D%/graph/pack.h \
	%D%/graph/memplan.c %D%/graph/memplan.h \
	%D%/models/models.c %D%/models/models.h \
	%D%/models/gpt.c \
	%D%/program.c %D%/program.h \
	%D%/plan.c %D%/plan.h \
	%D%/remedy.c %D%/remedy.h \
	%D%/ctl.c %D%/ctl.h \
	%D%/comm.c %D%/comm_shm.c %D%/comm_tcp.c %D%/comm.h %D%/comm_how.h \
	%D%/address.c %D%/address.h \
	%D%/links.c %D%/links.h \
	%D%/flow.c %D%/flow.h \
	%D%/optimizer.c %D%/optimizer.h \
	%D%/call.c %D%/call.h \
	%D%/run.c %D%/run.h \
	%D%/reporter.c %D%/reporter.h \
	%D%/memory.c %D%/memory.h \
	%D%/checkpoint/checkpoint.h \
	%D%/checkpoint/safetensors.c %D%/checkpoint/safetensors.h \
	%D%/checkpoint/layout.c %D%/checkpoint/layout.h \
	%D%/checkpoint/manifest.c %D%/checkpoint/manifest.h \
	%D%/checkpoint/fits.c \
	%D%/checkpoint/folder.c %D%/checkpoint/folder.h \
	%D%/checkpoint/pick.c \
	%D%/checkpoint/reader.c %D%/checkpoint/reader.h \
	%D%/checkpoint/load.c \
	%D%/checkpoint/shard_file.c %D%/checkpoint/shard_file.h \
	%D%/checkpoint/commit.c %D%/checkpoint/commit.h \
	%D%/checkpoint/export.c %D%/checkpoint/export.h \
	%D%/checkpoint/saver.c %D%/checkpoint/saver.h \
	%D%/train.c %D%/train.h \
	%D%/wireup.c %D%/wireup.h \
	%D%/rank.c %D%/rank.h
include %D%/data/local.mk
EXTRA_DIST += doc/design/executor.md doc/design/memory.md doc/checkpoints.md
