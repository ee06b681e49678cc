/* SPDX-License-Identifier: MIT */
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

/* --- scans of the sources: when one is due, what it finds, and sending that ------------- */

struct rescan {
	const struct strings *sources; /* absolute */
	unsigned poll;                 /* seconds between scans; 0: scan at events */
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

/* Milliseconds. */
#define QUIET 100      /* a scan starts after this time without events */
#define PATIENCE 10000 /* but no later than this time after the first event */
#define BLIND 10000    /* between scans if changes may go unnoticed */

/* false: no memory, but rescan_close must be called all the same. */
static bool rescan_open(struct rescan *l, const struct strings *sources, unsigned poll)
{
	*l = (struct rescan){
		.sources = sources,
		.poll = poll,
		.watch = watch_new(),
		.first = CLOCK_NEVER,
		.due = CLOCK_NEVER,
		.next_poll = CLOCK_NEVER,
	};
	return l->watch != NULL;
}

static void rescan_close(struct rescan *l)
{
	watch_free(l->watch);
	source_list_free(&l->survey);
}

/* Scanning. */

static void name_archive(void *user, const char *path)
{
	watch_archive(user, path);
}

static void log_blind(struct rescan *l)
{
	const char *why = watch_blind(l->watch);

	if (!why || l->poll || l->logged_blind)
		return;
	l->logged_blind = true;
	log_print(LOG_WARNING,
		  "%s: the sources are looked at every %d seconds, see -o poll=SECONDS",
		  why, BLIND / 1000);
}

static int64_t poll_interval(const struct rescan *l)
{
	if (l->poll)
		return (int64_t)l->poll * 1000;
	return watch_blind(l->watch) ? BLIND : 0;
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

/* Watches first, then scans: a change in between causes another scan. */
static bool rescan_look(struct rescan *l, bool first)
{
	const struct source_list_options options = {
		.sources = l->sources->list,
		.count = l->sources->count,
		.first = first,
		.forced = l->forced,
		.hook = name_archive,
		.user = l->watch,
	};
	bool changed = false, ok;

	watch_begin(l->watch);
	for (size_t i = 0; i < options.count; i++)
		watch_source(l->watch, options.sources[i]);
	ok = source_list_run(&l->survey, &options, &changed);
	watch_end(l->watch);
	log_blind(l);
	l->forced = false;
	answer_asker(l, ok);
	l->first = l->due = CLOCK_NEVER;
	l->next_poll = poll_interval(l) ? clock_ms() + poll_interval(l) : CLOCK_NEVER;
	if (ok && (changed || options.forced || first)) {
		l->sending = true;
		l->next = 0;
	}
	return ok;
}

/*
 * Something may have changed: make a scan due when there are no more events, or after
 * some seconds.  FORCED: the scan includes refused archives.
 */
static void rescan_note(struct rescan *l, bool forced)
{
	int64_t now = clock_ms();

	l->forced = l->forced || forced;
	if (l->due == 0) /* somebody waits for it */
		return;
	if (l->first == CLOCK_NEVER)
		l->first = now;
	l->due = now + QUIET;
	if (l->due > l->first + PATIENCE)
		l->due = l->first + PATIENCE;
}

/* Make a scan due at once that includes refused archives. */
static void rescan_force(struct rescan *l)
{
	l->forced = true;
	l->due = 0;
}

/* The server asks for a scan at once, and for an answer behind all that it finds. */
static void rescan_ask(struct rescan *l)
{
	l->asked = true;
	l->due = 0;
}

/* There will be no scan any more: if the server has asked for one, tell it. */
static void rescan_decline(struct rescan *l)
{
	answer_asker(l, false);
}

/* When a scan is due, as clock_ms; CLOCK_NEVER until all of the last survey is sent. */
static int64_t rescan_due(const struct rescan *l)
{
	if (l->sending)
		return CLOCK_NEVER;
	return l->due < l->next_poll ? l->due : l->next_poll;
}

/* Sending the survey. */

static enum link_result send_item(int link, struct source_list_item *item)
{
	struct kpackx_error why = {0};
	struct link_message m = {
		.word = LINK_ARCHIVE,
		.serial = item->serial,
		.number = item->was,
		.fresh = item->fresh,
		.fd = -1,
		.path = item->path,
		.text = item->error,
	};
	enum link_result r;

	if (item->fresh) {
		m.fd = source_list_open(item, &why);
		m.text = why.text;
	}
	r = link_send(link, &m);
	if (m.fd >= 0)
		close(m.fd);
	return r;
}

static enum link_result send_next(struct rescan *l, int link)
{
	struct link_message end = {
		.word = LINK_SURVEYED,
		.number = l->survey.count,
		.fd = -1,
		.st = l->survey.look,
	};

	if (l->next < l->survey.count)
		return send_item(link, &l->survey.items[l->next]);
	return link_send(link, &end);
}

static enum link_result send_answer(const struct rescan *l, int link)
{
	const struct link_message m = {.word = LINK_SEEN, .number = l->fine, .fd = -1};

	return link_send(link, &m);
}

/* Send as much of the survey, and the answer, over LINK as possible without waiting. */
static void rescan_send(struct rescan *l, int link)
{
	while (l->sending && send_next(l, link) == LINK_DONE)
		l->sending = l->next++ < l->survey.count;
	if (!l->sending && l->answering)
		l->answering = send_answer(l, link) != LINK_DONE;
}

/* True if something is to be sent still. */
static bool rescan_has_more(const struct rescan *l)
{
	return l->sending || l->answering;
}

/* --- reading files in advance, in a process of its own ---------------------------------- */

#define PRELOAD_STEP (128 << 10)

/* True if a pattern matches PATH; HAD marks the patterns that matched. */
static bool is_wanted(const char *path, char *const *patterns, size_t n, bool *had)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const char *pattern = patterns[i] + strspn(patterns[i], "/");

		if (fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0)
			any = had[i] = true;
	}
	return any;
}

