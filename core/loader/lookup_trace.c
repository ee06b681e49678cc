/* SPDX-License-Identifier: MIT */
#include "lookup_trace.h"
#include <string.h>
#include "core/elf/search_path.h"
#include "core/base/text.h"
#include "trace.h"

/* Maximum number of architectures of an archive, and of a request, in a message. */
enum { DECLARED_MAX = 8, WANTED_MAX = 4 };

char *kp_shown(const char *s, char out[KP_SHOWN_MAX])
{
	size_t n = strlen(s), keep = KP_SHOWN_MAX - 16;
	const char *slash;

	if (n <= keep)
		return kp_text_escape(kp_span_str(s), out, KP_SHOWN_MAX);
	slash = strchr(s + n - keep, '/');
	memcpy(out, "...", 3);
	kp_text_escape(kp_span_str(slash ? slash : s + n - keep), out + 3,
		       KP_SHOWN_MAX - 3);
	return out;
}

static void add_shown(struct kp_line *line, const char *s)
{
	char text[KP_SHOWN_MAX];

	kp_line_add(line, "%s", kp_shown(s, text));
}

/* Add " gfx900 gfx906", at most MAX architectures. */
static void add_declared(struct kp_line *line, const struct kpack_archive *a, size_t max)
{
	size_t n = kp_archive_arch_count(a);

	for (size_t i = 0; i < n && i < max; i++) {
		kp_line_add(line, " ");
		kp_line_add_name(line, kp_archive_arch(a, i));
	}
	kp_line_add(line, "%s", n == 0 ? " nothing" : n > max ? " ..." : "");
}

/* ---- why nothing was found ---- */

static void say_opened(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->held)
		return;
	kp_line_add(line, "; ");
	add_shown(line, f->path);
	kp_line_add(line, " offers");
	add_declared(line, kp_cached_archive(f->held), DECLARED_MAX);
}

static bool is_missing(const struct kp_lookup_file *f)
{
	return !f->held && f->why.code == KPACK_ERROR_FILE_NOT_FOUND;
}

static void say_faulty(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->tried || f->held || is_missing(f))
		return;
	kp_line_add(line, "; ");
	add_shown(line, f->path);
	kp_line_add(line, ": %s", f->why.text);
}

static void say_missing(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->tried || !is_missing(f))
		return;
	kp_line_add(line, "; no file ");
	add_shown(line, f->path);
}

/* Add the files that were tried and what they offer, the most relevant first. */
static void say_files(const struct kp_lookup *l, struct kp_line *line)
{
	static void (*const parts[])(const struct kp_lookup_file *, struct kp_line *) = {
		say_opened, say_faulty, say_missing};

	for (size_t p = 0; p < KP_COUNT(parts); p++)
		for (size_t i = 0; i < l->n_files && line->used < KP_LINE_MAX; i++)
			parts[p](&l->files[i], line);
}

static void say_wanted(const struct kp_lookup_want *want, struct kp_line *line)
{
	const char *between = " ";

	for (size_t i = 0; i < want->n_archs && i < WANTED_MAX; i++) {
		if (!want->archs[i])
			continue;
		kp_line_add(line, "%s", between);
		add_shown(line, want->archs[i]);
		between = ", ";
	}
}

kpack_error_t kp_lookup_fail(const struct kp_lookup *l, const struct kp_lookup_want *want,
			     kpack_error_t code, struct kpackx_error *why)
{
	struct kp_line line = {.used = 0};
	char key[KP_SHOWN_MAX];

	kp_shown(want->key, key);
	if (code == KPACK_ERROR_ARCHIVE_NOT_FOUND)
		kp_line_add(&line, "no archive to look for %s in", key);
	else if (code == KPACK_ERROR_ARCH_NOT_FOUND)
		kp_line_add(&line, "no archive offers");
	else
		kp_line_add(&line, "no %s for", key);
	if (code != KPACK_ERROR_ARCHIVE_NOT_FOUND)
		say_wanted(want, &line);
	say_files(l, &line);
	return kp_fail(why, code, "%s", line.text);
}

/* ---- trace lines ---- */

/* A search for a wanted target among those that an archive declares. */
struct search {
	const struct kpack_archive *archive;
	bool found;
};

static bool look_for(struct kp_span target, void *arg)
{
	struct search *s = arg;

	s->found = kp_lookup_declares(s->archive, target);
	return !s->found;
}

static bool declares_any(const struct kpack_archive *a, const struct kp_lookup_want *want)
{
	struct search s = {.archive = a};

	for (size_t i = 0; i < want->n_archs && !s.found; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), look_for, &s);
	return s.found;
}

void kp_lookup_trace_tried(const struct kp_lookup *l, const struct kp_lookup_file *f,
			   const struct kp_lookup_want *want)
{
	struct kp_line line;
	const struct kpack_archive *a;
	bool wanted;

	if (!l->trace)
		return;
	if (!f->held) {
		kp_trace_name(true, "passed over", f->path, f->why.text);
		return;
	}
	a = kp_cached_archive(f->held);
	wanted = declares_any(a, want);
	line.used = 0;
	kp_line_add(&line, wanted ? "looked into: " : "passed over: ");
	kp_line_add_name(&line, f->path);
	kp_line_add(&line, wanted ? ": declares" : ": not for these archs: declares");
	add_declared(&line, a, SIZE_MAX);
	kp_trace_line(&line);
}

/* Begin a line with "WHAT: PATH: KEY TARGET". */
static void begin_line(struct kp_line *line, const char *what,
		       const struct kp_lookup_file *f, const char *key,
		       const char *target)
{
	line->used = 0;
	kp_line_add(line, "%s: ", what);
	kp_line_add_name(line, f->path);
	kp_line_add(line, ": ");
	kp_line_add_name(line, key);
	kp_line_add(line, " ");
	kp_line_add_name(line, target);
}

void kp_lookup_trace_lacks(const struct kp_lookup *l, const struct kp_lookup_file *f,
			   const char *key, const char *target, const char *refusal)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line, "passed over", f, key, target);
	if (refusal)
		kp_line_add(&line, ": refused: %s", refusal);
	else
		kp_line_add(&line, ": declared, but without that key");
	kp_trace_line(&line);
}

void kp_lookup_trace_damaged(const struct kp_lookup *l, const struct kp_lookup_file *f,
			     const char *key, const char *target,
			     const struct kpackx_error *why)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line,
		   l->strict ? "damaged, final by ROCM_KPACK_STRICT" : "passed over", f,
		   key, target);
	kp_line_add(&line, ": %s: %s", kpackx_error_name(why->code), why->text);
	kp_trace_line(&line);
}

void kp_lookup_trace_chosen(const struct kp_lookup *l, const struct kp_lookup_file *f,
			    const char *key, const char *target, size_t size)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line, "chosen", f, key, target);
	kp_line_add(&line, ": %zu bytes", size);
	kp_trace_line(&line);
}
