/* SPDX-License-Identifier: MIT */
/*
 * The server's life, from top to bottom: the first edition, before there is a mount; the
 * mount; the sandbox; INIT, the first request; the threads of cache, reload and memory
 * pressure; the loop that answers requests; and their end in the reverse order.  The
 * functions before are what these threads call back.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "read_error_log.h"
#include "fs/base/daemon.h"
#include "fs/base/process_link.h"
#include "fs/base/log.h"
#include "fs/base/mount_point.h"
#include "fs/fuse/ops.h"
#include "memory_pressure.h"
#include "reload.h"
#include "fs/base/sandbox.h"
#include "session.h"
#include "core/archive/naming.h"
#include "core/base/mountinfo.h"

struct session {
	struct settings *s;
	struct fs fs;
	struct read_error_log read_errors;
	pthread_mutex_t reload_lock; /* guards `reload`: decoders use it during its end */
	struct reload *reload;
	struct pressure *pressure;
	int link;
	bool by_place; /* mounted on an open directory */
};

/*
 * The most lines about files that cannot be read, and the seconds in which they may come.
 */
#define READ_ERRORS_MAX 20
#define READ_ERRORS_SECONDS 60

/* Editions. */

static void forget_origin(void *user, const struct origin *o)
{
	struct fs *fs = user;

	if (fs->content)
		content_forget(fs->content, o);
}

/* Do everything that comes before the mount; no thread runs yet. */
static bool prepare_edition(struct session *session)
{
	const struct settings *s = session->s;
	const struct edition_options look = {
		.arches = &s->arches,
		.subdir = s->subdir,
		.look = s->look,
		.shared = s->shared,
		.bundles = s->bundles,
	};
	struct edition *first;

	session->reload = reload_new(session->link, &look, &session->fs);
	first = session->reload ? reload_first(session->reload) : NULL;
	if (!first)
		return false;
	session->fs.inodes = inodes_new(first, forget_origin, &session->fs);
	session->fs.always_open = s->always_open;
	return session->fs.inodes;
}

/* Reads. */

static void read_failed(void *user, struct origin_entry what,
			const struct kpackx_error *why)
{
	struct session *session = user;

	read_error_log_add(&session->read_errors, what, why);
}

static void archive_changed(void *user, struct origin *o)
{
	struct session *session = user;

	(void)o;
	pthread_mutex_lock(&session->reload_lock);
	if (session->reload)
		reload_rescan(session->reload);
	pthread_mutex_unlock(&session->reload_lock);
}

static bool ask_to_look(void *user)
{
	struct session *session = user;
	bool asked;

	pthread_mutex_lock(&session->reload_lock);
	asked = session->reload && reload_look(session->reload);
	pthread_mutex_unlock(&session->reload_lock);
	return asked;
}

static void stop_reload(struct session *session)
{
	struct reload *reload = session->reload;

	pthread_mutex_lock(&session->reload_lock);
	session->reload = NULL;
	pthread_mutex_unlock(&session->reload_lock);
	reload_free(reload);
}

static void shrink_content(void *content, unsigned percent)
{
	content_shrink(content, percent);
}

static bool start_services(struct session *session)
{
	const struct settings *s = session->s;
	struct fs *fs = &session->fs;
	struct content_options options = {
		.budget = pressure_budget(session->pressure, s->cache_size),
		.executor = executor_threads(s->threads),
		.ahead = s->threads > 1 && !s->no_ahead,
		.answer = op_read_answer,
		.failure = read_failed,
		.changed = archive_changed,
		.user = session,
	};
	struct control_subject about = {
		.arches = &s->arches,
		.subdir = s->subdir,
		.sandbox = sandbox_parts(),
		.inodes = fs->inodes,
		.answer = op_read_answer,
		.ask = ask_to_look,
		.user = session,
	};
	struct kpackx_error why = {0};

	if (!content_new(&options, &fs->content, &why)) {
		about.content = fs->content;
		control_new(&about, &fs->control, &why);
	}
	if (why.code) {
		log_print(LOG_ERR, "%s", why.text);
		return false;
	}
	return reload_start(session->reload) &&
	       pressure_start(session->pressure, shrink_content, fs->content);
}

