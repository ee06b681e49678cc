/* SPDX-License-Identifier: MIT */
/*
 * What the mount shows, and what not (archives, missing), and its figures in three forms:
 * status for people, stats as JSON, metrics for Prometheus.  All that comes from archives is
 * escaped for terminals.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "texts.h"
#include "core/archive/naming.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/view/view.h"

static void put_text(FILE *f, const char *s)
{
	char *text = kp_text_escape_new(kp_span_str(s));

	fputs(text ? text : "?", f);
	free(text);
}

/* --- archives ------------------------------------------------------------------------- */

/*
 * Columns: path, scheme, architectures, entries, bytes, inode number, time of the last
 * change; or the path and the refusal's reason.
 */
void archives_text_put(FILE *f, const struct stats *s)
{
	const struct holdings *h = &s->edition->holdings;

	for (size_t i = 0; i < h->count; i++) {
		const struct kpack_archive *a = s->edition->archives[i];
		const struct stat *st = kp_archive_stat(a);

		put_text(f, kp_archive_path(a));
		fprintf(f, "\t%s\t", kp_archive_scheme(a));
		for (size_t k = 0; k < kp_archive_arch_count(a); k++) {
			if (k)
				fputc(',', f);
			put_text(f, kp_archive_arch(a, k));
		}
		fprintf(f, "\t%zu\t%lld\t%llu\t%lld.%09ld\n", kp_archive_entry_count(a),
			(long long)st->st_size, (unsigned long long)st->st_ino,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	}
	for (size_t i = 0; i < h->n_refused; i++) {
		put_text(f, h->refused[i].path);
		fputs("\trefused: ", f);
		put_text(f, h->refused[i].text);
		fputc('\n', f);
	}
}

/* --- missing -------------------------------------------------------------------------- */

struct missing {
	FILE *out;
	const struct edition *edition;
	struct kp_view_options select;
	char *chosen;       /* the architectures that are shown; NULL: none */
	const char *subdir; /* NULL: the whole tree */

	/* The last directory and architecture.  Entries are sorted by key, so the next
	 * one often has the same. */
	uint8_t dir_path[KP_NAME_MAX + 512];
	size_t dir_size;
	uint32_t dir;
	bool dir_found;
	const uint8_t *arch;
	bool selected;
};

/* Write a line.  The reason is escaped, too, because parts of it come from archives. */
static void __attribute__((format(printf, 3, 4)))
put_reason(const struct missing *m, struct kp_span path, const char *format, ...)
{
	char *text = kp_text_escape_new(path), *reason = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&reason, format, args) < 0)
		reason = NULL;
	va_end(args);
	fprintf(m->out, "%s\t", text ? text : "?");
	put_text(m->out, reason ? reason : "?");
	fputc('\n', m->out);
	free(text);
	free(reason);
}

/* Find the name at PATH in the view. */
static bool find_name(struct missing *m, struct kp_span path, struct kp_view_name *out)
{
	const struct kp_view *v = m->edition->view;
	size_t cut = path.size;
	uint32_t name;

	while (cut && path.data[cut - 1] != '/')
		cut--;
	if (cut > sizeof(m->dir_path))
		return false;
	if (cut != m->dir_size || memcmp(path.data, m->dir_path, cut) != 0) {
		memcpy(m->dir_path, path.data, cut);
		m->dir_size = cut;
		m->dir_found = kp_view_find_dir(v, kp_span_head(path, cut), &m->dir);
	}
	if (!m->dir_found || !kp_view_lookup(v, m->dir, kp_span_tail(path, cut), &name))
		return false;
	*out = kp_view_name(v, name);
	return true;
}

