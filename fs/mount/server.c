/* SPDX-License-Identifier: MIT */
/*
 * The server's life, in the order of its functions' end: the first edition, before there is a
 * mount; the mount; the sandbox; INIT, the first request; the threads of cache, surveys and
 * memory pressure; the loop that answers requests; and their end in the reverse order.
 *
 * A survey comes in as one message for each archive, and a last one.  An archive that is
 * fresh is opened from the descriptor in its message; any other is known from the last
 * survey by its serial.  Then an edition is made of all of them, and takes the place of
 * the one that is shown; what is open of the old one lives on in retired inodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/mount_point.h"
#include "fs/base/process_link.h"
#include "fs/base/sandbox.h"
#include "fs/fuse/ops.h"
#include "memory_pressure.h"
#include "mount.h"

/*
 * A file that was last written to less than this many seconds ago is likely being copied.
 */
#define YOUNG 10

/* Descriptors that archives must leave to threads, logs and memory pressure. */
#define FDS_LEFT 64

/*
 * The most lines about files that cannot be read, and the seconds in which they may come; and
 * the most entries that are remembered as logged: more, and all are forgotten.
 */
#define ERRORS_SHOWN 20
#define ERRORS_SECONDS 60
#define ERRORS_KNOWN 4096

/* The archive of a serial, or the reason why it is refused. */
struct known {
	uint32_t serial;
	struct origin *origin; /* NULL: refused */
	/* refused, or served but away now: the path, and the reason; else NULL */
	char *path, *text;
};

struct survey {
	struct known *items;
	size_t count, cap;
};

/* Entries that could not be read: each is logged once, and few in a period. */
struct read_errors {
	pthread_mutex_t lock;
	int64_t since; /* start of the period */
	unsigned lines;
	uint64_t more;                    /* lines that were not shown in it */
	uint64_t known[2 * ERRORS_KNOWN]; /* a hash table of entries; 0: free */
	size_t n_known;
};

struct server {
	struct settings *settings;
	struct fs fs;
	int link;
	bool by_place; /* mounted on an open directory */
	struct pressure *pressure;
	struct read_errors errors;

	/* of the thread that receives surveys, or of none before it begins */
	pthread_t receiver;
	bool receives;
	atomic_bool stopped;
	struct link_buffer room;
	struct survey now;  /* the last one, sorted by serial */
	struct survey next; /* the one that is coming in, in order of precedence */
	struct logged_conflicts warned;
	bool first;   /* there is no edition yet */
	bool differs; /* that survey tried an archive, and not in vain as before */
	bool wanting; /* the survey that is coming in lacks descriptors */
	bool again;   /* that survey was asked for because the last one lacked some */
	int fd_end;   /* archives use descriptors below this one only */
	char *heap;   /* its end before the first survey */
};

/* --- surveys -------------------------------------------------------------------------- */

static void survey_fini(struct survey *l)
{
	for (size_t i = 0; i < l->count; i++) {
		origin_unref(l->items[i].origin);
		free(l->items[i].path);
		free(l->items[i].text);
	}
	free(l->items);
	*l = (struct survey){0};
}

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

static const struct known *find_known(const struct survey *l, uint32_t serial)
{
	const struct known probe = {.serial = serial};

	return kp_find(l->items, l->count, &probe, KP_BY_NUMBER(struct known, serial));
}

/*
 * Why the archive FD is left out of a mount that users share; NULL: it is shown.  The kernel
 * checks the mode of each file, but lets everybody see the names, and knows no access control
 * list.  Who states uid=, gid= or umask= has decided for all archives.
 */
static const char *unshared_reason(const struct server *s, int fd)
{
	const struct tree_options *look = &s->settings->look;
	struct stat st;

	if (!s->settings->shared || look->uid != (uid_t)-1 || look->gid != (gid_t)-1 ||
	    look->mask)
		return NULL;
	if (fstat(fd, &st))
		return strerror(errno);
	if (!(st.st_mode & 0044))
		return "only its owner may read it, and users share the mount; with "
		       "uid=, gid= or umask= it is shown";
	if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) >= 0 ||
	    (errno != ENODATA && errno != EOPNOTSUPP && errno != ENOSYS))
		return "it has an access control list, and users share the mount; with "
		       "uid=, gid= or umask= it is shown";
	return NULL;
}

