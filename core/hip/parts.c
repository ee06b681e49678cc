/* SPDX-License-Identifier: MIT */
#include "parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/elf/search_path.h"
#include "say.h"

/* ---- finding objects ---- */

static struct part *find_part(struct parts *p, const char *arch)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->list[i].arch, arch) == 0)
			return &p->list[i];
	return NULL;
}

/* Whether F has the object of PART's architecture; if so, it becomes PART's. */
static bool take_object(const struct parts *p, struct kp_lookup_file *f,
			struct part *part)
{
	const struct kpack_archive *a = kp_cached_archive(f->held);
	struct kp_entry_info info;
	size_t entry;

	if (!kp_archive_find_kernel(a, kp_span_str(p->key), kp_span_str(part->arch),
				    &entry))
		return false;
	kp_archive_entry(a, entry, &info);
	if (info.size == 0)
		return false;
	part->file = f;
	part->entry = entry;
	part->ordinal = info.ordinal;
	part->size = info.size;
	return true;
}

static void add_part(struct parts *p, struct kp_lookup_file *f, const char *arch,
		     const struct kp_target *gpu)
{
	struct part part = {.gpu = gpu};
	size_t at = p->count;

	if (p->count == PARTS_MAX || strlen(arch) >= sizeof(part.arch) ||
	    find_part(p, arch))
		return;
	snprintf(part.arch, sizeof(part.arch), "%s", arch);
	if (!take_object(p, f, &part))
		return;
	for (; at > 0 && strcmp(p->list[at - 1].arch, arch) > 0; at--)
		p->list[at] = p->list[at - 1];
	p->list[at] = part;
	p->count++;
}

static void add_parts(const struct binaries *all, struct parts *p,
		      struct kp_lookup_file *f)
{
	const struct kpack_archive *a = kp_cached_archive(f->held);

	for (size_t i = 0; i < kp_archive_arch_count(a); i++) {
		const char *arch = kp_archive_arch(a, i);
		const struct kp_target *gpu =
			gpus_that_loads(&all->gpus, kp_span_str(arch));

		if (gpu)
			add_part(p, f, arch, gpu);
	}
}

/* ---- reporting ---- */

static void begin_line(struct kp_line *line, const struct binary *b,
		       const struct kp_target *gpu)
{
	char name[KP_TARGET_TEXT_MAX];

	line->used = 0;
	kp_line_add_name(line, b->path);
	kp_target_format(gpu, name);
	kp_line_add(line, ": no code for %s: ", name);
}

/* Whether GPU can load an architecture that F declares. */
static bool serves_gpu(const struct kp_lookup_file *f, const struct kp_target *gpu)
{
	const struct gpus one = {.list = (struct kp_target *)gpu, .count = 1};
	const struct kpack_archive *a = kp_cached_archive(f->held);

	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (gpus_that_loads(&one, kp_span_str(kp_archive_arch(a, i))))
			return true;
	return false;
}

/* Whether KEY is of the binary NAME: "NAME#3", or NAME alone. */
static bool is_of(const char *key, const char *name)
{
	size_t n = strlen(name);

	return strncmp(key, name, n) == 0 && (key[n] == '#' || key[n] == '\0');
}

static bool knows_binary(const struct kp_lookup_file *f, const struct binary *b)
{
	const struct kpack_archive *a = kp_cached_archive(f->held);

	for (size_t i = 0; i < kp_archive_binary_count(a); i++)
		if (is_of(kp_archive_binary(a, i), b->facts.kernel_name))
			return true;
	return false;
}

/* What follows NAME in the base name of PATH, if it could be an archive for NAME, or '\0'. */
static char end_of_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *at = name ? strstr(slash ? slash : path, name) : NULL;
	char end = at ? at[strlen(name)] : '\0';

	return end == '.' || end == ':' ? end : '\0';
}

/*
 * How likely it is that the code for GPU should be in F: a file with its name, or its generic
 * target's, exists; one for the bare processor does not; one with features, or for the
 * generic target, does not; the name is another.
 */
static int likelihood(const struct kp_lookup_file *f, const struct kp_target *gpu)
{
	const char *generic = kp_processor_generic(kp_span_str(gpu->processor));
	char end = end_of_name(f->path, gpu->processor);

	if (!end && !end_of_name(f->path, generic))
		return 0;
	if (f->held || f->why.sys_errno != ENOENT)
		return 3;
	return end == '.' ? 2 : 1;
}

