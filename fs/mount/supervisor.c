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
#include <glob.h>
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
#include "core/base/alloc.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/mount_point.h"
#include "fs/base/process_link.h"
#include "mount.h"
#include "sources.h"

/* Milliseconds. */
#define QUIET 100      /* a scan starts after this time without events */
#define PATIENCE 10000 /* but no later than this time after the first event */
#define BLIND 10000    /* between scans if changes may go unnoticed */
#define SAME 500       /* in which several signals to stop count as one */

#define PLACES_MAX 64 /* the most places of one mount that are unmounted */

struct supervisor {
	const struct settings *settings;
	struct daemon *daemon;
	pid_t server;
	int link;
	struct link_buffer room;
	struct mount_point mounted;
	int signals;
	enum { STARTING, SERVING, STOPPING } state;
	bool served, lazy, over;
	enum end end;

	struct sources sources;
	bool logged_blind;  /* it was logged that changes may go unnoticed */
	bool forced;        /* the scan that is due includes refused archives */
	int64_t first, due; /* time of the first event since the last scan; of the scan */
	int64_t next_poll;
	bool sending; /* the survey is not sent completely */
	bool differs; /* the survey does more than try archives again */
	size_t next;  /* the item of the sources to send next */
	/* Whether the server asked for a look, and waits for the end of the scan that is due; or
	 * that is done, and the answer not sent yet. */
	enum { NOT_ASKED, ASKED, SEEN, NOT_SEEN } look;
	bool reloading; /* the manager waits for the end of a reload */

	int64_t next_ping, next_expire;
	uint64_t requests;
	int64_t used;   /* when their number last grew */
	int64_t signal; /* when the first signal to stop came */
	pid_t preload;  /* 0: none */
};

/* --- scans ---------------------------------------------------------------------------- */

/*
 * Scan now; FIRST: a source that cannot be listed is a failure.  If something changed, or
 * the scan is the first or a forced one, the survey is to be sent.  false: it failed; logged.
 */
static bool scan(struct supervisor *s, bool first)
{
	int64_t interval = (int64_t)s->settings->poll * 1000;
	bool changed = false,
	     ok = sources_scan(&s->sources,
			       (first ? SCAN_FIRST : 0) | (s->forced ? SCAN_FORCED : 0),
			       &changed);

	if ((s->sources.blind[0] || s->sources.away) && !interval) {
		interval = BLIND;
		if (s->sources.blind[0] && !s->logged_blind)
			log_print(LOG_WARNING,
				  "%s: the sources are looked at every %d seconds, see "
				  "-o poll=SECONDS",
				  s->sources.blind, BLIND / 1000);
		s->logged_blind = s->logged_blind || s->sources.blind[0];
	}
	if (s->look == ASKED) /* it is to be answered behind its survey */
		s->look = ok ? SEEN : NOT_SEEN;
	s->first = s->due = CLOCK_NEVER;
	s->next_poll = interval ? clock_ms() + interval : CLOCK_NEVER;
	s->differs = changed || s->forced || first;
	if (ok && (s->differs || s->sources.again)) {
		s->sending = true;
		s->next = 0;
	}
	s->forced = false;
	return ok;
}

/*
 * Something may have changed: make a scan due when there are no more events, or after
 * some seconds.
 */
static void note_change(struct supervisor *s)
{
	int64_t now = clock_ms();

	if (s->due == 0) /* somebody waits for it */
		return;
	if (s->first == CLOCK_NEVER)
		s->first = now;
	s->due = now + QUIET;
	if (s->due > s->first + PATIENCE)
		s->due = s->first + PATIENCE;
}

/* When a scan is due, as clock_ms; CLOCK_NEVER until all of the last survey is sent. */
static int64_t scan_due(const struct supervisor *s)
{
	if (s->sending)
		return CLOCK_NEVER;
	return s->due < s->next_poll ? s->due : s->next_poll;
}

/*
 * Send as much of the survey as possible without waiting: its archives, its end, and the
 * answer that somebody waits for.
 */
