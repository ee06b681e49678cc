/* SPDX-License-Identifier: MIT */
#include "rescan.h"
#include <unistd.h>
#include "fs/base/clock.h"
#include "fs/base/process_link.h"
#include "fs/base/log.h"
#include "inotify.h"

/* Milliseconds. */
#define QUIET 100      /* a scan starts after this time without events */
#define PATIENCE 10000 /* but no later than this time after the first event */
#define BLIND 10000    /* between scans if changes may go unnoticed */

bool rescan_open(struct rescan *l, const struct strings *sources, unsigned poll)
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

void rescan_close(struct rescan *l)
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
bool rescan_look(struct rescan *l, bool first)
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

void rescan_note(struct rescan *l, bool forced)
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

void rescan_force(struct rescan *l)
{
	l->forced = true;
	l->due = 0;
}

void rescan_ask(struct rescan *l)
{
	l->asked = true;
	l->due = 0;
}

void rescan_decline(struct rescan *l)
{
	answer_asker(l, false);
}

int64_t rescan_due(const struct rescan *l)
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

void rescan_send(struct rescan *l, int link)
{
	while (l->sending && send_next(l, link) == LINK_DONE)
		l->sending = l->next++ < l->survey.count;
	if (!l->sending && l->answering)
		l->answering = send_answer(l, link) != LINK_DONE;
}

bool rescan_has_more(const struct rescan *l)
{
	return l->sending || l->answering;
}
