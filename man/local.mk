# The manual and bash's completions: templates here, their tables from the program's own (pages.c).
# A release ships the pages made; they are made again when what they are made from is newer.
noinst_PROGRAMS += %D%/pages
%C%_pages_SOURCES = %D%/pages.c $(cli_sources)
%C%_pages_LDADD = $(sl_libs)
nodist_EXTRA_%C%_pages_SOURCES = dummy.cxx

man_pages = %D%/shardlaunch.1 %D%/shardlaunch.toml.5
man_tables = %D%/pages.c configure.ac $(cli_sources) \
	executor/job_keys.c executor/job.h common/conf_say.c
dist_man_MANS += $(man_pages)
completionsdir = $(datadir)/bash-completion/completions
dist_completions_DATA = share/completions/shardlaunch
EXTRA_DIST += %D%/shardlaunch.1.in %D%/shardlaunch.toml.5.in share/completions/shardlaunch.in
# Written beside and renamed: an interrupted build leaves no half page that looks new.
man_make = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(builddir)/%D%/pages$(EXEEXT) <$(srcdir)/$@.in >$@.tmp \
	&& mv $@.tmp $@

%D%/shardlaunch.1: %D%/shardlaunch.1.in $(man_tables) | %D%/pages$(EXEEXT)
	$(man_make)
%D%/shardlaunch.toml.5: %D%/shardlaunch.toml.5.in $(man_tables) | %D%/pages$(EXEEXT)
	$(man_make)
share/completions/shardlaunch: share/completions/shardlaunch.in $(man_tables) | %D%/pages$(EXEEXT)
	$(man_make)

# Not in CLEANFILES: a release has them in its sources. Out of tree they are ours to remove.
clean-local:
	test $(srcdir) = $(builddir) || rm -f $(man_pages) $(dist_completions_DATA)