/* Read a file into the page cache.  The server logs failures to read. */
static void load_file(const char *path)
{
	static char bytes[PRELOAD_STEP];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return;
	do {
		n = read(fd, bytes, sizeof(bytes));
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(fd);
}

static void walk_mount(const char *root, char *const *patterns, size_t n, bool *had)
{
	char *roots[] = {strdup(root), NULL}; /* fts wants writable strings */
	FTS *fts = roots[0] ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL)
			    : NULL;
	size_t skip = strlen(root);
	FTSENT *e;

	while (fts && (e = fts_read(fts))) {
		if (e->fts_info != FTS_F)
			continue;
		if (is_wanted(e->fts_path + skip + strspn(e->fts_path + skip, "/"),
			      patterns, n, had))
			load_file(e->fts_accpath);
	}
	if (fts)
		fts_close(fts);
	free(roots[0]);
}

/* Write a path to the root of M that nobody can lead elsewhere.  false: logged. */
static bool open_mount(const struct mount_point *m, char root[32])
{
	int fd = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    (!m->minor || st.st_dev == makedev(0, m->minor))) {
		snprintf(root, 32, "/proc/self/fd/%d/.", fd);
		return true;
	}
	log_about(LOG_WARNING, m->path, "preload: is not the mount");
	return false;
}

static void lower_priority(void)
{
	const struct sched_param lowest = {0};

	if (nice(19) == -1 || sched_setscheduler(0, SCHED_IDLE, &lowest))
		log_print(LOG_INFO, "preload: cannot lower its priority");
}

static void preload_files(const struct mount_point *m, char *const *patterns, size_t n)
{
	bool *had = calloc(n, sizeof(*had));
	char root[32];

	lower_priority();
	if (!had || !open_mount(m, root)) {
		free(had);
		return;
	}
	walk_mount(root, patterns, n, had);
	for (size_t i = 0; i < n; i++)
		if (!had[i])
			log_about(LOG_WARNING, patterns[i], "preload: no file matches");
	free(had);
}

/*
 * Start a process that reads the files of the mount M whose paths match one of N patterns,
 * as in fnmatch(3), with * and ? matching no slash.  A pattern that matches no file is
 * logged.  The process closes CLOSE_THESE, because the other sides of these connections
 * would not notice their end otherwise.  Returns the process's ID; it ends by itself.
 * -1: it failed; logged.
 */
static pid_t preload_start(const struct mount_point *m, char *const *patterns, size_t n,
			   const int close_these[2])
{
	pid_t pid = fork();
	sigset_t none;

	if (pid < 0)
		log_about(LOG_WARNING, "preload", strerror(errno));
	if (pid != 0)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < 2; i++)
		close(close_these[i]);
	preload_files(m, patterns, n);
	/* _exit, so that unflushed output of the parent is not written twice. */
	_exit(0);
}

/* --- the supervisor ------------------------------------------------------------------- */

#define SAME 500      /* ms in which several signals to stop count as one */
#define PLACES_MAX 64 /* the most places of one mount that are unmounted */

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

static void log_mount(const struct supervisor *s, int priority, const char *text)
{
	log_about(priority, s->o->mountpoint, text);
}

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

static int open_signals(void)
{
	sigset_t set = message_signals();

	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Stopping. */

static void end_preload(struct supervisor *s)
{
	if (s->preload <= 0)
		return;
	kill(s->preload, SIGKILL);
	while (waitpid(s->preload, NULL, 0) < 0 && errno == EINTR)
		continue;
	s->preload = 0;
}

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
		log_mount(s, LOG_WARNING,
			  "busy: unmounted lazily; open files are served until closed");
		u = mount_point_unmount(&s->mounted, true);
		s->lazy = u == UNMOUNT_DONE;
	}
	if (u == UNMOUNT_DONE)
		return true;
	log_print(LOG_ERR, "cannot unmount %s: %s; ending the server anyway",
		  s->o->mountpoint, strerror(errno));
	return false;
}

