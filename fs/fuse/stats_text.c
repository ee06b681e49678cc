/* SPDX-License-Identifier: MIT */
/*
 * The figures of a mount in three forms: status for people, stats as JSON, metrics for
 * Prometheus.  A figure that is a plain number is a row of one table, from which JSON and
 * metrics are made.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "texts.h"
#include "core/base/path.h"
#include "core/base/text.h"

/* The figures that are counted on request, and those that `content` counts. */
struct figures {
	uint64_t archives, refused_archives, entries, files, directories;
	uint64_t reloads, edition, retired_inodes, retired_archives;
	uint64_t misses, evictions;
	struct content_stats content;
};

static const struct row {
	const char *key;    /* in JSON */
	const char *metric; /* for Prometheus; NULL: written by reason elsewhere */
	const char *type;
	size_t at; /* offset in struct figures, of a uint64_t */
	const char *help;
} rows[] = {
#define AT(member) offsetof(struct figures, member)
	{"archives", "archives", "gauge", AT(archives), "Archives that are served."},
	{"refused_archives", "refused_archives", "gauge", AT(refused_archives),
	 "Archives that cannot be served."},
	{"entries", "entries", "gauge", AT(entries), "Entries of all served archives."},
	{"files", "files", "gauge", AT(files), "Files, each counted once."},
	{"directories", "directories", "gauge", AT(directories), "Directories."},
	{"reads", "reads_total", "counter", AT(content.reads),
	 "Reads that were answered."},
	{"bytes_served", "served_bytes_total", "counter", AT(content.bytes_served),
	 "Bytes that reads returned."},
	{"decodes", "decodes_total", "counter", AT(content.decodes),
	 "Pieces of content that were decoded."},
	{"bytes_decoded", "decoded_bytes_total", "counter", AT(content.bytes_decoded),
	 "Bytes that were decoded."},
	{"cache_bytes", "cache_bytes", "gauge", AT(content.held),
	 "Memory in use for decoded bytes."},
	{"cache_bytes_most", "cache_most_bytes", "gauge", AT(content.held_most),
	 "The most memory used so far for decoded bytes."},
	{"cache_budget", "cache_budget_bytes", "gauge", AT(content.budget),
	 "Memory that decoded bytes may use now."},
	{"cache_hits", "cache_hits_total", "counter", AT(content.hits),
	 "Reads that did not wait for a decode."},
	{"cache_misses", "cache_misses_total", "counter", AT(misses),
	 "Reads that waited for a decode."},
	{"evictions", NULL, "counter", AT(evictions), NULL},
	{"passes", "passes_total", "counter", AT(content.passes),
	 "Times that an entry larger than the cache was decoded in order."},
	{"restarts", "pass_restarts_total", "counter", AT(content.restarts),
	 "Passes over entries that had a pass shortly before."},
	{"errors", NULL, "counter", AT(content.errors), NULL},
	{"reloads", "reloads_total", "counter", AT(reloads),
	 "Reloads, each of which shows a new edition of the tree."},
	{"edition", "edition", "gauge", AT(edition),
	 "Number of the edition shown, one more with each reload."},
	{"retired_inodes", "retired_inodes", "gauge", AT(retired_inodes),
	 "Files and directories in use that are not shown any more."},
	{"retired_archives", "retired_archives", "gauge", AT(retired_archives),
	 "Archives kept open for retired inodes."},
#undef AT
};

static uint64_t count_entries(const struct edition *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < e->holdings.count; i++)
		n += kp_archive_entry_count(e->archives[i]);
	return n;
}

static struct figures gather_figures(const struct stats *s)
{
	const struct edition *e = s->edition;

	return (struct figures){
		.archives = e->holdings.count,
		.refused_archives = e->holdings.n_refused,
		.entries = count_entries(e),
		.files = tree_file_count(e->tree),
		.directories = tree_dir_count(e->tree),
		.reloads = s->reloads,
		.edition = s->reloads + 1,
		.retired_inodes = s->retired_inodes,
		.retired_archives = s->retired_archives,
		.misses = s->content.reads - s->content.hits,
		.evictions = s->content.crowded_out + s->content.expired,
		.content = s->content,
	};
}