/*
 * Take the archive of M into the survey that is coming in.  false: no memory, logged; then it is
 * missing in the next edition.
 */
static bool take_archive(struct server *s, const struct link_message *m)
{
	/* An item without a serial has its reason in each survey. */
	const struct known *old = m->serial ? find_known(&s->now, m->serial) : NULL;
	struct link_message refused = {
		.word = LINK_REFUSED, .serial = m->serial, .fd = -1};
	struct known k = {.serial = m->serial};
	struct survey *l = &s->next;
	struct kpackx_error why = {0};
	const char *reason = old && !old->origin ? old->text : m->text;
	int priority = s->first ? LOG_ERR : LOG_WARNING, fd = m->fd;
	struct origin *same;
	bool away;              /* it is served, but cannot be looked at now */
	bool as_before = false; /* it was tried again, and is refused again */
	struct stat st;

	if (!m->fresh) {
		/* it is as it was in the last survey */
		k.origin = origin_ref(old ? old->origin : NULL);
	} else if (fd < 0 || fd >= s->fd_end) {
		s->wanting = s->wanting || !m->text[0];
		reason = m->text[0] ? m->text : "too many open files";
	} else if (!(reason = unshared_reason(s, fd))) {
		/* an unfinished copy, which was written to just now, is no fault */
		if (!s->first && fstat(fd, &st) == 0 &&
		    time(NULL) - st.st_mtim.tv_sec < YOUNG)
			priority = LOG_INFO;
		reason = origin_new(fd, m->path, &k.origin, &why) ? why.text : NULL;
		fd = -1;
	}
	kp_close_keeping_errno(fd);
	/*
	 * A file that is served already, intact, and just its attributes are new, stays, with the
	 * old attributes; if users share the mount, one with other readers than before does not.
	 */
	if (m->fresh && reason) {
		as_before = old && (!old->text || strcmp(old->text, reason) == 0);
		if (!as_before)
			log_about(priority, m->path, reason);
		refused.number = (uint64_t)why.sys_errno;
		if (m->serial)
			link_send_all(s->link, &refused);
		if (m->number)
			old = find_known(&s->now, (uint32_t)m->number);
		same = old && old->origin && origin_intact(old->origin) ? old->origin
									: NULL;
		if (same && s->settings->shared) {
			const struct stat *was = kp_archive_stat(same->archive);

			fd = kp_archive_fd(same->archive);
			if (fstat(fd, &st) || st.st_uid != was->st_uid ||
			    st.st_gid != was->st_gid || st.st_mode != was->st_mode ||
			    unshared_reason(s, fd))
				same = NULL;
		}
		k.origin = origin_ref(same);
	}
	if (m->fresh && !(as_before && k.origin == old->origin))
		s->differs = true;
	away = k.origin && !m->fresh && reason[0];
	if (!k.origin || away) {
		k.path = strdup(m->path);
		k.text = strdup(reason);
	}
	if (((k.origin && !away) || (k.path && k.text)) &&
	    kp_grow(&l->items, l->count, &l->cap, sizeof(*l->items))) {
		l->items[l->count++] = k;
		return true;
	}
	origin_unref(k.origin);
	free(k.path);
	free(k.text);
	return fail_memory();
}

/*
 * Building allocates and frees large blocks.  Meanwhile freed blocks are kept for reuse,
 * because the system has to clear new ones; afterwards the unused memory of the heap goes
 * back to the system.
 */
static void keep_memory(const struct server *s, bool building)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = s->heap + (page - (uintptr_t)s->heap % page) % page, *end;

	mallopt(M_MMAP_THRESHOLD, building ? 32 << 20 : 4 << 20);
	mallopt(M_TRIM_THRESHOLD, building ? INT_MAX : 4 << 20);
	if (building)
		return;
	malloc_trim(0);
	end = sbrk(0);
	/* Where a table was that asked for huge pages, the kernel would later fill what is
	 * unused with a huge page again, so that wish is withdrawn: huge pages that exist
	 * stay.  It is only advice. */
	if (end > begin)
		madvise(begin, (size_t)(end - begin), MADV_NOHUGEPAGE);
}