/*
 * Leave the server alone with the files that are in use, which may take days: a manager
 * would wait for this process, and kill it in the end.
 */
static void leave_server(struct supervisor *s)
{
	const struct link_message m = {.word = LINK_LEAVING, .fd = -1};

	link_send(s->server.link, &m);
	s->over = true;
	s->end = OK;
}

/* Unmount all places, as the mount may be bound to several; then the server ends. */
static void unmount_all(struct supervisor *s)
{
	bool there = mount_point_is(&s->mounted), done = there;

	for (int i = 0; done && there && i < PLACES_MAX; i++) {
		done = unmount_once(s);
		there = mount_point_is(&s->mounted);
	}
	/*
	 * Either the mount was unmounted from outside, and files that are still open must
	 * not keep us running; or we could not unmount it.
	 */
	if (!done)
		kill_server(s);
	else if (s->lazy && notify_is_heard())
		leave_server(s);
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

/*
 * Stop; a later signal kills the server.  Terminals and service managers signal both
 * processes, and the server passes its signal on: two signals within SAME count as one.
 */
static void stop_service(struct supervisor *s)
{
	if (s->state != STOPPING)
		begin_stop(s);
	else if (clock_ms() - s->signal > SAME)
		kill_server(s);
}

static void reload_by_force(struct supervisor *s)
{
	if (s->state != SERVING)
		return;
	s->reloading = true;
	notify_reloading();
	rescan_force(&s->lookout);
}

static void take_signal(struct supervisor *s, int number)
{
	if (number == SIGHUP)
		reload_by_force(s);
	else if (number == SIGTERM || number == SIGINT)
		stop_service(s);
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
 * Clean up after the server has ended.  First release the requests that wait, which no
 * process answers any more; the preloader's are among them.  ALL: also unmount.
 */
static void clean_up_mount(struct supervisor *s, bool all)
{
	bool there = all && mount_point_is(&s->mounted);

	leave_connection(s);
	end_preload(s);
	/* Without its connection a mount keeps its device until it is unmounted. */
	if (there && mount_point_unmount(&s->mounted, true) != UNMOUNT_DONE)
		log_mount(s, LOG_ERR, "cannot unmount");
}

/*
 * The server has ended: unmount, if that is not done yet.  A server that ended with OK
 * did so because the kernel reported the unmount: then a mount at the path is another
 * one, even if the system gave it the same device number.
 */
static void take_end(struct supervisor *s, int status)
{
	bool well = WIFEXITED(status) && WEXITSTATUS(status) <= NO_MOUNT;
	bool gone = WIFEXITED(status) && WEXITSTATUS(status) == OK;

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
	clean_up_mount(s, !gone && (s->mounted.connection >= 0 || s->mounted.minor ||
				    s->state != STARTING));
}

static void take_children(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->preload)
			s->preload = 0;
		else if (pid == s->server.pid)
			take_end(s, status);
	}
}

static void read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		int number = (int)info.ssi_signo;

		/* The kernel sends SIGHUP when the terminal has gone: then stop, as no
		 * user asks for a reload. */
		if (number == SIGHUP && info.ssi_code == SI_KERNEL)
			number = SIGTERM;
		if (number == SIGCHLD)
			take_children(s);
		else
			take_signal(s, number);
	}
}

/* Messages from the server. */

static void start_preload(struct supervisor *s)
{
	const struct strings *p = s->o->preload;

	if (p->count == 0 || s->state != SERVING)
		return;
	end_preload(s);
	s->preload = preload_start(&s->mounted, p->list, p->count,
				   (const int[]){s->server.link, s->mounted.connection});
}

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

static void take_pong(struct supervisor *s, const struct link_message *m)
{
	if (m->number != s->requests)
		s->used = clock_ms();
	s->requests = m->number;
	if (notify_watchdog_usec())
		notify_watchdog();
}

/* Takes the descriptor. */
static void take_mount(struct supervisor *s, const struct link_message *m)
{
	if (s->state != STARTING || s->mounted.connection >= 0) {
		if (m->fd >= 0)
			close(m->fd);
		return;
	}
	s->mounted.minor = (unsigned)m->number;
	s->mounted.connection = m->fd;
}

/*
 * The server asks for a look, which is to see everything that was so before: a signal, too,
 * that came before its message, and that the loop has not seen yet.
 */
static void look_for_server(struct supervisor *s)
{
	read_signals(s);
	rescan_ask(&s->lookout);
}

