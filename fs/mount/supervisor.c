/* SPDX-License-Identifier: MIT */
/*
 * The supervisor is one loop over four descriptors: signals, the link to the server,
 * inotify, and the mount table; and over some timers.
 *
 * Its states are STARTING until the server answers requests, SERVING, and STOPPING as soon
 * as the mount is to go; it is over when the server has ended, or is left alone with files
 * that are in use.  A scan of the sources is due some time after an event, at intervals
 * where events may be missed, or at once when somebody waits for it; its result, the
 * survey, is sent to the server item by item, as fast as the server takes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/base/clock.h"
#include "fs/base/process_link.h"
#include "fs/base/log.h"
#include "fs/base/mount_point.h"
#include "sd_notify.h"
#include "supervisor.h"
#include "inotify.h"
#include "sources.h"

/* Milliseconds. */
#define QUIET 100      /* a scan starts after this time without events */
#define PATIENCE 10000 /* but no later than this time after the first event */
#define BLIND 10000    /* between scans if changes may go unnoticed */
#define SAME 500       /* in which several signals to stop count as one */

#define PLACES_MAX 64 /* the most places of one mount that are unmounted */

/* The scans of the sources. */
struct rescan {
	struct watch *watch;
	bool logged_blind; /* it was logged that changes may go unnoticed */
	struct source_list survey;
	size_t next;        /* next item of the survey to send */
	bool sending;       /* the survey is not sent completely */
	bool forced;        /* the scan that is due includes refused archives */
	bool asked;         /* the server waits for the end of the scan that is due */
	bool answering;     /* that scan is done, and the answer not sent */
	bool fine;          /* the answer: it succeeded */
	int64_t first, due; /* time of the first event since the last scan; of the scan */
	int64_t next_poll;
};

struct supervisor {
	const struct supervisor_options *o;
	struct supervised server;
	struct mount_point mounted;
	int signals;
	enum { STARTING, SERVING, STOPPING } state;
	bool served, lazy, over;
	enum end end;

	struct rescan lookout;
	bool reloading; /* the manager waits for the end of a reload */

	int64_t next_ping, next_expire;
	uint64_t requests;
	int64_t used;   /* when their number last grew */
	int64_t signal; /* when the first signal to stop came */
	pid_t preload;  /* 0: none */
	struct link_buffer room;
};

/* --- scans ---------------------------------------------------------------------------- */

static void name_archive(void *watch, const char *path)
{
	watch_archive(watch, path);
}

/* The scan is done: a server that asked for it is to be answered behind its survey. */
static void answer_asker(struct rescan *l, bool fine)
{
	if (!l->asked)
		return;
	l->asked = false;
	l->answering = true;
	l->fine = fine;
}

/*
 * Scan now; FIRST: a source that cannot be listed is a failure.  If something changed, or
 * the scan is the first or a forced one, the survey is to be sent.  false: it failed; logged.
 */
static bool scan_sources(struct supervisor *s, bool first)
{
	struct rescan *l = &s->lookout;
	const struct source_list_options options = {
		.sources = s->o->sources->list,
		.count = s->o->sources->count,
		.first = first,
		.forced = l->forced,
		.hook = name_archive,
		.user = l->watch,
	};
	int64_t interval = (int64_t)s->o->poll * 1000;
	bool changed = false, ok;
	const char *blind;

	/* watches first, then the scan: a change in between causes another scan */
	watch_begin(l->watch);
	for (size_t i = 0; i < options.count; i++)
		watch_source(l->watch, options.sources[i]);
	ok = source_list_run(&l->survey, &options, &changed);
	watch_end(l->watch);
	blind = watch_blind(l->watch);
	if (blind && !interval) {
		interval = BLIND;
		if (!l->logged_blind)
			log_print(LOG_WARNING,
				  "%s: the sources are looked at every %d seconds, see "
				  "-o poll=SECONDS",
				  blind, BLIND / 1000);
		l->logged_blind = true;
	}
	l->forced = false;
	answer_asker(l, ok);
	l->first = l->due = CLOCK_NEVER;
	l->next_poll = interval ? clock_ms() + interval : CLOCK_NEVER;
	if (ok && (changed || options.forced || first)) {
		l->sending = true;
		l->next = 0;
	}
	return ok;
}

/*
 * Something may have changed: make a scan due when there are no more events, or after
 * some seconds.
 */