/* Write a line if PATH is hidden because of subdir=; false: it is not. */
static bool put_hidden(const struct missing *m, struct kp_span path)
{
	const char *dir = m->subdir;
	size_t n = dir ? strlen(dir) : 0;
	struct kp_span below = path;

	if (!dir)
		return false;
	if (n) {
		if (!kp_span_starts(path, dir, n) || path.size <= n ||
		    path.data[n] != '/') {
			put_reason(m, path, "not below subdir=%s", dir);
			return true;
		}
		below = kp_span_tail(path, n + 1);
	} else if (kp_span_starts(below, "toc/", 4)) {
		put_reason(m, path, "subdir=. has no toc");
		return true;
	}
	if (kp_span_is(below, KP_CONTROL_NAME) ||
	    kp_span_starts(below, KP_CONTROL_NAME "/", sizeof(KP_CONTROL_NAME))) {
		put_reason(m, path, "subdir=%s has the mount's own .kpackfs", dir);
		return true;
	}
	return false;
}

/* Write a line for each path of an entry where the view does not show its bytes. */
static void put_entry(struct missing *m, struct kpack_archive *a, size_t entry)
{
	struct kp_entry_path paths[KP_ENTRY_PATHS];
	size_t count = kp_entry_paths(a, entry, &m->select, paths);
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	if (m->arch != info.arch.data) {
		m->arch = info.arch.data;
		m->selected = kp_view_selects(&m->select, info.arch);
	}
	for (size_t i = 0; i < count; i++) {
		const struct kp_span path = paths[i].text;
		struct kp_view_name name;
		struct kpack_archive *first;
		struct kp_entry_info other;
		bool reached = false;
		size_t shown;

		if (!m->selected)
			put_reason(m, path, "architecture %s is not for arch=%s",
				   (const char *)info.arch.data,
				   m->chosen ? m->chosen : "auto, which found no GPU");
		else if (paths[i].fault[0])
			put_reason(m, path, "%s: %s", kp_archive_path(a), paths[i].fault);
		else if (put_hidden(m, path))
			continue;
		else if (!(reached = find_name(m, path, &name)))
			put_reason(m, path, "paths before it have too many directories");
		else if (name.kind == KP_VIEW_DIR)
			put_reason(m, path, "%s: a directory has this name",
				   kp_archive_path(a));
		if (!reached || name.kind == KP_VIEW_DIR)
			continue;
		/* the view keeps one entry for each content, so it may be another entry */
		first = kp_view_entry(m->edition->view, name.index, &shown);
		if (kp_view_same_bytes(a, entry, first, shown))
			continue;
		kp_archive_entry(first, shown, &other);
		put_reason(m, path, "%s: other content of %s comes first: %.*s %s",
			   kp_archive_path(a), kp_archive_path(first),
			   (int)other.key.size, (const char *)other.key.data,
			   (const char *)other.arch.data);
	}
}

void missing_text_put(FILE *f, const struct stats *s)
{
	const struct edition *e = s->edition;
	struct missing m = {
		.out = f,
		.edition = e,
		.select = {.select = s->arches, .bundles = e->bundles},
		.chosen = arches_line_new(s->arches, ","),
		.subdir = s->subdir,
		.dir_found = true, /* the root, whose path is empty */
	};
	size_t kept, counted;

	for (size_t i = 0; i < e->holdings.count; i++) {
		struct kpack_archive *a = e->archives[i];
		const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

		for (size_t entry = 0; entry < kp_archive_entry_count(a); entry++)
			put_entry(&m, a, entry);
		/* Refused entries, with the paths that they would have.  Their types are not
		 * known, and their keys may be anything. */
		for (size_t k = 0; k < kept; k++) {
			const struct kp_fault *fault = &faults[k];
			struct kp_key key = kp_key_split(fault->key);
			const char *binary = (const char *)key.binary.data;
			const char *arch = (const char *)fault->arch.data;
			struct kp_span shown = fault->key.size
						       ? fault->key
						       : kp_span_str(kp_archive_path(a));
			char number[16] = "", *path = NULL;

			if (!fault->refused)
				continue;
			if (key.index)
				snprintf(number, sizeof(number), "#%u", key.index);
			if (fault->arch.size && !kp_path_fault(key.binary) &&
			    asprintf(&path, "toc/%.*s/%.*s%s.*", (int)key.binary.size,
				     binary, (int)fault->arch.size, arch, number) >= 0)
				shown = kp_span_str(path);
			else
				path = NULL;
			put_reason(&m, shown, "%s: refused: %s", kp_archive_path(a),
				   fault->text);
			free(path);
		}
		if (counted > kept)
			put_reason(&m, kp_span_str(kp_archive_path(a)),
				   "and %zu more faults", counted - kept);
	}
	for (size_t i = 0; i < e->holdings.n_refused; i++)
		put_reason(&m, kp_span_str(e->holdings.refused[i].path), "refused: %s",
			   e->holdings.refused[i].text);
	free(m.chosen);
}