/* By memcpy, because the row knows only the offset. */
static uint64_t figure(const struct figures *f, const struct row *row)
{
	uint64_t n;

	memcpy(&n, (const char *)f + row->at, sizeof(n));
	return n;
}

/* The decodes that took no longer than bound number I; CONTENT_TIMES: all decodes. */
static uint64_t decodes_within(const struct stats *s, size_t i)
{
	uint64_t n = 0;

	for (size_t k = 0; k <= i; k++)
		n += s->content.decode_times[k];
	return n;
}

/* Bound number I as text, for Prometheus and for JSON's keys. */
static const char *bound_text(size_t i, char room[32])
{
	if (i == CONTENT_TIMES)
		return "+Inf";
	snprintf(room, 32, "%g", content_time_bounds[i]);
	return room;
}

/* Date and time with the character T between them. */
static void put_moment(FILE *f, struct timespec when, char t)
{
	struct tm tm = {0};

	gmtime_r(&when.tv_sec, &tm);
	fprintf(f, "%04d-%02d-%02d%c%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
		tm.tm_mday, t, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* --- JSON ----------------------------------------------------------------------------- */

void stats_put_json(FILE *f, const struct stats *s)
{
	const struct figures figures = gather_figures(s);
	char room[32];

	fprintf(f, "{\"version\": \"%s\", \"pid\": %ld, \"started\": \"", KP_VERSION,
		(long)getpid());
	put_moment(f, s->started, 'T');
	fprintf(f, "Z\", \"uptime_seconds\": %.3f", s->uptime);
	for (size_t i = 0; i < KP_COUNT(rows); i++)
		fprintf(f, ", \"%s\": %" PRIu64, rows[i].key, figure(&figures, &rows[i]));
	fprintf(f,
		", \"evictions_by_reason\": {\"room\": %" PRIu64 ", \"age\": %" PRIu64
		"}, \"errors_by_reason\": {",
		s->content.crowded_out, s->content.expired);
	for (size_t i = 0; i < CONTENT_FAULTS; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", content_fault_names[i],
			s->content.faults[i]);
	fprintf(f,
		"}, \"decode_seconds\": {\"count\": %" PRIu64
		", \"sum\": %.6f, \"buckets\": {",
		decodes_within(s, CONTENT_TIMES), s->content.decode_seconds);
	for (size_t i = 0; i <= CONTENT_TIMES; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", bound_text(i, room),
			decodes_within(s, i));
	fputs("}}, \"last_reload\": ", f);
	if (s->reloads) {
		fputc('"', f);
		put_moment(f, s->reloaded, 'T');
		fputs("Z\"", f);
	} else {
		fputs("null", f);
	}
	fputs(", \"sandbox\": [", f);
	for (size_t i = 0; s->sandbox[i]; i++)
		fprintf(f, "%s\"%s\"", i ? ", " : "", s->sandbox[i]);
	fputs("]}\n", f);
}

/* --- Prometheus ----------------------------------------------------------------------- */

static void put_head(FILE *f, const char *metric, const char *type, const char *help)
{
	fprintf(f, "# HELP kpackfs_%s %s\n# TYPE kpackfs_%s %s\n", metric, help, metric,
		type);
}

/* The label's value is UTF-8 in one line, with backslashes and quotes escaped. */
static void put_labelled(FILE *f, const char *metric, const char *label,
			 const char *value, uint64_t n)
{
	char *text = kp_text_escape_new(kp_span_str(value));

	fprintf(f, "kpackfs_%s{%s=\"", metric, label);
	for (const char *c = text ? text : "?"; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', f);
		fputc(*c, f);
	}
	fprintf(f, "\"} %" PRIu64 "\n", n);
	free(text);
}

static void put_seconds(FILE *f, const char *metric, struct timespec when,
			const char *help)
{
	put_head(f, metric, "gauge", help);
	fprintf(f, "kpackfs_%s %lld.%03ld\n", metric, (long long)when.tv_sec,
		when.tv_nsec / 1000000);
}

static uint64_t archive_size(const struct kpack_archive *a)
{
	return (uint64_t)kp_archive_stat(a)->st_size;
}

static uint64_t archive_entries(const struct kpack_archive *a)
{
	return kp_archive_entry_count(a);
}

/* A series for each archive; two sources with an archive make one. */
static void put_archives(FILE *f, const struct edition *e, const char *metric,
			 const char *help, uint64_t (*get)(const struct kpack_archive *a))
{
	put_head(f, metric, "gauge", help);
	for (size_t i = 0; i < e->holdings.count; i++) {
		const char *path = kp_archive_path(e->archives[i]);
		size_t k = 0;

		while (k < i && strcmp(kp_archive_path(e->archives[k]), path) != 0)
			k++;
		if (k == i)
			put_labelled(f, metric, "archive", path, get(e->archives[i]));
	}
}

void stats_put_metrics(FILE *f, const struct stats *s)
{
	const struct figures figures = gather_figures(s);
	char room[32];

	put_head(f, "build_info", "gauge", "The program's version.");
	put_labelled(f, "build_info", "version", KP_VERSION, 1);
	put_seconds(f, "start_time_seconds", s->started,
		    "Time when the mount was made, in Unix time.");
	for (size_t i = 0; i < KP_COUNT(rows); i++) {
		if (!rows[i].metric)
			continue;
		put_head(f, rows[i].metric, rows[i].type, rows[i].help);
		fprintf(f, "kpackfs_%s %" PRIu64 "\n", rows[i].metric,
			figure(&figures, &rows[i]));
	}
	put_head(f, "cache_evictions_total", "counter",
		 "Pieces that were dropped: to make room, or after a time without "
		 "reads.");
	put_labelled(f, "cache_evictions_total", "reason", "room",
		     s->content.crowded_out);
	put_labelled(f, "cache_evictions_total", "reason", "age", s->content.expired);
	put_head(f, "decode_errors_total", "counter", "Decodes that failed.");
	for (size_t i = 0; i < CONTENT_FAULTS; i++)
		put_labelled(f, "decode_errors_total", "reason", content_fault_names[i],
			     s->content.faults[i]);
	put_head(f, "decode_duration_seconds", "histogram",
		 "How long decoding a piece took.");
	for (size_t i = 0; i <= CONTENT_TIMES; i++)
		put_labelled(f, "decode_duration_seconds_bucket", "le",
			     bound_text(i, room), decodes_within(s, i));
	fprintf(f,
		"kpackfs_decode_duration_seconds_sum %.6f\n"
		"kpackfs_decode_duration_seconds_count %" PRIu64 "\n",
		s->content.decode_seconds, decodes_within(s, CONTENT_TIMES));
	put_seconds(f, "last_reload_timestamp_seconds", s->reloaded,
		    "Time of the last reload, in Unix time; 0: never.");
	put_archives(f, s->edition, "archive_size_bytes", "Size of an archive's file.",
		     archive_size);
	put_archives(f, s->edition, "archive_entries", "Entries of an archive.",
		     archive_entries);
	put_head(f, "sandbox_part", "gauge", "Parts of the sandbox that are on.");
	for (size_t i = 0; s->sandbox[i]; i++)
		put_labelled(f, "sandbox_part", "part", s->sandbox[i], 1);
}

/* --- status --------------------------------------------------------------------------- */

static void put_count(FILE *f, uint64_t n, const char *what)
{
	fprintf(f, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

static void put_bytes(FILE *f, uint64_t n)
{
	static const char units[] = "BKMGTPE";
	double value = (double)n;
	size_t unit = 0;

	/* at 1000, not at 1024, so that no more than three digits stand before the point */
	for (; value >= 1000 && units[unit + 1]; unit++)
		value /= 1024;
	if (unit == 0)
		fprintf(f, "%" PRIu64 " bytes", n);
	else
		fprintf(f, "%.1f %ciB", value, units[unit]);
}

static void put_duration(FILE *f, double seconds)
{
	uint64_t s = seconds > 0 ? (uint64_t)seconds : 0;

	if (s >= 48 * 3600)
		fprintf(f, "%" PRIu64 " days", s / (24 * 3600));
	else if (s >= 3600)
		fprintf(f, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		fprintf(f, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else
		fprintf(f, "%" PRIu64 " s", s);
}

static void put_state(FILE *f, const struct stats *s)
{
	uint64_t refused = s->edition->holdings.n_refused, failed = s->content.errors;

	if (!refused && s->edition->holdings.count == 0) {
		fputs("no archive: its sources have none", f);
		return;
	}
	if (!refused && !failed) {
		fputs(SUMMARY_GOOD, f);
		return;
	}
	if (refused) {
		put_count(f, refused, "archive");
		fputs(" refused: see .kpackfs/archives", f);
	}
	if (refused && failed)
		fputs("; ", f);
	if (failed) {
		put_count(f, failed, "decode");
		fputs(" failed: see the log", f);
	}
}

/*
 * The archives, and the first four of their directories.  Archives are in the order of their
 * sources, so comparing neighbours is enough to name each once.
 */
static void put_places(FILE *f, const struct holdings *h, struct kpack_archive **archives)
{
	size_t named = 0, more = 0;
	const char *path, *last = NULL;

	put_count(f, h->count, "archive");
	for (size_t i = 0; i < h->count; i++, last = path) {
		char *text;

		path = kp_archive_path(archives[i]);
		if (last && kp_span_eq(kp_path_directory(path), kp_path_directory(last)))
			continue;
		if (named == 4) {
			more++;
			continue;
		}
		text = kp_text_escape_new(kp_path_directory(path));
		fprintf(f, "%s %s", named++ ? "," : " in", text ? text : "?");
		free(text);
	}
	if (more)
		fprintf(f, " and %zu more", more);
}

void status_text_put(FILE *f, const struct stats *s)
{
	const struct edition *e = s->edition;
	const struct content_stats *c = &s->content;
	uint64_t entries = count_entries(e);
	size_t dirs = tree_dir_count(e->tree), conflicts = conflicts_count(e);
	char *arches = arches_line_new(s->arches, ", ");

	put_state(f, s);
	fprintf(f, "\n  program    kpackfs %s, process %ld\n  mounted    ", KP_VERSION,
		(long)getpid());
	put_moment(f, s->started, ' ');
	fputs(" UTC, for ", f);
	put_duration(f, s->uptime);
	fputs("\n  archives   ", f);
	put_places(f, &e->holdings, e->archives);
	fputs("\n  shown      ", f);
	put_count(f, tree_file_count(e->tree), "file");
	fprintf(f, ", %zu director%s, of %" PRIu64 " entr%s", dirs,
		dirs == 1 ? "y" : "ies", entries, entries == 1 ? "y" : "ies");
	fprintf(f, "\n  for        %s\n  conflicts  ", arches ? arches : "none");
	free(arches);
	if (conflicts)
		fprintf(f, "%zu: see .kpackfs/conflicts", conflicts);
	else
		fputs("none", f);
	fputs("\n  read       ", f);
	put_bytes(f, c->bytes_served);
	fputs(" in ", f);
	put_count(f, c->reads, "read");
	if (c->reads)
		fprintf(f, ", %.0f %% without waiting",
			100. * (double)c->hits / (double)c->reads);
	fputs("\n  decoded    ", f);
	put_bytes(f, c->bytes_decoded);
	fputs(" in ", f);
	put_count(f, c->decodes, "decode");
	fputs("\n  memory     ", f);
	put_bytes(f, c->held);
	fputs(" of ", f);
	put_bytes(f, c->budget);
	fputs(", at most ", f);
	put_bytes(f, c->held_most);
	fprintf(f, "\n  reloads    %" PRIu64, s->reloads);
	if (s->reloads) {
		fputs(", the last ", f);
		put_moment(f, s->reloaded, ' ');
		fputs(" UTC", f);
	}
	if (s->retired_inodes) {
		fputs("; ", f);
		put_count(f, s->retired_inodes, "old file");
		fputs(" still in use", f);
	}
	fputs("\n  sandbox    ", f);
	if (!s->sandbox[0])
		fputs("off", f);
	for (size_t i = 0; s->sandbox[i]; i++)
		fprintf(f, "%s%s", i ? ", " : "", s->sandbox[i]);
	fputc('\n', f);
}