static void note_change(struct rescan *l)
{
	int64_t now = clock_ms();

	if (l->due == 0) /* somebody waits for it */
		return;
	if (l->first == CLOCK_NEVER)
		l->first = now;
	l->due = now + QUIET;
	if (l->due > l->first + PATIENCE)
		l->due = l->first + PATIENCE;
}

/* When a scan is due, as clock_ms; CLOCK_NEVER until all of the last survey is sent. */
static int64_t scan_due(const struct rescan *l)
{
	if (l->sending)
		return CLOCK_NEVER;
	return l->due < l->next_poll ? l->due : l->next_poll;
}

/* Send the next archive of the survey, or its end. */
static enum link_result send_next(struct rescan *l, int link)
{
	struct kpackx_error why = {0};
	struct link_message m = {
		.word = LINK_SURVEYED,
		.number = l->survey.count,
		.fd = -1,
		.st = l->survey.look,
	};
	enum link_result r;

	if (l->next < l->survey.count) {
		struct source_list_item *item = &l->survey.items[l->next];

		m = (struct link_message){
			.word = LINK_ARCHIVE,
			.serial = item->serial,
			.number = item->was,
			.fresh = item->fresh,
			.fd = -1,
			.path = item->path,
			.text = item->error,
		};
		if (item->fresh) {
			m.fd = source_list_open(item, &why);
			m.text = why.text;
		}
	}
	r = link_send(link, &m);
	if (m.fd >= 0)
		close(m.fd);
	return r;
}

/* Send as much of the survey, and the answer, as possible without waiting. */
static void send_survey(struct rescan *l, int link)
{
	const struct link_message answer = {
		.word = LINK_SEEN, .number = l->fine, .fd = -1};

	while (l->sending && send_next(l, link) == LINK_DONE)
		l->sending = l->next++ < l->survey.count;
	if (!l->sending && l->answering)
		l->answering = link_send(link, &answer) != LINK_DONE;
}

/* --- reading files in advance, in a process of its own -------------------------------- */

