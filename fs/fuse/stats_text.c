/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "stats_text.h"
#include "core/base/text.h"

/* The figures that are counted on request, and those that `content` counts. */
struct figures {
	uint64_t archives, refused_archives, entries, files, directories;
	uint64_t reloads, edition, retired_inodes, retired_archives;
	uint64_t misses, evictions;
	struct content_stats content;
};

enum type { GAUGE, COUNTER };

static const char *const type_names[] = {"gauge", "counter"};

#define AT(member) offsetof(struct figures, member)

static const struct row {
	const char *key;    /* in JSON */
	const char *metric; /* for Prometheus; NULL: written by reason elsewhere */
	enum type type;
	size_t at; /* offset in struct figures, of a uint64_t */
	const char *help;
} rows[] = {
	{"archives", "archives", GAUGE, AT(archives), "Archives that are served."},
	{"refused_archives", "refused_archives", GAUGE, AT(refused_archives),
	 "Archives that cannot be served."},
	{"entries", "entries", GAUGE, AT(entries), "Entries of all served archives."},
	{"files", "files", GAUGE, AT(files), "Files, each counted once."},
	{"directories", "directories", GAUGE, AT(directories), "Directories."},
	{"reads", "reads_total", COUNTER, AT(content.reads), "Reads that were answered."},
	{"bytes_served", "served_bytes_total", COUNTER, AT(content.bytes_served),
	 "Bytes that reads returned."},
	{"decodes", "decodes_total", COUNTER, AT(content.decodes),
	 "Pieces of content that were decoded."},
	{"bytes_decoded", "decoded_bytes_total", COUNTER, AT(content.bytes_decoded),
	 "Bytes that were decoded."},
	{"cache_bytes", "cache_bytes", GAUGE, AT(content.held),
	 "Memory in use for decoded bytes."},
	{"cache_bytes_most", "cache_most_bytes", GAUGE, AT(content.held_most),
	 "The most memory used so far for decoded bytes."},
	{"cache_budget", "cache_budget_bytes", GAUGE, AT(content.budget),
	 "Memory that decoded bytes may use now."},
	{"cache_hits", "cache_hits_total", COUNTER, AT(content.hits),
	 "Reads that did not wait for a decode."},
	{"cache_misses", "cache_misses_total", COUNTER, AT(misses),
	 "Reads that waited for a decode."},
	{"evictions", NULL, COUNTER, AT(evictions), NULL},
	{"passes", "passes_total", COUNTER, AT(content.passes),
	 "Times that an entry larger than the cache was decoded in order."},
	{"restarts", "pass_restarts_total", COUNTER, AT(content.restarts),
	 "Passes over entries that had a pass shortly before."},
	{"errors", NULL, COUNTER, AT(content.errors), NULL},
	{"reloads", "reloads_total", COUNTER, AT(reloads),
	 "Reloads, each of which shows a new edition of the tree."},
	{"edition", "edition", GAUGE, AT(edition),
	 "Number of the edition shown, one more with each reload."},
	{"retired_inodes", "retired_inodes", GAUGE, AT(retired_inodes),
	 "Files and directories in use that are not shown any more."},
	{"retired_archives", "retired_archives", GAUGE, AT(retired_archives),
	 "Archives kept open for retired inodes."},
};

#define N_ROWS KP_COUNT(rows)