static void send_survey(struct supervisor *s)
{
	const struct sources *all = &s->sources;
	const struct link_message answer = {
		.word = LINK_SEEN, .number = s->look == SEEN, .fd = -1};

	while (s->sending) {
		struct kpackx_error why = {0};
		struct link_message m = {.word = LINK_SURVEYED,
					 .number = all->count,
					 .fresh = s->differs,
					 .fd = -1,
					 .st = all->look};
		enum link_result sent;

		if (s->next < all->count) {
			struct source_item *item = &all->items[s->next];

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
				m.fd = source_open(item, &why);
				m.text = why.text;
			}
		}
		sent = link_send(s->link, &m);
		if (m.fd >= 0)
			close(m.fd);
		if (sent != LINK_DONE)
			return;
		s->sending = s->next++ < all->count;
	}
	if (s->look > ASKED && link_send(s->link, &answer) == LINK_DONE)
		s->look = NOT_ASKED;
}

/* --- reading files in advance, in a process of its own -------------------------------- */

static void end_preload(struct supervisor *s)
{
	if (s->preload <= 0)
		return;
	kill(s->preload, SIGKILL);
	while (waitpid(s->preload, NULL, 0) < 0 && errno == EINTR)
		continue;
	s->preload = 0;
}

/*
 * Start a process that reads the files of the mount that match the patterns, as glob(3) expands
 * them below its root, into the page cache.  A pattern that matches no file is logged; failures to
 * read are by the server.
 */
static void start_preload(struct supervisor *s)
{
	const struct strings *patterns = &s->settings->preload;
	const struct mount_point *m = &s->mounted;
	sigset_t none;
	int root;
	const struct sched_param lowest = {0};
	static char bytes[128 << 10];
	struct stat st, file;
	ssize_t n;

	if (patterns->count == 0 || s->state != SERVING)
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
	close(s->link);
	close(s->mounted.connection);
	if (nice(19) == -1 || sched_setscheduler(0, SCHED_IDLE, &lowest))
		log_print(LOG_INFO, "preload: cannot lower its priority");
	root = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstat(root, &st) ||
	    (m->minor && st.st_dev != makedev(0, m->minor))) {
		log_about(LOG_WARNING, m->path, "preload: is not the mount");
		_exit(0);
	}
	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->list[i];
		glob_t found = {0};
		char *below = NULL;
		bool had = false;

		/* a path to the root of M that nobody can lead elsewhere */
		if (asprintf(&below, "/proc/self/fd/%d/%s", root,
			     pattern + strspn(pattern, "/")) > 0 &&
		    glob(below, GLOB_NOSORT, NULL, &found) == 0)
			for (size_t k = 0; k < found.gl_pathc; k++) {
				KP_AUTO_CLOSE int fd = open(
					found.gl_pathv[k],
					O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

				if (fd < 0 || fstat(fd, &file) ||
				    file.st_dev != st.st_dev || !S_ISREG(file.st_mode))
					continue;
				had = true;
				do {
					n = read(fd, bytes, sizeof(bytes));
				} while (n > 0 || (n < 0 && errno == EINTR));
			}
		globfree(&found);
		free(below);
		if (!had)
			log_about(LOG_WARNING, pattern, "preload: no file matches");
	}
	/* _exit, so that unflushed output of the parent is not written twice. */
	_exit(0);
}

/* --- stopping ------------------------------------------------------------------------- */

static void stop(struct supervisor *s)
{
	notify("STOPPING=1\n", "Unmounting");
	end_preload(s);
	s->state = STOPPING;
}

/*
 * Unmount all places, as the mount may be bound to several; then the server ends.  A place
 * that is busy is unmounted lazily: its name goes at once, the mount itself when it is not
 * used any more.
 */
