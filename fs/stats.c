/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "stats.h"
#include "text.h"

/* Figures that are counted when they are asked for, and those that content counts. */
struct figures {
	uint64_t archives, refused_archives, entries, files, directories;
	uint64_t reloads, edition, retired_inodes, retired_archives;
	struct content_stats content;
};

enum type { GAUGE, COUNTER };

static const char *const type_names[] = {"gauge", "counter"};

#define AT(member) offsetof(struct figures, member)

static const struct row {
	const char *key;    /* in JSON */
	const char *metric; /* for Prometheus */
	enum type type;
	size_t at; /* a uint64_t of the figures */
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
	 "Bytes that reads were answered with."},
	{"decodes", "decodes_total", COUNTER, AT(content.decodes),
	 "Pieces of content that were decoded."},
	{"bytes_decoded", "decoded_bytes_total", COUNTER, AT(content.bytes_decoded),
	 "Bytes that were decoded."},
	{"cache_bytes", "cache_bytes", GAUGE, AT(content.held),
	 "Memory that decoded bytes have."},
	{"errors", "decode_errors_total", COUNTER, AT(content.errors),
	 "Decodes that failed."},
	{"reloads", "reloads_total", COUNTER, AT(reloads),
	 "Changes of the sources that changed what is shown."},
	{"edition", "edition", GAUGE, AT(edition),
	 "Number of what is shown, one more with each reload."},
	{"retired_inodes", "retired_inodes", GAUGE, AT(retired_inodes),
	 "Files and directories in use that are not shown any more."},
	{"retired_archives", "retired_archives", GAUGE, AT(retired_archives),
	 "Archives kept open for retired inodes."},
};

#define N_ROWS (sizeof(rows) / sizeof(*rows))

static void gather(const struct stats *s, struct figures *out)
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

/* --- JSON ------------------------------------------------------------------------- */

/* A moment as RFC 3339 has it, or null for none. */
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

void stats_put_json(FILE *f, const struct stats *s)
{
	struct figures figures;

	gather(s, &figures);
	fprintf(f, "{\"version\": \"%s\", \"pid\": %ld", KP_VERSION, (long)getpid());
	put_moment(f, "started", s->started);
	fprintf(f, ", \"uptime_seconds\": %.3f", s->uptime);
	for (size_t i = 0; i < N_ROWS; i++)
		fprintf(f, ", \"%s\": %" PRIu64, rows[i].key, figure(&figures, &rows[i]));
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

/* A label's value: UTF-8 in one line, with backslashes and quotes escaped. */
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

/* An archive that two sources have is one series, not two. */
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

void stats_put_metrics(FILE *f, const struct stats *s)
{
	struct figures figures;

	gather(s, &figures);
	put_head(f, "build_info", "gauge", "The program's version.");
	put_labelled(f, "build_info", "version", KP_VERSION, 1);
	put_seconds(f, "start_time_seconds", s->started,
		    "When the mount began, in Unix time.");
	for (size_t i = 0; i < N_ROWS; i++) {
		put_head(f, rows[i].metric, type_names[rows[i].type], rows[i].help);
		fprintf(f, "kpackfs_%s %" PRIu64 "\n", rows[i].metric,
			figure(&figures, &rows[i]));
	}
	put_seconds(f, "last_reload_timestamp_seconds", s->reloaded,
		    "When what is shown changed last, in Unix time; 0: never.");
	put_archives(f, s->edition, "archive_size_bytes", "Size of an archive's file.",
		     archive_size);
	put_archives(f, s->edition, "archive_entries", "Entries of an archive.",
		     archive_entries);
	put_head(f, "sandbox_part", "gauge", "Parts of the sandbox that are on.");
	for (size_t i = 0; s->sandbox[i]; i++)
		put_labelled(f, "sandbox_part", "part", s->sandbox[i], 1);
}