/*
 * Make an edition of the survey that M ends, which becomes the last one, even if that fails:
 * NULL, logged.
 */
static struct edition *end_survey(struct server *s, const struct link_message *m)
{
	const struct tree_taken taken = {inodes_taken, s->fs.inodes};
	const struct edition_options options = {
		.arches = &s->settings->arches,
		.subdir = s->settings->subdir,
		.look = s->settings->look,
		.shared = s->settings->shared,
		.bundles = s->settings->bundles,
		.first = s->first,
		.warned = &s->warned,
	};
	struct holdings h = {.look = m->st};
	struct edition *e = NULL;
	bool ok = true;

	for (size_t i = 0; ok && i < s->next.count; i++) {
		const struct known *k = &s->next.items[i];

		if (k->origin)
			ok = holdings_add(&h, origin_ref(k->origin));
		if (ok && k->text)
			ok = holdings_refuse(&h, k->path, k->text);
	}
	if (ok && s->first && h.count == 0 && h.n_refused) {
		log_print(LOG_ERR, "none of %zu archives can be served", h.n_refused);
		ok = false;
	}
	if (ok)
		e = edition_new(&h, &options, s->first ? NULL : &taken);
	else
		holdings_fini(&h);
	survey_fini(&s->now);
	s->now = s->next;
	s->next = (struct survey){0};
	kp_sort(s->now.items, s->now.count, KP_BY_NUMBER(struct known, serial));
	return e;
}

/* Neither the edition nor an inode has O any more. */
static void forget_origin(void *server, const struct origin *o)
{
	const struct server *s = server;

	if (s->fs.content)
		content_forget(s->fs.content, o);
}

/* Show what the survey has that M ends, and tell the supervisor. */
static void take_survey(struct server *s, const struct link_message *m)
{
	char text[128] = "cannot show the changed sources; the mount stays as it was";
	struct link_message taken = {.word = LINK_TAKEN, .fd = -1, .text = text};
	const struct link_message again = {.word = LINK_RESCAN, .number = 1, .fd = -1};
	struct change control = {.what = CHANGED_NAME, .ino = CONTROL_DIR};
	struct invalidation notices = {.session = s->fs.session};
	struct edition *last, *next;
	size_t names = 0;
	const char *name;

	/* archives were tried again in vain, at each poll perhaps: what is shown stays */
	if (!m->fresh && !s->differs) {
		survey_fini(&s->next);
		return;
	}
	s->differs = false;
	last = inodes_edition(s->fs.inodes);
	keep_memory(s, true);
	next = end_survey(s, m);
	if (next && inodes_swap(s->fs.inodes, edition_ref(next), invalidate_send,
				&notices, &names)) {
		control_renew(s->fs.control);
		/* without this the kernel may keep a text for long, though its name has no
		 * validity */
		for (size_t i = 0; (name = control_name(i)); i++) {
			snprintf(control.name, sizeof(control.name), "%s", name);
			invalidate_send(&notices, &control);
		}
		snprintf(text, sizeof(text), "%zu archives, %u files, %zu names changed",
			 next->holdings.count, tree_file_count(next->tree), names);
		taken.number = names;
	}
	/* archives that are closed now may be deleted files, and the disk takes its time */
	edition_unref(last);
	edition_unref(next);
	link_send_all(s->link, &taken);
	/* If descriptors were lacking, ask for one more survey, once: those that were closed
	 * meanwhile may be enough. */
	s->again = s->wanting && !s->again;
	s->wanting = false;
	if (s->again)
		link_send_all(s->link, &again);
	keep_memory(s, false);
}

/* Have the supervisor look at the sources now; control_seen will be called.  Never blocks. */
static bool ask_to_look(void *server)
{
	const struct server *s = server;
	const struct link_message m = {.word = LINK_LOOK, .fd = -1};

	return link_send(s->link, &m) == LINK_DONE;
}

