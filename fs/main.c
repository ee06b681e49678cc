/* SPDX-License-Identifier: MIT */
/*
 * kpackfs: mounts archives as a read-only tree.  The directory's map:
 *
 *   main.c      mount, loop
 *   settings.c  the command line
 *   daemon.c    the way into the background
 *   sources.c   opens the archives to serve
 *   origin.c    an archive, and whether its file is unchanged
 *   arches.c    whose code is shown
 *   subdir.c    the directory that is the root
 *   ops.c       one function per request
 *   edition.c   what is shown between two changes of the sources
 *   tree.c      its inode numbers and their attributes
 *   inodes.c    what numbers stand for, and how many the kernel knows
 *   retired.c   those of editions that were
 *   content.c   reads, answered from bytes that are decoded once
 *   pieces.c    those bytes, and how many of them are kept
 *   buffer.c    memory for them, reused
 *   tables.c    chunk tables that are kept open
 *   control.c   the files of .kpackfs
 *   log.c       messages: stderr or syslog
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "daemon.h"
#include "log.h"
#include "ops.h"
#include "settings.h"
#include "sources.h"

/* For each end of a run: ours, and those mount(8) knows. */
static const int exit_codes[2][4] = {{0, 2, 1, 1}, {0, 1, 2, 32}};

static int exit_code(const struct settings *s, enum end end)
{
	return exit_codes[s->helper][end];
}

static bool report(const struct kpackx_error *why)
{
	log_print(LOG_ERR, "%s", why->text);
	return false;
}

/*
 * Building takes and frees large blocks: they are used again, for the system clears new ones.
 * What building needed and serving does not is given back in the end.
 */
static void keep_memory(bool building)
{
	mallopt(M_MMAP_THRESHOLD, building ? 32 << 20 : 4 << 20);
	mallopt(M_TRIM_THRESHOLD, building ? INT_MAX : 4 << 20);
	if (!building)
		malloc_trim(0);
}

static void let_go(void *user, const struct origin *o)
{
	struct fs *fs = user;

	if (fs->content)
		content_forget(fs->content, o);
}

/* Everything before the mount: no thread runs yet. */
static bool prepare(struct fs *fs, const struct settings *s)
{
	struct edition_options options = {
		.arches = &s->arches,
		.subdir = s->subdir,
		.look = s->look,
		.first = true,
	};
	struct holdings holdings = {0};
	struct edition *first;

	keep_memory(true);
	if (!sources_open(&holdings, s->sources.list, s->sources.count)) {
		holdings_fini(&holdings);
		return false;
	}
	first = edition_new(&holdings, &options, NULL);
	if (!first)
		return false;
	fs->inodes = inodes_new(first, let_go, fs);
	fs->always_open = s->always_open;
	keep_memory(false);
	return fs->inodes;
}

static bool start(struct fs *fs, const struct settings *s)
{
	struct content_options options = {
		.budget = s->cache_size,
		.threads = s->threads,
		.answer = op_read_answer,
		.failure = op_read_failure,
		.user = fs,
	};
	struct control_subject about = {
		.arches = &s->arches,
		.subdir = s->subdir,
		.inodes = fs->inodes,
		.answer = op_read_answer,
	};
	struct kpackx_error why = {0};

	if (content_new(&options, &fs->content, &why))
		return report(&why);
	about.content = fs->content;
	if (control_new(&about, &fs->control, &why))
		return report(&why);
	return true;
}

/* The first request is INIT: when it was answered, the mount works. */
static bool answer_init(struct fuse_session *se)
{
	struct fuse_buf buf = {0};
	int n;

	do {
		n = fuse_session_receive_buf(se, &buf);
	} while (n == -EINTR && !fuse_session_exited(se));
	if (n > 0)
		fuse_session_process_buf(se, &buf);
	free(buf.mem);
	return n > 0 && !fuse_session_exited(se);
}