/* The mount. */

/*
 * The minor of the device of the mount with the connection FD, without asking the mount;
 * 0: unknown.
 */
static unsigned minor_of(int fd)
{
	long device = kp_fd_info(fd, "fuse_connection:");

	return device < 0 ? 0 : (unsigned)(device & 0xfffff);
}

static void report_mounted(const struct session *session)
{
	const int connection = fuse_session_fd(session->fs.session);
	const struct link_message m = {
		.word = LINK_MOUNTED,
		.number = minor_of(connection),
		.fd = connection,
	};

	link_send_all(session->link, &m);
}

/* Answer the first request, which is INIT: then the mount works. */
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

static void report_ready(const struct session *session)
{
	struct edition *e = inodes_edition(session->fs.inodes);
	char *arches = arches_line_new(&session->s->arches, ","), text[1024];
	const struct link_message m = {.word = LINK_READY, .fd = -1, .text = text};

	snprintf(text, sizeof(text), "%zu archives, %u files, architectures: %s",
		 e->holdings.count, tree_file_count(e->tree), arches ? arches : "none");
	edition_unref(e);
	free(arches);
	link_send_all(session->link, &m);
}

/* Signals. */

static struct {
	int link;
	struct fuse_session *se;
} signalled;

/*
 * Pass a signal on to the supervisor, which unmounts, and so ends the loop.  Signals from
 * the terminal are not passed on: the supervisor gets them, too.  If the supervisor has
 * gone, end the loop here.
 */
static void pass_on_signal(int number, siginfo_t *info, void *context)
{
	const struct link_message m = {
		.word = LINK_SIGNAL, .number = (uint64_t)number, .fd = -1};
	int saved = errno;

	(void)context;
	if (info->si_code != SI_KERNEL && link_send(signalled.link, &m) == LINK_OVER &&
	    number != SIGHUP)
		fuse_session_exit(signalled.se);
	errno = saved;
}

static void catch_signals(const struct session *session)
{
	struct sigaction action = {.sa_sigaction = pass_on_signal,
				   .sa_flags = SA_SIGINFO};

	signalled.link = session->link;
	signalled.se = session->fs.session;
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Until libfuse 3.12 a loop has no limit of threads: it ends those that are idle. */
static int run_threads(struct fuse_session *se, const struct settings *s)
{
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 12)
	struct fuse_loop_config config = {
		.clone_fd = s->clone_fd,
		.max_idle_threads = s->max_threads ? s->max_threads : 10,
	};

	return fuse_session_loop_mt(se, &config);
#else
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int err;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, s->clone_fd);
	if (s->max_threads)
		fuse_loop_cfg_set_max_threads(config, s->max_threads);
	err = fuse_session_loop_mt(se, config);
	fuse_loop_cfg_destroy(config);
	return err;
#endif
}

static enum end serve_mount(struct session *session)
{
	const struct settings *s = session->s;
	const struct sandbox_options sandbox = {
		.clone_fd = s->clone_fd,
		.io_uring = s->io_uring,
	};
	int null = -1, result;
	sigset_t signals;