static void *receive_messages(void *server)
{
	struct server *s = server;
	struct link_message m, pong = {.word = LINK_PONG, .fd = -1};
	enum link_result got;

	while ((got = link_receive(s->link, true, &s->room, &m)) != LINK_OVER) {
		if (got != LINK_DONE)
			continue;
		switch (m.word) {
		case LINK_ARCHIVE:
			take_archive(s, &m);
			break;
		case LINK_SURVEYED:
			take_survey(s, &m);
			break;
		case LINK_SEEN:
			/* If descriptors were lacking and a further survey was asked for,
			 * the look is not complete: another one takes that survey. */
			if (!s->again || !ask_to_look(s))
				control_seen(s->fs.control, m.number != 0);
			break;
		case LINK_PING:
			pong.number = atomic_load(&s->fs.requests);
			link_send_all(s->link, &pong);
			break;
		case LINK_LEAVING:
			atomic_store(&s->stopped, true);
			break;
		default:
			break;
		}
	}
	if (!atomic_load(&s->stopped))
		log_print(LOG_ERR, "the supervisor has gone: changes of the sources will "
				   "not be noticed");
	control_unwatched(s->fs.control);
	return NULL;
}

/* --- what the cache reports ----------------------------------------------------------- */

/*
 * Log that WHAT cannot be read, unless that was logged already, or the period has all its
 * lines: then it may be logged later.
 */
static void log_read_error(void *server, struct origin_entry what,
			   const struct kpackx_error *why)
{
	struct read_errors *log = &((struct server *)server)->errors;
	const struct kpack_archive *a = what.origin->archive;
	uint64_t key = (uint64_t)what.origin->serial << 32 | what.entry, more = 0;
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
	char path[512], name[512], arch[128], text[512];
	struct kp_entry_info info;
	bool shown = false, last = false;

	pthread_mutex_lock(&log->lock);
	if (log->n_known == ERRORS_KNOWN) {
		memset(log->known, 0, sizeof(log->known));
		log->n_known = 0;
	}
	for (i %= KP_COUNT(log->known); log->known[i] && log->known[i] != key;)
		i = (i + 1) % KP_COUNT(log->known);
	if (!log->known[i]) {
		if (clock_seconds() - log->since >= ERRORS_SECONDS) {
			more = log->more;
			log->more = 0;
			log->lines = 0;
			log->since = clock_seconds();
		}
		shown = log->lines < ERRORS_SHOWN;
		if (shown) {
			last = ++log->lines == ERRORS_SHOWN;
			log->known[i] = key;
			log->n_known++;
		} else {
			log->more++;
		}
	}
	pthread_mutex_unlock(&log->lock);
	if (more)
		log_print(LOG_ERR, "and %" PRIu64 " more read errors", more);
	if (!shown)
		return;
	kp_archive_entry(a, what.entry, &info);
	log_print(LOG_ERR, "%s: %s %s: %s",
		  kp_text_escape(kp_span_str(kp_archive_path(a)), path, sizeof(path)),
		  kp_text_escape(info.key, name, sizeof(name)),
		  kp_text_escape(info.arch, arch, sizeof(arch)),
		  kp_message_escape(kp_span_str(why->text), text, sizeof(text)));
	if (last)
		log_print(LOG_ERR, "more read errors are not shown for a minute");
}

/* Ask the supervisor for a survey. */
static void archive_changed(void *server, struct origin *o)
{
	const struct server *s = server;
	const struct link_message m = {.word = LINK_RESCAN, .fd = -1};

	(void)o;
	link_send(s->link, &m);
}

static void shrink_content(void *content, unsigned percent)
{
	content_shrink(content, percent);
}

static bool start_services(struct server *s)
{
	const struct settings *settings = s->settings;
	struct fs *fs = &s->fs;
	struct content_options options = {
		.budget = pressure_budget(s->pressure, settings->cache_size),
		.executor = executor_threads(settings->threads),
		.ahead = settings->threads > 1 && !settings->no_ahead,
		.failure = log_read_error,
		.changed = archive_changed,
		.user = s,
	};
	struct control_subject about = {
		.arches = &settings->arches,
		.subdir = settings->subdir,
		.sandbox = sandbox_parts(),
		.inodes = fs->inodes,
		.answer = op_read_answer,
		.ask = ask_to_look,
		.user = s,
	};
	struct kpackx_error why = {0};
	int err;

	if (!content_new(&options, &fs->content, &why)) {
		about.content = fs->content;
		control_new(&about, &fs->control, &why);
	}
	if (why.code) {
		log_print(LOG_ERR, "%s", why.text);
		return false;
	}
	err = pthread_create(&s->receiver, NULL, receive_messages, s);
	if (err)
		log_about(LOG_ERR, "thread", strerror(err));
	s->receives = !err;
	return !err && pressure_start(s->pressure, shrink_content, fs->content);
}