/* Read a file into the page cache.  The server logs failures to read. */
static void load_file(const char *path)
{
	static char bytes[128 << 10];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return;
	do {
		n = read(fd, bytes, sizeof(bytes));
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(fd);
}

/*
 * Read the files of the mount M whose paths match one of the patterns, as in fnmatch(3), with
 * * and ? matching no slash.  A pattern that matches no file is logged.
 */
static void preload_files(const struct mount_point *m, const struct strings *patterns)
{
	int root = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[32], *roots[] = {path, NULL};
	size_t skip;
	bool *had = calloc(patterns->count, sizeof(*had));
	const struct sched_param lowest = {0};
	struct stat st;
	FTSENT *e;
	FTS *fts;

	if (nice(19) == -1 || sched_setscheduler(0, SCHED_IDLE, &lowest))
		log_print(LOG_INFO, "preload: cannot lower its priority");
	if (root < 0 || fstat(root, &st) ||
	    (m->minor && st.st_dev != makedev(0, m->minor))) {
		log_about(LOG_WARNING, m->path, "preload: is not the mount");
		return;
	}
	/* a path to the root of M that nobody can lead elsewhere */
	skip = (size_t)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", root);
	fts = had ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
	while (fts && (e = fts_read(fts))) {
		const char *name = e->fts_path + skip;
		bool wanted = false;

		if (e->fts_info != FTS_F)
			continue;
		name += strspn(name, "/");
		for (size_t i = 0; i < patterns->count; i++) {
			const char *pattern = patterns->list[i];

			pattern += strspn(pattern, "/");
			if (fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0)
				wanted = had[i] = true;
		}
		if (wanted)
			load_file(e->fts_accpath);
	}
	if (fts)
		fts_close(fts);
	for (size_t i = 0; had && i < patterns->count; i++)
		if (!had[i])
			log_about(LOG_WARNING, patterns->list[i],
				  "preload: no file matches");
}

static void end_preload(struct supervisor *s)
{
	if (s->preload <= 0)
		return;
	kill(s->preload, SIGKILL);
	while (waitpid(s->preload, NULL, 0) < 0 && errno == EINTR)
		continue;
	s->preload = 0;
}

static void start_preload(struct supervisor *s)
{
	sigset_t none;

	if (s->o->preload->count == 0 || s->state != SERVING)
		return;
	end_preload(s);
	s->preload = fork();
	if (s->preload < 0)
		log_about(LOG_WARNING, "preload", strerror(errno));
	if (s->preload != 0)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* the other sides of these would not notice their end otherwise */
	close(s->server.link);
	close(s->mounted.connection);
	preload_files(&s->mounted, s->o->preload);
	/* _exit, so that unflushed output of the parent is not written twice. */
	_exit(0);
}

/* --- stopping ------------------------------------------------------------------------- */

static void kill_server(struct supervisor *s)
{
	kill(s->server.pid, SIGKILL);
}

/*
 * Unmount the mount at one place.  If it is busy, unmount lazily: the name goes at once,
 * the mount itself when it is not used any more.
 */
static bool unmount_once(struct supervisor *s)
{
	enum unmount u = mount_point_unmount(&s->mounted, false);

	if (u == UNMOUNT_BUSY) {
		log_about(LOG_WARNING, s->o->mountpoint,
			  "busy: unmounted lazily; open files are served until closed");
		u = mount_point_unmount(&s->mounted, true);
		s->lazy = u == UNMOUNT_DONE;
	}
	if (u != UNMOUNT_DONE)
		log_print(LOG_ERR, "cannot unmount %s: %s; ending the server anyway",
			  s->o->mountpoint, strerror(errno));
	return u == UNMOUNT_DONE;
}

/* Unmount all places, as the mount may be bound to several; then the server ends. */
static void unmount_all(struct supervisor *s)
{
	const struct link_message leaving = {.word = LINK_LEAVING, .fd = -1};
	bool there = mount_point_is(&s->mounted), done = there;

	for (int i = 0; done && there && i < PLACES_MAX; i++) {
		done = unmount_once(s);
		there = mount_point_is(&s->mounted);
	}
	if (!done) {
		/* Either the mount was unmounted from outside, and files that are still
		 * open must not keep us running; or we could not unmount it. */
		kill_server(s);
	} else if (s->lazy && notify_is_heard()) {
		/* Files are in use, perhaps for days; a manager would wait for this process,
		 * and kill it in the end: leave the server alone with them. */
		link_send(s->server.link, &leaving);
		s->over = true;
		s->end = OK;
	}
}

static void begin_stop(struct supervisor *s)
{
	s->signal = clock_ms();
	notify_stopping();
	end_preload(s);
	if (s->state == STARTING)
		kill_server(s);
	else
		unmount_all(s);
	s->state = STOPPING;
}

static void take_signal(struct supervisor *s, int number)
{
	if (number == SIGHUP && s->state == SERVING) {
		s->reloading = true;
		notify_reloading();
		s->lookout.forced = true;
		s->lookout.due = 0;
	}
	if (number != SIGTERM && number != SIGINT)
		return;
	/* A later signal kills the server.  Terminals and service managers signal both
	 * processes, and the server passes its signal on: two within SAME count as one. */
	if (s->state != STOPPING)
		begin_stop(s);
	else if (clock_ms() - s->signal > SAME)
		kill_server(s);
}

/*
 * Close the connection: as long as a process holds it, unanswered requests keep waiting.
 */
static void leave_connection(struct supervisor *s)
{
	if (s->mounted.connection >= 0)
		close(s->mounted.connection);
	s->mounted.connection = -1;
}

/*
 * The server has ended: unmount, if that is not done yet.  A server that ended with OK
 * did so because the kernel reported the unmount: then a mount at the path is another
 * one, even if the system gave it the same device number.
 */
static void take_end(struct supervisor *s, int status)
{
	bool well = WIFEXITED(status) && WEXITSTATUS(status) <= NO_MOUNT;
	bool gone = WIFEXITED(status) && WEXITSTATUS(status) == OK, there;

	s->over = true;
	s->end = well ? (enum end)WEXITSTATUS(status) : SYSTEM;
	if (s->state == STOPPING) {
		s->end = s->served ? OK : SYSTEM;
	} else if (WIFSIGNALED(status)) {
		log_print(LOG_ERR, "the server died of signal %d", WTERMSIG(status));
	} else if (!well) {
		log_print(LOG_ERR, "the server ended with status %d",
			  WEXITSTATUS(status));
	}
	there = !gone &&
		(s->mounted.connection >= 0 || s->mounted.minor || s->state != STARTING);
	there = there && mount_point_is(&s->mounted);
	/* First release the requests that wait, which no process answers any more; the
	 * preloader's are among them. */
	leave_connection(s);
	end_preload(s);
	/* Without its connection a mount keeps its device until it is unmounted. */
	if (there && mount_point_unmount(&s->mounted, true) != UNMOUNT_DONE)
		log_about(LOG_ERR, s->o->mountpoint, "cannot unmount");
}

/* --- signals -------------------------------------------------------------------------- */

/* The signals that are messages. */
static sigset_t message_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	return set;
}