static int loop(struct fuse_session *se, const struct settings *s)
{
	struct fuse_loop_config *config;
	int err;

	if (s->single)
		return fuse_session_loop(se);
	config = fuse_loop_cfg_create();
	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, s->clone_fd);
	if (s->max_threads)
		fuse_loop_cfg_set_max_threads(config, s->max_threads);
	err = fuse_session_loop_mt(se, config);
	fuse_loop_cfg_destroy(config);
	return err;
}

static void log_mounted(const struct fs *fs, const struct settings *s)
{
	struct edition *e = inodes_edition(fs->inodes);
	size_t size;
	char *arches = NULL;
	FILE *f = open_memstream(&arches, &size);

	if (f) {
		arches_put(&s->arches, f);
		fclose(f);
	}
	for (char *c = arches; c && *c; c++)
		*c = *c == '\n' && c[1] ? ',' : *c == '\n' ? '\0' : *c;
	log_print(LOG_INFO, "mounted %zu archives, %u files, architectures: %s",
		  e->holdings.count, tree_file_count(e->tree),
		  arches && *arches ? arches : "none");
	edition_unref(e);
	free(arches);
}

static enum end serve_session(struct fs *fs, struct fuse_session *se,
			      const struct settings *s, struct daemon *d)
{
	enum end end = SYSTEM;

	if (fuse_set_signal_handlers(se))
		return SYSTEM;
	if (fuse_session_mount(se, s->mountpoint)) {
		log_about(LOG_ERR, s->mountpoint, "cannot mount");
		fuse_remove_signal_handlers(se);
		return NO_MOUNT;
	}
	if (start(fs, s) && answer_init(se)) {
		log_mounted(fs, s);
		if (d)
			daemon_detach(d);
		/* A signal ends the loop too, and that is no failure. */
		end = loop(se, s) >= 0 ? OK : SYSTEM;
	}
	/* First who answers requests of the session: checksums, then the decoders they need. */
	control_free(fs->control);
	fs->control = NULL;
	content_free(fs->content);
	fs->content = NULL;
	fuse_session_unmount(se);
	fuse_remove_signal_handlers(se);
	return end;
}

static enum end serve(struct settings *s, struct daemon *d)
{
	struct fs fs = {0};
	struct fuse_session *se = NULL;
	enum end end = NO_MOUNT;

	if (!prepare(&fs, s))
		goto out;
	se = fuse_session_new(&s->args, &ops, sizeof(ops), &fs);
	if (!se)
		goto out;
	end = serve_session(&fs, se, s, d);
	fuse_session_destroy(se);
out:
	control_free(fs.control);
	inodes_free(fs.inodes);
	return end;
}

static int serve_in_background(struct settings *s)
{
	struct daemon d;
	int code;

	if (!daemon_fork(&d))
		return exit_code(s, SYSTEM);
	if (d.child == 0)
		return exit_code(s, serve(s, &d));
	code = daemon_await(&d);
	return code < 0 ? exit_code(s, SYSTEM) : code;
}

/* Every archive needs a descriptor. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void __attribute__((format(printf, 2, 0)))
log_libfuse(enum fuse_log_level level, const char *fmt, va_list args)
{
	char line[1024], *end;

	vsnprintf(line, sizeof(line), fmt, args);
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	/* Debug lines were asked for with -d. */
	log_print(level > FUSE_LOG_WARNING ? LOG_WARNING : (int)level, "%s", line);
}

int main(int argc, char **argv)
{
	struct settings s = {0};
	enum end end;
	int code;

	if (argc < 1 || !daemon_reserve_fds())
		return 1;
	fuse_set_log_func(log_libfuse);
	end = settings_parse(&s, argc, argv);
	code = exit_code(&s, end);
	if (end != OK || s.fake)
		goto out;
	raise_file_limit();
	if (s.help || s.version)
		code = settings_show(&s);
	else if (s.foreground)
		code = exit_code(&s, serve(&s, NULL));
	else
		code = serve_in_background(&s);
out:
	settings_free(&s);
	return code;
}