/* --- signals -------------------------------------------------------------------------- */

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

/* --- the mount ------------------------------------------------------------------------ */

/*
 * The minor of the device of the mount with the connection FD, without asking the mount;
 * 0: unknown.
 */
static unsigned minor_of(int fd)
{
	long device = kp_fd_info(fd, "fuse_connection:");

	return device < 0 ? 0 : (unsigned)(device & 0xfffff);
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

/* Until libfuse 3.12 a loop has no limit of threads: it ends those that are idle. */
static int run_threads(struct fuse_session *se, const struct settings *settings)
{
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 12)
	struct fuse_loop_config config = {
		.clone_fd = settings->clone_fd,
		.max_idle_threads = settings->max_threads ? settings->max_threads : 10,
	};

	return fuse_session_loop_mt(se, &config);
#else
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int err;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, settings->clone_fd);
	if (settings->max_threads)
		fuse_loop_cfg_set_max_threads(config, settings->max_threads);
	err = fuse_session_loop_mt(se, config);
	fuse_loop_cfg_destroy(config);
	return err;
#endif
}

/*
 * End the mount.  What root mounted on a descriptor is unmounted by the supervisor, which
 * looks for it in the mount table, or here if that has gone; the sandbox forbids it here.
 */
static void end_mount(struct server *s)
{
	struct fuse_session *se = s->fs.session;
	const int connection = fuse_session_fd(se);
	const struct mount_point m = {.minor = minor_of(connection),
				      .connection = connection,
				      .path = s->settings->mountpoint};
	int ends[2];

	if (!s->by_place) {
		fuse_session_unmount(se);
		return;
	}
	if (s->settings->no_sandbox)
		mount_point_unmount(&m, true);
	/* Let libfuse free what it knows of the mount, and not unmount: the number of its
	 * descriptor may lead elsewhere now.  It unmounts nothing if the connection has ended,
	 * and a pipe without a reader looks like one. */
	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	if (dup3(ends[1], connection, O_CLOEXEC) >= 0)
		fuse_session_unmount(se);
	close(ends[1]);
}

/* Make the mount, answer its requests until it ends, and end it. */
static enum end mount_and_serve(struct server *s)
{
	struct link_message mounted = {.word = LINK_MOUNTED};
	struct settings *settings = s->settings;
	const struct sandbox_options sandbox = {
		.clone_fd = settings->clone_fd,
		.io_uring = settings->io_uring,
	};
	struct sigaction action = {.sa_sigaction = pass_on_signal,
				   .sa_flags = SA_SIGINFO};
	struct fuse_session *se = s->fs.session;
	const char *place = settings->mountpoint;
	char name[KP_FD_NAME_SIZE], *arches, text[1024];
	const struct link_message ready = {.word = LINK_READY, .fd = -1, .text = text};
	int dir = settings->place, null = -1, result;
	enum end end = SYSTEM;
	struct edition *e;
	sigset_t signals;
	bool fine = true;