	session->pressure = pressure_open("");
	if (!session->pressure || (!s->foreground && !daemon_open(&null)))
		return SYSTEM;
	/* The sandbox comes first: answering INIT may start threads of the library. */
	if ((!s->no_sandbox && !sandbox_enter(&sandbox)) ||
	    !answer_init(session->fs.session) || !start_services(session))
		return SYSTEM;
	catch_signals(session);
	if (!s->foreground)
		daemon_leave(null);
	report_ready(session);
	/* only this thread takes signals: it waits for the end of the loop, and they wake
	 * it */
	sigemptyset(&signals);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	/* If a signal ended the loop, that is no failure. */
	result = s->single ? fuse_session_loop(session->fs.session)
			   : run_threads(session->fs.session, s);
	/* the session ends already: signals have nothing to end any more */
	sigfillset(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return result >= 0 ? OK : SYSTEM;
}

/*
 * Let libfuse free what it knows of the mount, and not unmount: the number of its
 * descriptor may lead elsewhere now.  It unmounts nothing if the connection has ended, and
 * a pipe without a reader looks like one.
 */
static void forget_mount(struct fuse_session *se)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	if (dup3(ends[1], fuse_session_fd(se), O_CLOEXEC) >= 0)
		fuse_session_unmount(se);
	close(ends[1]);
}

/*
 * End the mount.  What root mounted on a descriptor is unmounted by the supervisor, which
 * looks for it in the mount table, or here if that has gone; the sandbox forbids it here.
 */
static void unmount_session(struct session *session)
{
	const int connection = fuse_session_fd(session->fs.session);
	const struct mount_point m = {.minor = minor_of(connection),
				      .connection = connection,
				      .path = session->s->mountpoint};

	if (session->by_place && session->s->no_sandbox)
		mount_point_unmount(&m, true);
	if (session->by_place)
		forget_mount(session->fs.session);
	else
		fuse_session_unmount(session->fs.session);
}

/* Whether the mount covers nothing that it does not show, or is to do so. */
static bool may_cover(const struct session *session)
{
	const struct settings *s = session->s;
	struct edition *e;
	int dir = s->place;
	bool fine;

	if (s->nonempty || strncmp(s->mountpoint, "/dev/fd/", 8) == 0)
		return true;
	if (!dir)
		dir = open(s->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return true; /* mounting fails, and says why */
	e = inodes_edition(session->fs.inodes);
	fine = covered_check(dir, s->mountpoint, e);
	edition_unref(e);
	if (dir != s->place)
		close(dir);
	return fine;
}

static enum end mount_and_serve(struct session *session)
{
	const char *place = session->s->mountpoint;
	char open[32];
	enum end end;

	if (!may_cover(session))
		return NO_MOUNT;
	/* root mounts on what is open: another user may have exchanged the path meanwhile */
	session->by_place = session->s->place != 0;
	if (session->by_place) {
		snprintf(open, sizeof(open), "/proc/self/fd/%d", session->s->place);
		place = open;
	}
	if (fuse_session_mount(session->fs.session, place)) {
		log_about(LOG_ERR, session->s->mountpoint, "cannot mount");
		return NO_MOUNT;
	}
	settings_leave_place(session->s);
	report_mounted(session);
	end = serve_mount(session);
	/*
	 * Stop these before the session is destroyed: the decoders answer requests of the session.
	 */
	stop_reload(session);
	control_free(session->fs.control);
	session->fs.control = NULL;
	pressure_free(session->pressure);
	content_free(session->fs.content);
	session->fs.content = NULL;
	unmount_session(session);
	return end;
}

enum end session_serve(struct settings *s, int link)
{
	struct session session = {.s = s, .link = link};
	struct fuse_lowlevel_ops chosen = ops;
	enum end end = NO_MOUNT;

	if (s->xattr)
		xattrs_add(&chosen);
	pthread_mutex_init(&session.reload_lock, NULL);
	read_error_log_init(&session.read_errors, READ_ERRORS_MAX, READ_ERRORS_SECONDS);
	if (!prepare_edition(&session))
		goto out;
	session.fs.session =
		fuse_session_new(&s->args, &chosen, sizeof(chosen), &session.fs);
	if (!session.fs.session)
		goto out;
	end = mount_and_serve(&session);
	fuse_session_destroy(session.fs.session);
out:
	reload_free(session.reload);
	inodes_free(session.fs.inodes);
	read_error_log_fini(&session.read_errors);
	pthread_mutex_destroy(&session.reload_lock);
	return end;
}