static void begin_stop(struct supervisor *s)
{
	const struct link_message leaving = {.word = LINK_LEAVING, .fd = -1};
	const char *name = s->settings->mountpoint;
	bool started = s->state != STARTING, there, done;

	s->signal = clock_ms();
	stop(s);
	if (!started) {
		kill(s->server, SIGKILL);
		return;
	}
	done = there = mount_point_is(&s->mounted);
	for (int i = 0; done && there && i < PLACES_MAX; i++) {
		enum unmount u = mount_point_unmount(&s->mounted, false);

		if (u == UNMOUNT_BUSY) {
			log_about(LOG_WARNING, name,
				  "busy: unmounted lazily; open files are served until "
				  "closed");
			u = mount_point_unmount(&s->mounted, true);
			s->lazy = u == UNMOUNT_DONE;
		}
		done = u == UNMOUNT_DONE;
		if (!done)
			log_print(LOG_ERR,
				  "cannot unmount %s: %s; ending the server anyway", name,
				  strerror(errno));
		there = mount_point_is(&s->mounted);
	}
	if (!done) {
		/* Either the mount was unmounted from outside, and files that are still
		 * open must not keep us running; or we could not unmount it. */
		kill(s->server, SIGKILL);
	} else if (s->lazy && notify_is_heard()) {
		/* Files are in use, perhaps for days; a manager would wait for this process,
		 * and kill it in the end: leave the server alone with them. */
		link_send(s->link, &leaving);
		s->over = true;
		s->end = OK;
	}
}

static void take_signal(struct supervisor *s, int number)
{
	if (number == SIGHUP && s->state == SERVING) {
		s->reloading = true;
		notify_reloading();
		s->forced = true;
		s->due = 0;
	}
	if (number != SIGTERM && number != SIGINT)
		return;
	/* A later signal kills the server.  Terminals and service managers signal both
	 * processes, and the server passes its signal on: two within SAME count as one. */
	if (s->state != STOPPING)
		begin_stop(s);
	else if (clock_ms() - s->signal > SAME)
		kill(s->server, SIGKILL);
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
		log_about(LOG_ERR, s->settings->mountpoint, "cannot unmount");
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
			else if (pid == s->server)
				take_end(s, status);
		}
	}
}

/* --- messages from the server --------------------------------------------------------- */

static void end_reload(struct supervisor *s, const char *text)
{
	log_print(LOG_INFO, "reload: %s", text);
	if (s->reloading)
		notify_ready(text);
	else
		notify("", text);
	s->reloading = false;
}

static void read_link(struct supervisor *s)
{
	struct link_message m;
	enum link_result got;

	/* A few at a time: a server that never stops sending must not delay signals. */
	for (int i = 0; i < 64; i++) {
		got = link_receive(s->link, false, &s->room, &m);
		if (got == LINK_EMPTY)
			return;
		if (got == LINK_OVER) {
			close(s->link);
			s->link = -1;
			s->sending = false;
			s->look = NOT_ASKED;
			return;
		}
		if (got != LINK_DONE)
			continue;
		if (m.fd >= 0 && m.word != LINK_MOUNTED) {
			close(m.fd);
			continue;
		}
		switch (m.word) {
		case LINK_MOUNTED:
			if (s->state != STARTING || s->mounted.connection >= 0) {
				if (m.fd >= 0)
					close(m.fd);
				break;
			}
			s->mounted.minor = (unsigned)m.number;
			s->mounted.connection = m.fd;
			break;
		case LINK_READY:
			if (s->state != STARTING)
				break;
			s->state = SERVING;
			s->served = true;
			s->used = clock_ms();
			log_print(LOG_INFO, "mounted %s", m.text);
			if (s->daemon && !daemon_detach(s->daemon)) {
				begin_stop(s);
				break;
			}
			notify_ready(m.text);
			start_preload(s);
			break;
		case LINK_TAKEN:
			end_reload(s, m.text);
			if (m.number)
				start_preload(s);
			break;
		case LINK_REFUSED:
			if (sources_refuse(&s->sources, m.serial, (int)m.number) &&
			    s->next_poll == CLOCK_NEVER)
				s->next_poll = clock_ms() + BLIND;
			break;
		case LINK_RESCAN:
			s->forced = s->forced || m.number;
			note_change(s);
			break;
		case LINK_LOOK:
			/* The look is to see everything that was so before: a signal, too, that
			 * came before this message, and that the loop has not seen yet. */
			read_signals(s);
			s->look = ASKED;
			s->due = 0;
			break;
		case LINK_SIGNAL:
			take_signal(s, (int)m.number);
			break;
		case LINK_PONG:
			if (m.number != s->requests)
				s->used = clock_ms();
			s->requests = m.number;
			if (notify_watchdog_usec())
				notify("WATCHDOG=1\n", NULL);
			break;
		default:
			break;
		}
	}
}