	/* root mounts on what is open: another user may have exchanged the path meanwhile */
	s->by_place = dir != 0;
	if (s->by_place)
		place = kp_fd_name(dir, name);
	else
		dir = open(settings->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* if there is no such directory, mounting fails, and says why */
	if (dir >= 0 && !settings->nonempty &&
	    strncmp(settings->mountpoint, "/dev/fd/", 8) != 0) {
		e = inodes_edition(s->fs.inodes);
		fine = covered_check(dir, settings->mountpoint, e);
		edition_unref(e);
	}
	if (!s->by_place && dir >= 0)
		close(dir);
	if (!fine)
		return NO_MOUNT;
	if (fuse_session_mount(se, place)) {
		log_about(LOG_ERR, settings->mountpoint, "cannot mount");
		return NO_MOUNT;
	}
	settings_leave_place(settings);
	mounted.fd = fuse_session_fd(se);
	mounted.number = minor_of(mounted.fd);
	link_send_all(s->link, &mounted);

	s->pressure = pressure_open("");
	if (!s->pressure || (!settings->foreground && !daemon_open(&null)))
		goto stop;
	/* The sandbox comes first: answering INIT may start threads of the library. */
	if ((!settings->no_sandbox && !sandbox_enter(&sandbox)) || !answer_init(se) ||
	    !start_services(s))
		goto stop;
	signalled.link = s->link;
	signalled.se = se;
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (!settings->foreground)
		daemon_leave(null);
	e = inodes_edition(s->fs.inodes);
	arches = arches_line_new(&settings->arches, ",");
	snprintf(text, sizeof(text), "%zu archives, %u files, architectures: %s",
		 e->holdings.count, tree_file_count(e->tree), arches ? arches : "none");
	edition_unref(e);
	free(arches);
	link_send_all(s->link, &ready);
	/* only this thread takes signals: it waits for the end of the loop, and they wake
	 * it */
	sigemptyset(&signals);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	/* If a signal ended the loop, that is no failure. */
	result = settings->single ? fuse_session_loop(se) : run_threads(se, settings);
	/* the session ends already: signals have nothing to end any more */
	sigfillset(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	end = result >= 0 ? OK : SYSTEM;
stop:
	/* these end before the session is destroyed: decoders answer its requests */
	atomic_store(&s->stopped, true);
	shutdown(s->link, SHUT_RDWR);
	if (s->receives)
		pthread_join(s->receiver, NULL);
	control_free(s->fs.control);
	pressure_free(s->pressure);
	content_free(s->fs.content);
	s->fs.content = NULL;
	end_mount(s);
	return end;
}

enum end serve(struct settings *settings, int link)
{
	struct server *s = calloc(1, sizeof(*s));
	struct fuse_lowlevel_ops chosen = ops;
	struct edition *first;
	enum end end = NO_MOUNT;
	struct link_message m;
	struct rlimit limit;
	enum link_result got;

	if (!s) {
		fail_memory();
		return SYSTEM;
	}
	s->settings = settings;
	s->link = link;
	s->fs.always_open = settings->always_open;
	s->first = true;
	s->fd_end = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= INT_MAX)
		s->fd_end = (int)limit.rlim_cur - (limit.rlim_cur < 4 * FDS_LEFT
							   ? (int)limit.rlim_cur / 4
							   : FDS_LEFT);
	/* malloc_trim returns the unused end of the first heap only: all threads use it */
	mallopt(M_ARENA_MAX, 1);
	s->heap = sbrk(0);
	pthread_mutex_init(&s->errors.lock, NULL);
	s->errors.since = clock_seconds();
	if (settings->xattr)
		xattrs_add(&chosen);
	/* the first edition comes before the mount; no thread runs yet */
	keep_memory(s, true);
	do {
		got = link_receive(s->link, true, &s->room, &m);
		if (got == LINK_OVER ||
		    (got == LINK_DONE && m.word == LINK_ARCHIVE && !take_archive(s, &m)))
			goto out;
	} while (got != LINK_DONE || m.word != LINK_SURVEYED);
	first = end_survey(s, &m);
	s->first = s->wanting = s->differs = false;
	keep_memory(s, false);
	if (first)
		s->fs.inodes = inodes_new(first, forget_origin, s);
	if (s->fs.inodes)
		s->fs.session = fuse_session_new(&settings->args, &chosen, sizeof(chosen),
						 &s->fs);
	if (s->fs.session) {
		end = mount_and_serve(s);
		fuse_session_destroy(s->fs.session);
	}
out:
	if (s->errors.more)
		log_print(LOG_ERR, "and %" PRIu64 " more read errors", s->errors.more);
	survey_fini(&s->now);
	survey_fini(&s->next);
	logged_conflicts_fini(&s->warned);
	inodes_free(s->fs.inodes);
	pthread_mutex_destroy(&s->errors.lock);
	close(link);
	free(s);
	return end;
}
