/* SPDX-License-Identifier: MIT */
#include "complaints.h"
#include <inttypes.h>
#include "log.h"
#include "text.h"

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Where KEY stands, or would. */
static uint64_t *slot_of(struct complaints *cs, uint64_t key)
{
	size_t n = sizeof(cs->known) / sizeof(*cs->known);
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % n;

	while (cs->known[i] && cs->known[i] != key)
		i = (i + 1) % n;
	return &cs->known[i];
}

static void remember(struct complaints *cs, uint64_t key)
{
	if (cs->n_known == COMPLAINTS_KNOWN) {
		memset(cs->known, 0, sizeof(cs->known));
		cs->n_known = 0;
	}
	*slot_of(cs, key) = key;
	cs->n_known++;
}

static void tell_more(struct complaints *cs)
{
	if (cs->more)
		log_print(LOG_ERR, "and %" PRIu64 " more errors of reading", cs->more);
	cs->more = 0;
}

/* Is a line of KEY to be shown?  What is not shown for want of room may be later. */
static bool may_show(struct complaints *cs, uint64_t key)
{
	if (*slot_of(cs, key))
		return false;
	if (now() - cs->since >= cs->seconds) {
		tell_more(cs);
		cs->since = now();
		cs->lines = 0;
	}
	if (cs->lines == cs->most) {
		cs->more++;
		return false;
	}
	cs->lines++;
	remember(cs, key);
	return true;
}

static void show(struct origin_entry what, const struct kpackx_error *why)
{
	const struct kpack_archive *a = what.origin->archive;
	struct kp_entry_info info;
	char path[512], key[512], arch[128], text[512];

	kp_archive_entry(a, what.entry, &info);
	log_print(LOG_ERR, "%s: %s %s: %s",
		  kp_text_escape(kp_span_str(kp_archive_path(a)), path, sizeof(path)),
		  kp_text_escape(info.key, key, sizeof(key)),
		  kp_text_escape(info.arch, arch, sizeof(arch)),
		  kp_text_escape(kp_span_str(why->text), text, sizeof(text)));
}

void complaints_add(struct complaints *cs, struct origin_entry what,
		    const struct kpackx_error *why)
{
	uint64_t key = (uint64_t)what.origin->serial << 32 | what.entry;
	bool shown;

	pthread_mutex_lock(&cs->lock);
	shown = may_show(cs, key);
	pthread_mutex_unlock(&cs->lock);
	if (shown)
		show(what, why);
}

void complaints_init(struct complaints *cs, unsigned most, time_t seconds)
{
	*cs = (struct complaints){.most = most, .seconds = seconds};
	cs->since = now();
	pthread_mutex_init(&cs->lock, NULL);
}

void complaints_fini(struct complaints *cs)
{
	tell_more(cs);
	pthread_mutex_destroy(&cs->lock);
}