static void gather_figures(const struct stats *s, struct figures *out)
{
	const struct edition *e = s->edition;

	*out = (struct figures){
		.archives = e->holdings.count,
		.refused_archives = e->holdings.n_refused,
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
	for (size_t i = 0; i < e->holdings.count; i++)
		out->entries += kp_archive_entry_count(e->archives[i]);
}

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

/* --- JSON ------------------------------------------------------------------------- */

/* Write a time in the format of RFC 3339, or null for 0. */
static void put_moment(FILE *f, const char *key, struct timespec when)
{
	char text[64];
	struct tm tm;

	if (when.tv_sec == 0 || !gmtime_r(&when.tv_sec, &tm)) {
		fprintf(f, ", \"%s\": null", key);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(f, ", \"%s\": \"%s\"", key, text);
}

static void put_reasons(FILE *f, const struct stats *s)
{
	fprintf(f,
		", \"evictions_by_reason\": {\"room\": %" PRIu64 ", \"age\": %" PRIu64
		"}, \"errors_by_reason\": {",
		s->content.crowded_out, s->content.expired);
	for (size_t i = 0; i < CONTENT_FAULTS; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", content_fault_names[i],
			s->content.faults[i]);
	fputc('}', f);
}

static void put_times(FILE *f, const struct stats *s)
{
	char room[32];

	fprintf(f, ", \"decode_seconds\": {\"count\": %" PRIu64 ", \"sum\": %.6f",
		decodes_within(s, CONTENT_TIMES), s->content.decode_seconds);
	fputs(", \"buckets\": {", f);
	for (size_t i = 0; i <= CONTENT_TIMES; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", bound_text(i, room),
			decodes_within(s, i));
	fputs("}}", f);
}

void stats_put_json(FILE *f, const struct stats *s)
{
	struct figures figures;

	gather_figures(s, &figures);
	fprintf(f, "{\"version\": \"%s\", \"pid\": %ld", KP_VERSION, (long)getpid());
	put_moment(f, "started", s->started);
	fprintf(f, ", \"uptime_seconds\": %.3f", s->uptime);
	for (size_t i = 0; i < N_ROWS; i++)
		fprintf(f, ", \"%s\": %" PRIu64, rows[i].key, figure(&figures, &rows[i]));
	put_reasons(f, s);
	put_times(f, s);
	put_moment(f, "last_reload", s->reloaded);
	fputs(", \"sandbox\": [", f);
	for (size_t i = 0; s->sandbox[i]; i++)
		fprintf(f, "%s\"%s\"", i ? ", " : "", s->sandbox[i]);
	fputs("]}\n", f);
}

/* --- Prometheus ------------------------------------------------------------------- */

static void put_head(FILE *f, const char *metric, const char *type, const char *help)
{
	fprintf(f, "# HELP kpackfs_%s %s\n# TYPE kpackfs_%s %s\n", metric, help, metric,
		type);
}

/* Write a label's value: UTF-8 in one line, with backslashes and quotes escaped. */
static void put_label(FILE *f, const char *value)
{
	char *text = kp_text_escape_new(kp_span_str(value));

	for (const char *c = text ? text : "?"; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', f);
		fputc(*c, f);
	}
	free(text);
}

static void put_labelled(FILE *f, const char *metric, const char *label,
			 const char *value, uint64_t n)
{
	fprintf(f, "kpackfs_%s{%s=\"", metric, label);
	put_label(f, value);
	fprintf(f, "\"} %" PRIu64 "\n", n);
}

/*
 * True if no archive before has the same path: two sources with an archive make one
 * series.
 */
static bool is_first(const struct edition *e, size_t archive)
{
	const char *path = kp_archive_path(e->archives[archive]);

	for (size_t i = 0; i < archive; i++)
		if (strcmp(kp_archive_path(e->archives[i]), path) == 0)
			return false;
	return true;
}

static void put_archives(FILE *f, const struct edition *e, const char *metric,
			 const char *help, uint64_t (*get)(const struct kpack_archive *a))
{
	put_head(f, metric, "gauge", help);
	for (size_t i = 0; i < e->holdings.count; i++)
		if (is_first(e, i))
			put_labelled(f, metric, "archive",
				     kp_archive_path(e->archives[i]),
				     get(e->archives[i]));
}

static uint64_t archive_size(const struct kpack_archive *a)
{
	return (uint64_t)kp_archive_stat(a)->st_size;
}

static uint64_t archive_entries(const struct kpack_archive *a)
{
	return kp_archive_entry_count(a);
}

static void put_seconds(FILE *f, const char *metric, struct timespec when,
			const char *help)
{
	put_head(f, metric, "gauge", help);
	fprintf(f, "kpackfs_%s %lld.%03ld\n", metric, (long long)when.tv_sec,
		when.tv_nsec / 1000000);
}

static void put_counted_reasons(FILE *f, const struct stats *s)
{
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
}

static void put_histogram(FILE *f, const struct stats *s)
{
	char room[32];

	put_head(f, "decode_duration_seconds", "histogram",
		 "How long decoding a piece took.");
	for (size_t i = 0; i <= CONTENT_TIMES; i++)
		put_labelled(f, "decode_duration_seconds_bucket", "le",
			     bound_text(i, room), decodes_within(s, i));
	fprintf(f,
		"kpackfs_decode_duration_seconds_sum %.6f\n"
		"kpackfs_decode_duration_seconds_count %" PRIu64 "\n",
		s->content.decode_seconds, decodes_within(s, CONTENT_TIMES));
}

static void put_rows(FILE *f, const struct figures *figures)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		if (!rows[i].metric)
			continue;
		put_head(f, rows[i].metric, type_names[rows[i].type], rows[i].help);
		fprintf(f, "kpackfs_%s %" PRIu64 "\n", rows[i].metric,
			figure(figures, &rows[i]));
	}
}

void stats_put_metrics(FILE *f, const struct stats *s)
{
	struct figures figures;

	gather_figures(s, &figures);
	put_head(f, "build_info", "gauge", "The program's version.");
	put_labelled(f, "build_info", "version", KP_VERSION, 1);
	put_seconds(f, "start_time_seconds", s->started,
		    "Time when the mount was made, in Unix time.");
	put_rows(f, &figures);
	put_counted_reasons(f, s);
	put_histogram(f, s);
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