/* --- timers --------------------------------------------------------------------------- */

/*
 * Unmount if the mount is idle.  The kernel knows better than the server, which gets no
 * requests for data in caches; but only root may ask the kernel.
 */
static void expire_mount(struct supervisor *s)
{
	const int64_t idle = (int64_t)s->settings->idle_timeout * 1000;
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
	log_print(LOG_INFO, "%s: idle, unmounted", s->settings->mountpoint);
	stop(s);
}

static void do_what_is_due(struct supervisor *s)
{
	const struct link_message ping = {.word = LINK_PING, .fd = -1};
	int64_t now = clock_ms(), idle = (int64_t)s->settings->idle_timeout * 1000;
	int64_t interval = (int64_t)(notify_watchdog_usec() / 2000); /* of pings */

	if (!interval || (idle && idle / 4 < interval))
		interval = idle / 4;
	if (s->state == STOPPING && s->look == ASKED) /* there will be no scan any more */
		s->look = NOT_SEEN;
	if (s->state != SERVING || s->over)
		return;
	if (s->next_ping == CLOCK_NEVER && interval)
		s->next_ping = now + interval;
	if (s->next_expire == CLOCK_NEVER && idle)
		s->next_expire = now + idle;
	if (now >= scan_due(s) && !scan(s, false))
		end_reload(s, "cannot read the sources; the mount stays as it was");
	if (now >= s->next_ping) {
		link_send(s->link, &ping);
		s->next_ping = clock_ms() + interval;
	}
	if (now >= s->next_expire)
		expire_mount(s);
}

enum end supervise(const struct settings *settings, pid_t server, int link,
		   struct daemon *daemon)
{
	const sigset_t messages = message_signals();
	struct supervisor s = {
		.settings = settings,
		.daemon = daemon,
		.server = server,
		.link = link,
		.mounted = {.path = settings->mountpoint, .connection = -1},
		.signals = signalfd(-1, &messages, SFD_CLOEXEC | SFD_NONBLOCK),
		.end = SYSTEM,
		.sources = {.paths = settings->sources.list,
			    .n_paths = settings->sources.count},
		.first = CLOCK_NEVER,
		.due = CLOCK_NEVER,
		.next_poll = CLOCK_NEVER,
		.next_ping = CLOCK_NEVER,
		.next_expire = CLOCK_NEVER,
	};

	sources_watch(&s.sources);
	if (s.signals < 0)
		log_about(LOG_ERR, "supervisor", strerror(errno));
	else if (!scan(&s, true))
		s.end = NO_MOUNT;
	if (!s.sending) {
		kill(server, SIGKILL);
		while (waitpid(server, NULL, 0) < 0 && errno == EINTR)
			continue;
		s.over = true;
	}
	send_survey(&s);
	while (!s.over) {
		struct pollfd p[] = {
			{.fd = s.signals, .events = POLLIN},
			{.fd = s.link,
			 .events = POLLIN | (s.sending || s.look > ASKED ? POLLOUT : 0)},
			{.fd = s.sources.events, .events = POLLIN},
			{.fd = s.sources.mounts, .events = POLLPRI},
		};
		int64_t next = scan_due(&s), now = clock_ms();
		int wait = -1;

		next = s.next_ping < next ? s.next_ping : next;
		next = s.next_expire < next ? s.next_expire : next;
		if (s.state == SERVING && next != CLOCK_NEVER)
			wait = next <= now            ? 0
			       : next - now < 1 << 30 ? (int)(next - now)
						      : 1 << 30;
		if (poll(p, KP_COUNT(p), wait) < 0)
			continue;
		if (p[1].revents)
			read_link(&s);
		if (p[0].revents)
			read_signals(&s);
		if ((p[2].revents && sources_read_events(&s.sources)) || p[3].revents)
			note_change(&s);
		do_what_is_due(&s);
		send_survey(&s);
	}
	leave_connection(&s);
	if (s.link >= 0)
		close(s.link);
	if (s.signals >= 0)
		close(s.signals);
	sources_fini(&s.sources);
	return s.end;
}