void supervisor_block_signals(void)
{
	sigset_t set = message_signals();

	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that is full is no reason to end the mount */
}

static void read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		int number = (int)info.ssi_signo;

		/* The kernel sends SIGHUP when the terminal has gone: then stop, as no
		 * user asks for a reload. */
		if (number == SIGHUP && info.ssi_code == SI_KERNEL)
			number = SIGTERM;
		if (number != SIGCHLD) {
			take_signal(s, number);
			continue;
		}
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == s->preload)
				s->preload = 0;
			else if (pid == s->server.pid)
				take_end(s, status);
		}
	}
}

/* --- messages from the server --------------------------------------------------------- */

static void begin_service(struct supervisor *s, const struct link_message *m)
{
	if (s->state != STARTING)
		return;
	s->state = SERVING;
	s->served = true;
	s->used = clock_ms();
	log_print(LOG_INFO, "mounted %s", m->text);
	if (s->o->daemon && !daemon_detach(s->o->daemon)) {
		begin_stop(s);
		return;
	}
	notify_ready(m->text);
	start_preload(s);
}

static void end_reload(struct supervisor *s, const char *text)
{
	log_print(LOG_INFO, "reload: %s", text);
	if (s->reloading)
		notify_ready(text);
	else
		notify_status(text);
	s->reloading = false;
}

static void take_message(struct supervisor *s, const struct link_message *m)
{
	struct rescan *l = &s->lookout;

	switch (m->word) {
	case LINK_MOUNTED:
		if (s->state != STARTING || s->mounted.connection >= 0) {
			if (m->fd >= 0)
				close(m->fd);
			break;
		}
		s->mounted.minor = (unsigned)m->number;
		s->mounted.connection = m->fd;
		break;
	case LINK_READY:
		begin_service(s, m);
		break;
	case LINK_TAKEN:
		end_reload(s, m->text);
		if (m->number)
			start_preload(s);
		break;
	case LINK_REFUSED:
		source_list_refuse(&l->survey, m->serial);
		break;
	case LINK_RESCAN:
		l->forced = l->forced || m->number;
		note_change(l);
		break;
	case LINK_LOOK:
		/* The look is to see everything that was so before: a signal, too, that came
		 * before this message, and that the loop has not seen yet. */
		read_signals(s);
		l->asked = true;
		l->due = 0;
		break;
	case LINK_SIGNAL:
		take_signal(s, (int)m->number);
		break;
	case LINK_PONG:
		if (m->number != s->requests)
			s->used = clock_ms();
		s->requests = m->number;
		if (notify_watchdog_usec())
			notify_watchdog();
		break;
	default:
		break;
	}
}

static void read_link(struct supervisor *s)
{
	struct link_message m;

	/* A few at a time: a server that never stops sending must not delay signals. */
	for (int i = 0; i < 64; i++) {
		switch (link_receive(s->server.link, false, &s->room, &m)) {
		case LINK_DONE:
			if (m.fd < 0 || m.word == LINK_MOUNTED)
				take_message(s, &m);
			else
				close(m.fd);
			break;
		case LINK_OVER:
			close(s->server.link);
			s->server.link = -1;
			s->lookout.sending = s->lookout.answering = false;
			return;
		case LINK_EMPTY:
			return;
		default:
			break;
		}
	}
}

/* --- timers --------------------------------------------------------------------------- */

static int64_t ping_interval(const struct supervisor *s)
{
	int64_t watchdog = (int64_t)(notify_watchdog_usec() / 2000);
	int64_t idle = (int64_t)s->o->idle * 1000 / 4;

	if (watchdog && idle)
		return watchdog < idle ? watchdog : idle;
	return watchdog ? watchdog : idle;
}

/*
 * Unmount if the mount is idle.  The kernel knows better than the server, which gets no
 * requests for data in caches; but only root may ask the kernel.
 */