/* --- figures -------------------------------------------------------------------------- */

/* A figure that is a plain number. */
struct figure {
	const char *key;    /* in JSON */
	const char *metric; /* for Prometheus; NULL: written by reason elsewhere */
	const char *type;
	uint64_t value;
	const char *help;
};

enum { FIGURES = 22 };

static uint64_t count_entries(const struct edition *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < e->holdings.count; i++)
		n += kp_archive_entry_count(e->archives[i]);
	return n;
}

static void gather_figures(const struct stats *s, struct figure out[FIGURES])
{
	const struct content_stats *c = &s->content;
	const struct edition *e = s->edition;
	const struct figure all[FIGURES] = {
		{"archives", "archives", "gauge", e->holdings.count,
		 "Archives that are served."},
		{"refused_archives", "refused_archives", "gauge", e->holdings.n_refused,
		 "Archives that cannot be served."},
		{"entries", "entries", "gauge", count_entries(e),
		 "Entries of all served archives."},
		{"files", "files", "gauge", tree_file_count(e->tree),
		 "Files, each counted once."},
		{"directories", "directories", "gauge", tree_dir_count(e->tree),
		 "Directories."},
		{"reads", "reads_total", "counter", c->reads,
		 "Reads that were answered."},
		{"bytes_served", "served_bytes_total", "counter", c->bytes_served,
		 "Bytes that reads returned."},
		{"decodes", "decodes_total", "counter", c->decodes,
		 "Pieces of content that were decoded."},
		{"bytes_decoded", "decoded_bytes_total", "counter", c->bytes_decoded,
		 "Bytes that were decoded."},
		{"cache_bytes", "cache_bytes", "gauge", c->held,
		 "Memory in use for decoded bytes."},
		{"cache_bytes_most", "cache_most_bytes", "gauge", c->held_most,
		 "The most memory used so far for decoded bytes."},
		{"cache_budget", "cache_budget_bytes", "gauge", c->budget,
		 "Memory that decoded bytes may use now."},
		{"cache_hits", "cache_hits_total", "counter", c->hits,
		 "Reads that did not wait for a decode."},
		{"cache_misses", "cache_misses_total", "counter", c->reads - c->hits,
		 "Reads that waited for a decode."},
		{"evictions", NULL, "counter", c->crowded_out + c->expired, NULL},
		{"passes", "passes_total", "counter", c->passes,
		 "Times that an entry larger than the cache was decoded in order."},
		{"restarts", "pass_restarts_total", "counter", c->restarts,
		 "Passes over entries that had a pass shortly before."},
		{"errors", NULL, "counter", c->errors, NULL},
		{"reloads", "reloads_total", "counter", s->reloads,
		 "Reloads, each of which shows a new edition of the tree."},
		{"edition", "edition", "gauge", s->reloads + 1,
		 "Number of the edition shown, one more with each reload."},
		{"retired_inodes", "retired_inodes", "gauge", s->retired_inodes,
		 "Files and directories in use that are not shown any more."},
		{"retired_archives", "retired_archives", "gauge", s->retired_archives,
		 "Archives kept open for retired inodes."},
	};

	memcpy(out, all, sizeof(all));
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

void stats_text_put(FILE *f, const struct stats *s)
{
	struct figure figures[FIGURES];
	char room[32];

	gather_figures(s, figures);
	fprintf(f, "{\"version\": \"%s\", \"pid\": %ld, \"started\": \"", KP_VERSION,
		(long)getpid());
	put_moment(f, s->started, 'T');
	fprintf(f, "Z\", \"uptime_seconds\": %.3f", s->uptime);
	for (size_t i = 0; i < FIGURES; i++)
		fprintf(f, ", \"%s\": %" PRIu64, figures[i].key, figures[i].value);
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

void metrics_text_put(FILE *f, const struct stats *s)
{
	const struct edition *e = s->edition;
	struct figure figures[FIGURES];
	char room[32];

	gather_figures(s, figures);
	put_head(f, "build_info", "gauge", "The program's version.");
	put_labelled(f, "build_info", "version", KP_VERSION, 1);
	put_seconds(f, "start_time_seconds", s->started,
		    "Time when the mount was made, in Unix time.");
	for (size_t i = 0; i < FIGURES; i++) {
		if (!figures[i].metric)
			continue;
		put_head(f, figures[i].metric, figures[i].type, figures[i].help);
		fprintf(f, "kpackfs_%s %" PRIu64 "\n", figures[i].metric,
			figures[i].value);
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
	for (int entries = 0; entries < 2; entries++) {
		const char *metric = entries ? "archive_entries" : "archive_size_bytes";

		put_head(f, metric, "gauge",
			 entries ? "Entries of an archive."
				 : "Size of an archive's file.");
		for (size_t i = 0; i < e->holdings.count; i++) {
			const struct kpack_archive *a = e->archives[i];
			const char *path = kp_archive_path(a);
			size_t k = 0;

			/* of two sources with one archive, the first */
			while (k < i &&
			       strcmp(kp_archive_path(e->archives[k]), path) != 0)
				k++;
			if (k == i)
				put_labelled(
					f, metric, "archive", path,
					entries ? kp_archive_entry_count(a)
						: (uint64_t)kp_archive_stat(a)->st_size);
		}
	}
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

/* How many names are not shown because of another, and how many entries are refused. */
static size_t count_conflicts(const struct edition *e)
{
	size_t kept, counted, n;

	kp_view_conflicts(e->view, &kept, &n);
	for (size_t i = 0; i < e->holdings.count; i++) {
		const struct kp_fault *faults =
			kp_archive_faults(e->archives[i], &kept, &counted);

		n += counted - kept;
		for (size_t k = 0; k < kept; k++)
			n += faults[k].refused;
	}
	return n;
}

void status_text_put(FILE *f, const struct stats *s)
{
	const struct edition *e = s->edition;
	const struct content_stats *c = &s->content;
	uint64_t archives = e->holdings.count, refused = e->holdings.n_refused;
	uint64_t entries = count_entries(e), dirs = tree_dir_count(e->tree);
	size_t conflicts = count_conflicts(e), named = 0, more = 0;
	char *arches = arches_line_new(s->arches, ", ");
	const char *path, *last = NULL;

	if (refused) {
		put_count(f, refused, "archive");
		fputs(" refused: see .kpackfs/archives", f);
	}
	if (refused && c->errors)
		fputs("; ", f);
	if (c->errors && (refused || archives)) {
		put_count(f, c->errors, "decode");
		fputs(" failed: see the log", f);
	}
	if (!refused && !archives)
		fputs("no archive: its sources have none", f);
	else if (!refused && !c->errors)
		fputs(SUMMARY_GOOD, f);
	fprintf(f, "\n  program    kpackfs %s, process %ld\n  mounted    ", KP_VERSION,
		(long)getpid());
	put_moment(f, s->started, ' ');
	fputs(" UTC, for ", f);
	put_duration(f, s->uptime);

	/* The first four of their directories.  Archives are in the order of their sources, so
	 * comparing neighbours is enough to name each once. */
	fputs("\n  archives   ", f);
	put_count(f, archives, "archive");
	for (size_t i = 0; i < e->holdings.count; i++, last = path) {
		char *text;

		path = kp_archive_path(e->archives[i]);
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

	fputs("\n  shown      ", f);
	put_count(f, tree_file_count(e->tree), "file");
	fprintf(f, ", %" PRIu64 " director%s, of %" PRIu64 " entr%s", dirs,
		dirs == 1 ? "y" : "ies", entries, entries == 1 ? "y" : "ies");
	fprintf(f, "\n  for        %s\n  conflicts  ", arches ? arches : "none");
	free(arches);
	if (conflicts)
		fprintf(f, "%zu: see .kpackfs/missing", conflicts);
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
