/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "archives_text.h"
#include "status_text.h"
#include "core/base/path.h"
#include "core/base/text.h"

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void put_count(FILE *f, uint64_t n, const char *what)
{
	fprintf(f, "%" PRIu64 " %s%s", n, what, plural(n));
}

static void put_bytes(FILE *f, uint64_t n)
{
	static const char units[] = "BKMGTPE";
	double value = (double)n;
	size_t unit = 0;

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

static void put_moment(FILE *f, struct timespec when)
{
	char text[64] = "?";
	struct tm tm;

	if (gmtime_r(&when.tv_sec, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fputs(text, f);
}

/* --- the lines -------------------------------------------------------------------- */

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

static void put_program(FILE *f, const struct stats *s)
{
	(void)s;
	fprintf(f, "kpackfs %s, process %ld", KP_VERSION, (long)getpid());
}

static void put_begin(FILE *f, const struct stats *s)
{
	put_moment(f, s->started);
	fputs(", for ", f);
	put_duration(f, s->uptime);
}

/*
 * True if A and B are in the same directory.  Archives are in the order of their sources,
 * so comparing neighbours is enough.
 */
static bool same_directory(const char *a, const char *b)
{
	return kp_span_eq(kp_path_directory(a), kp_path_directory(b));
}

static void put_directory(FILE *f, const char *path)
{
	char *text = kp_text_escape_new(kp_path_directory(path));

	fprintf(f, " %s", text ? text : "?");
	free(text);
}

static void put_archives(FILE *f, const struct stats *s)
{
	const struct holdings *h = &s->edition->holdings;
	size_t named = 0, more = 0;
	const char *path, *last = NULL;

	put_count(f, h->count, "archive");
	for (size_t i = 0; i < h->count; i++, last = path) {
		path = kp_archive_path(s->edition->archives[i]);
		if (last && same_directory(path, last))
			continue;
		if (named == 4) {
			more++;
			continue;
		}
		fputs(named++ ? "," : " in", f);
		put_directory(f, path);
	}
	if (more)
		fprintf(f, " and %zu more", more);
}

static void put_shown(FILE *f, const struct stats *s)
{
	const struct edition *e = s->edition;
	uint64_t entries = 0;

	for (size_t i = 0; i < e->holdings.count; i++)
		entries += kp_archive_entry_count(e->archives[i]);
	put_count(f, tree_file_count(e->tree), "file");
	fprintf(f, ", %zu director%s, of %" PRIu64 " entr%s",
		(size_t)tree_dir_count(e->tree),
		tree_dir_count(e->tree) == 1 ? "y" : "ies", entries,
		entries == 1 ? "y" : "ies");
}

static void put_for(FILE *f, const struct stats *s)
{
	char *text = arches_line_new(s->arches, ", ");

	fputs(text ? text : "none", f);
	free(text);
}

static void put_conflicts(FILE *f, const struct stats *s)
{
	size_t n = archives_text_count_conflicts(s->edition);

	if (n)
		fprintf(f, "%zu: see .kpackfs/conflicts", n);
	else
		fputs("none", f);
}

static void put_read(FILE *f, const struct stats *s)
{
	put_bytes(f, s->content.bytes_served);
	fputs(" in ", f);
	put_count(f, s->content.reads, "read");
	if (s->content.reads)
		fprintf(f, ", %.0f %% without waiting",
			100. * (double)s->content.hits / (double)s->content.reads);
}

static void put_decoded(FILE *f, const struct stats *s)
{
	put_bytes(f, s->content.bytes_decoded);
	fputs(" in ", f);
	put_count(f, s->content.decodes, "decode");
}

static void put_memory(FILE *f, const struct stats *s)
{
	put_bytes(f, s->content.held);
	fputs(" of ", f);
	put_bytes(f, s->content.budget);
	fputs(", at most ", f);
	put_bytes(f, s->content.held_most);
}

static void put_reloads(FILE *f, const struct stats *s)
{
	fprintf(f, "%" PRIu64, s->reloads);
	if (s->reloads) {
		fputs(", the last ", f);
		put_moment(f, s->reloaded);
	}
	if (s->retired_inodes) {
		fputs("; ", f);
		put_count(f, s->retired_inodes, "old file");
		fputs(" still in use", f);
	}
}

static void put_sandbox(FILE *f, const struct stats *s)
{
	if (!s->sandbox[0])
		fputs("off", f);
	for (size_t i = 0; s->sandbox[i]; i++)
		fprintf(f, "%s%s", i ? ", " : "", s->sandbox[i]);
}

static const struct line {
	const char *name;
	void (*put)(FILE *f, const struct stats *s);
} lines[] = {
	{"program", put_program}, {"mounted", put_begin},   {"archives", put_archives},
	{"shown", put_shown},     {"for", put_for},         {"conflicts", put_conflicts},
	{"read", put_read},       {"decoded", put_decoded}, {"memory", put_memory},
	{"reloads", put_reloads}, {"sandbox", put_sandbox},
};

void status_text_put(FILE *f, const struct stats *s)
{
	put_state(f, s);
	fputc('\n', f);
	for (size_t i = 0; i < KP_COUNT(lines); i++) {
		fprintf(f, "  %-10s ", lines[i].name);
		lines[i].put(f, s);
		fputc('\n', f);
	}
}
