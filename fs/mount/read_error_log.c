/* SPDX-License-Identifier: MIT */
/*
 * Entries that were logged are remembered in a hash table of fixed size, which is emptied
 * when it is full: then an entry may be logged once more.
 */
#include "read_error_log.h"
#include <inttypes.h>
#include <signal.h>
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "core/base/text.h"

/* The slot that holds KEY, or the free one where it belongs. */
static uint64_t *slot_of(struct read_error_log *cs, uint64_t key)
{
	size_t n = KP_COUNT(cs->known);
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % n;

	while (cs->known[i] && cs->known[i] != key)
		i = (i + 1) % n;
	return &cs->known[i];
}

static void remember_key(struct read_error_log *cs, uint64_t key)
{
	if (cs->n_known == READ_ERRORS_KNOWN) {
		memset(cs->known, 0, sizeof(cs->known));
		cs->n_known = 0;
	}
	*slot_of(cs, key) = key;
	cs->n_known++;
}

static void log_suppressed(struct read_error_log *cs)
{
	if (cs->more)
		log_print(LOG_ERR, "and %" PRIu64 " more read errors", cs->more);
	cs->more = 0;
}

static void begin_period(struct read_error_log *cs)
{
	log_suppressed(cs);
	cs->since = clock_seconds();
	cs->lines = 0;
}

/* The thread: logs the number of suppressed lines at the end of each period. */
static void *log_periods(void *log)
{
	struct read_error_log *cs = log;

	pthread_mutex_lock(&cs->lock);
	while (!cs->over) {
		struct timespec end = {.tv_sec = cs->since + cs->seconds};

		if (!cs->more)
			pthread_cond_wait(&cs->wanted, &cs->lock);
		else if (clock_seconds() >= end.tv_sec)
			begin_period(cs);
		else
			pthread_cond_timedwait(&cs->wanted, &cs->lock, &end);
	}
	pthread_mutex_unlock(&cs->lock);
	return NULL;
}

/* Wake the thread, or start it, with all signals blocked: another thread takes them. */
static void wake_thread(struct read_error_log *cs)
{
	sigset_t all, old;

	pthread_cond_signal(&cs->wanted);
	if (cs->has_thread)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	cs->has_thread = pthread_create(&cs->thread, NULL, log_periods, cs) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/*
 * True if a line about KEY is to be shown.  A key that is suppressed because the period
 * has its lines already is not remembered, and may be shown later.
 */
static bool may_show(struct read_error_log *cs, uint64_t key)
{
	if (*slot_of(cs, key))
		return false;
	if (clock_seconds() - cs->since >= cs->seconds)
		begin_period(cs);
	if (cs->lines == cs->most) {
		if (cs->more++ == 0)
			wake_thread(cs);
		return false;
	}
	cs->lines++;
	remember_key(cs, key);
	return true;
}

static void log_entry(struct origin_entry what, const struct kpackx_error *why)
{
	const struct kpack_archive *a = what.origin->archive;
	struct kp_entry_info info;
	char path[512], key[512], arch[128], text[512];

	kp_archive_entry(a, what.entry, &info);
	log_print(LOG_ERR, "%s: %s %s: %s",
		  kp_text_escape(kp_span_str(kp_archive_path(a)), path, sizeof(path)),
		  kp_text_escape(info.key, key, sizeof(key)),
		  kp_text_escape(info.arch, arch, sizeof(arch)),
		  kp_message_escape(kp_span_str(why->text), text, sizeof(text)));
}

void read_error_log_add(struct read_error_log *cs, struct origin_entry what,
			const struct kpackx_error *why)
{
	uint64_t key = (uint64_t)what.origin->serial << 32 | what.entry;
	bool shown;

	pthread_mutex_lock(&cs->lock);
	shown = may_show(cs, key);
	pthread_mutex_unlock(&cs->lock);
	if (shown)
		log_entry(what, why);
}

void read_error_log_init(struct read_error_log *cs, unsigned most, time_t seconds)
{
	pthread_condattr_t monotonic;

	*cs = (struct read_error_log){.most = most, .seconds = seconds};
	cs->since = clock_seconds();
	pthread_mutex_init(&cs->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&cs->wanted, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void read_error_log_fini(struct read_error_log *cs)
{
	pthread_mutex_lock(&cs->lock);
	cs->over = true;
	pthread_cond_signal(&cs->wanted);
	pthread_mutex_unlock(&cs->lock);
	if (cs->has_thread)
		pthread_join(cs->thread, NULL);
	log_suppressed(cs);
	pthread_cond_destroy(&cs->wanted);
	pthread_mutex_destroy(&cs->lock);
}