/* The first of the likeliest candidates; NULL: there are none. */
static const struct kp_lookup_file *likely_file(const struct binary *b,
						const struct kp_target *gpu)
{
	const struct kp_lookup_file *best = NULL;
	int most = -1;

	for (size_t i = 0; i < b->files.n_files; i++) {
		int likely = likelihood(&b->files.files[i], gpu);

		if (likely > most) {
			most = likely;
			best = &b->files.files[i];
		}
	}
	return best;
}

static void add_no_archive(struct kp_line *line, const struct binary *b,
			   const struct kp_target *gpu)
{
	const struct kp_lookup_file *f = likely_file(b, gpu);

	if (!f) {
		kp_line_add(line, "no archive is named");
		return;
	}
	kp_line_add_name(line, f->path);
	kp_line_add(line, ": %s", f->held ? "an archive for other GPUs" : f->why.text);
}

/*
 * Report that GPU has no object of this wrapper.  In a binary whose other wrappers have
 * code for it, that is as its compiler was asked, and nothing is wrong.
 */
static void report_missing(struct binary *b, const char *key, const struct kp_target *gpu,
			   bool *reported)
{
	enum say_level level = *reported ? SAY_ALL : SAY_MISSING;
	struct kp_lookup_file *f = NULL;
	struct kp_line line;

	while ((f = kp_lookup_next(&b->files, f, &b->want)))
		if (serves_gpu(f, gpu))
			break;
	if (f && knows_binary(f, b))
		level = SAY_ALL;
	else
		*reported = true;
	if (!say_wants(level))
		return;
	begin_line(&line, b, gpu);
	if (f) {
		kp_line_add_name(&line, f->path);
		kp_line_add(&line, ": no entry ");
		kp_line_add_name(&line, key);
	} else {
		add_no_archive(&line, b, gpu);
	}
	say_line(level, &line);
}

static bool has_part(const struct parts *p, const struct kp_target *gpu)
{
	const struct gpus one = {.list = (struct kp_target *)gpu, .count = 1};

	for (size_t i = 0; i < p->count; i++)
		if (gpus_that_loads(&one, kp_span_str(p->list[i].arch)))
			return true;
	return false;
}

static void report_found(const struct binary *b, const struct parts *p)
{
	for (size_t i = 0; i < p->count && say_wants(SAY_ALL); i++) {
		const struct part *part = &p->list[i];
		struct kp_line line = {.used = 0};

		kp_line_add_name(&line, b->path);
		kp_line_add(&line, ": ");
		kp_line_add_name(&line, p->key);
		kp_line_add(&line, " %s: %llu bytes in ", part->arch,
			    (unsigned long long)part->size);
		kp_line_add_name(&line, part->file->path);
		say_line(SAY_ALL, &line);
	}
}

/* ---- the calls ---- */

kpack_error_t parts_find(struct binaries *all, struct binary *b, uint32_t index,
			 struct parts *out, struct kpackx_error *why)
{
	struct kp_lookup_file *f = NULL;

	out->count = 0;
	if (asprintf(&out->key, "%s#%u", b->facts.kernel_name, index) < 0) {
		out->key = NULL;
		return kp_fail_memory(why, sizeof(*out), "a key");
	}
	while ((f = kp_lookup_next(&b->files, f, &b->want)))
		add_parts(all, out, f);
	for (size_t i = 0; i < all->gpus.count; i++)
		if (!has_part(out, &all->gpus.list[i]))
			report_missing(b, out->key, &all->gpus.list[i], &b->reported[i]);
	report_found(b, out);
	return KPACK_SUCCESS;
}

void parts_fini(struct parts *p)
{
	free(p->key);
	p->key = NULL;
}

void parts_replace(struct binary *b, struct parts *p, size_t i,
		   const struct kpackx_error *why)
{
	struct part *part = &p->list[i];
	struct kp_lookup_file *f = part->file;
	struct kp_line line;

	begin_line(&line, b, part->gpu);
	kp_line_add_name(&line, f->path);
	kp_line_add(&line, ": ");
	kp_line_add_name(&line, p->key);
	kp_line_add(&line, " %s: %s", part->arch, why->text);
	say_line(SAY_MISSING, &line);
	while (!b->files.strict && (f = kp_lookup_next(&b->files, f, &b->want)))
		if (kp_lookup_declares(kp_cached_archive(f->held),
				       kp_span_str(part->arch)) &&
		    take_object(p, f, part))
			return;
	memmove(part, part + 1,
		(size_t)(&p->list[p->count] - (part + 1)) * sizeof(*part));
	p->count--;
}