static void expire_mount(struct supervisor *s)
{
	const int64_t idle = (int64_t)s->o->idle * 1000;
	enum unmount u = mount_point_expire(&s->mounted);

	s->next_expire = clock_ms() + idle;
	if (u == UNMOUNT_FAILED && errno == EPERM) {
		s->next_expire = clock_ms() + idle / 4;
		if (clock_ms() - s->used < idle)
			return;
		u = mount_point_unmount(&s->mounted, false);
	}
	if (u != UNMOUNT_DONE)
		return;
	log_print(LOG_INFO, "%s: idle, unmounted", s->o->mountpoint);
	notify_stopping();
	end_preload(s);
	s->state = STOPPING;
}

static void do_what_is_due(struct supervisor *s)
{
	const struct link_message ping = {.word = LINK_PING, .fd = -1};
	int64_t now = clock_ms(), interval = ping_interval(s);

	if (s->state == STOPPING) /* there will be no scan any more */
		answer_asker(&s->lookout, false);
	if (s->state != SERVING || s->over)
		return;
	if (s->next_ping == CLOCK_NEVER && interval)
		s->next_ping = now + interval;
	if (s->next_expire == CLOCK_NEVER && s->o->idle)
		s->next_expire = now + (int64_t)s->o->idle * 1000;
	if (now >= scan_due(&s->lookout) && !scan_sources(s, false))
		end_reload(s, "cannot read the sources; the mount stays as it was");
	if (now >= s->next_ping) {
		link_send(s->server.link, &ping);
		s->next_ping = clock_ms() + interval;
	}
	if (now >= s->next_expire)
		expire_mount(s);
}

/* The milliseconds until something is due; -1: never. */
static int wait_time(const struct supervisor *s)
{
	int64_t next = scan_due(&s->lookout), now = clock_ms();

	next = s->next_ping < next ? s->next_ping : next;
	next = s->next_expire < next ? s->next_expire : next;
	if (s->state != SERVING || next == CLOCK_NEVER)
		return -1;
	if (next <= now)
		return 0;
	return next - now < 1 << 30 ? (int)(next - now) : 1 << 30;
}

/* --- the loop ------------------------------------------------------------------------- */

static void handle_events(struct supervisor *s)
{
	struct rescan *l = &s->lookout;
	struct pollfd p[] = {
		{.fd = s->signals, .events = POLLIN},
		{.fd = s->server.link,
		 .events = POLLIN | (l->sending || l->answering ? POLLOUT : 0)},
		{.fd = watch_events(l->watch), .events = POLLIN},
		{.fd = watch_mounts(l->watch), .events = POLLPRI},
	};

	if (poll(p, 4, wait_time(s)) < 0)
		return;
	if (p[1].revents)
		read_link(s);
	if (p[0].revents)
		read_signals(s);
	if ((p[2].revents && watch_read(l->watch)) || p[3].revents)
		note_change(l);
	do_what_is_due(s);
	send_survey(l, s->server.link);
}

enum end supervise(const struct supervised *server, const struct supervisor_options *o)
{
	const sigset_t messages = message_signals();
	struct supervisor s = {
		.o = o,
		.server = *server,
		.mounted = {.path = o->mountpoint, .connection = -1},
		.signals = signalfd(-1, &messages, SFD_CLOEXEC | SFD_NONBLOCK),
		.end = SYSTEM,
		.lookout = {.watch = watch_new(),
			    .first = CLOCK_NEVER,
			    .due = CLOCK_NEVER,
			    .next_poll = CLOCK_NEVER},
		.next_ping = CLOCK_NEVER,
		.next_expire = CLOCK_NEVER,
	};
	bool begun = false;

	if (!s.lookout.watch || s.signals < 0)
		log_about(LOG_ERR, "supervisor", strerror(errno));
	else if (!(begun = scan_sources(&s, true)))
		s.end = NO_MOUNT;
	if (begun) {
		send_survey(&s.lookout, s.server.link);
		while (!s.over)
			handle_events(&s);
	} else {
		kill_server(&s);
		while (waitpid(s.server.pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	leave_connection(&s);
	if (s.server.link >= 0)
		close(s.server.link);
	if (s.signals >= 0)
		close(s.signals);
	watch_free(s.lookout.watch);
	source_list_free(&s.lookout.survey);
	return s.end;
}