static void take_message(struct supervisor *s, const struct link_message *m)
{
	switch (m->word) {
	case LINK_MOUNTED:
		take_mount(s, m);
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
		source_list_refuse(&s->lookout.survey, m->serial);
		break;
	case LINK_RESCAN:
		rescan_note(&s->lookout, m->number != 0);
		break;
	case LINK_LOOK:
		look_for_server(s);
		break;
	case LINK_SIGNAL:
		take_signal(s, (int)m->number);
		break;
	case LINK_PONG:
		take_pong(s, m);
		break;
	default:
		break;
	}
}

static void read_link(struct supervisor *s)
{
	struct link_message m;
	enum link_result r;

	/* A few at a time: a server that never stops sending must not delay signals. */
	for (int i = 0; i < 64; i++) {
		r = link_receive(s->server.link, false, &s->room, &m);
		if (r == LINK_DONE && (m.fd < 0 || m.word == LINK_MOUNTED))
			take_message(s, &m);
		else if (r == LINK_DONE)
			close(m.fd);
		if (r == LINK_OVER) {
			close(s->server.link);
			s->server.link = -1;
			s->lookout.sending = s->lookout.answering = false;
		}
		if (r == LINK_OVER || r == LINK_EMPTY)
			return;
	}
}

/* Timers. */

static int64_t ping_interval(const struct supervisor *s)
{
	int64_t watchdog = (int64_t)(notify_watchdog_usec() / 2000);
	int64_t idle = (int64_t)s->o->idle * 1000 / 4;

	if (watchdog && idle)
		return watchdog < idle ? watchdog : idle;
	return watchdog ? watchdog : idle;
}

static void ping_server(struct supervisor *s)
{
	const struct link_message m = {.word = LINK_PING, .fd = -1};

	link_send(s->server.link, &m);
	s->next_ping = clock_ms() + ping_interval(s);
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

static void begin_timers(struct supervisor *s)
{
	if (s->next_ping == CLOCK_NEVER && ping_interval(s))
		s->next_ping = clock_ms() + ping_interval(s);
	if (s->next_expire == CLOCK_NEVER && s->o->idle)
		s->next_expire = clock_ms() + (int64_t)s->o->idle * 1000;
}

static void do_what_is_due(struct supervisor *s)
{
	int64_t now = clock_ms();

	if (s->state == STOPPING)
		rescan_decline(&s->lookout);
	if (s->state != SERVING || s->over)
		return;
	begin_timers(s);
	if (now >= rescan_due(&s->lookout) && !rescan_look(&s->lookout, false))
		end_reload(s, "cannot read the sources; the mount stays as it was");
	if (now >= s->next_ping)
		ping_server(s);
	if (now >= s->next_expire)
		expire_mount(s);
}

static int64_t earlier_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int wait_time(const struct supervisor *s)
{
	int64_t next, now = clock_ms();

	if (s->state != SERVING)
		return -1;
	next = earlier_time(s->next_ping, s->next_expire);
	next = earlier_time(next, rescan_due(&s->lookout));
	if (next == CLOCK_NEVER)
		return -1;
	return next <= now ? 0 : (int)earlier_time(next - now, 1 << 30);
}

static void handle_events(struct supervisor *s)
{
	struct pollfd p[] = {
		{.fd = s->signals, .events = POLLIN},
		{.fd = s->server.link,
		 .events = POLLIN | (rescan_has_more(&s->lookout) ? POLLOUT : 0)},
		{.fd = watch_events(s->lookout.watch), .events = POLLIN},
		{.fd = watch_mounts(s->lookout.watch), .events = POLLPRI},
	};

	if (poll(p, 4, wait_time(s)) < 0)
		return;
	if (p[1].revents)
		read_link(s);
	if (p[0].revents)
		read_signals(s);
	if ((p[2].revents && watch_read(s->lookout.watch)) || p[3].revents)
		rescan_note(&s->lookout, false);
	do_what_is_due(s);
	rescan_send(&s->lookout, s->server.link);
}

static bool begin_supervision(struct supervisor *s)
{
	s->signals = open_signals();
	if (!rescan_open(&s->lookout, s->o->sources, s->o->poll) || s->signals < 0) {
		log_about(LOG_ERR, "supervisor", strerror(errno));
		return false;
	}
	if (rescan_look(&s->lookout, true))
		return true;
	s->end = NO_MOUNT;
	return false;
}

enum end supervise(const struct supervised *server, const struct supervisor_options *o)
{
	struct supervisor s = {
		.o = o,
		.server = *server,
		.mounted = {.path = o->mountpoint, .connection = -1},
		.end = SYSTEM,
		.next_ping = CLOCK_NEVER,
		.next_expire = CLOCK_NEVER,
	};

	if (begin_supervision(&s)) {
		rescan_send(&s.lookout, s.server.link);
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
	rescan_close(&s.lookout);
	return s.end;
}
