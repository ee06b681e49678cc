/* SPDX-License-Identifier: MIT */
/*
 * The code objects of one wrapper: for each architecture that a GPU loads, that of the first
 * archive that has one.  A GPU without any is reported, with the archive in which one would look.
 */
#include "hip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding objects ---- */

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

/* Add the objects of F for architectures that no part is for yet. */
static void add_parts(const struct binaries *all, struct parts *p,
		      struct kp_lookup_file *f)
{
	const struct kpack_archive *a = kp_cached_archive(f->held);

	for (size_t i = 0; i < kp_archive_arch_count(a); i++) {
		const char *arch = kp_archive_arch(a, i);
		struct part part = {.gpu = NULL};
		size_t at = 0, gpu = 0;

		while (gpu < all->gpus.count && !gpu_loads(&all->gpus.list[gpu], arch))
			gpu++;
		while (at < p->count && strcmp(p->list[at].arch, arch) < 0)
			at++;
		if (gpu == all->gpus.count || p->count == PARTS_MAX ||
		    strlen(arch) >= sizeof(part.arch) ||
		    (at < p->count && strcmp(p->list[at].arch, arch) == 0))
			continue;
		part.gpu = &all->gpus.list[gpu];
		snprintf(part.arch, sizeof(part.arch), "%s", arch);
		if (!take_object(p, f, &part))
			continue;
		memmove(&p->list[at + 1], &p->list[at],
			(p->count - at) * sizeof(p->list[0]));
		p->list[at] = part;
		p->count++;
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
	const struct kpack_archive *a = kp_cached_archive(f->held);

	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (gpu_loads(gpu, kp_archive_arch(a, i)))
			return true;
	return false;
}

/* Whether F has a key of the binary NAME: "NAME#3", or NAME alone. */
static bool knows_binary(const struct kp_lookup_file *f, const char *name)
{
	const struct kpack_archive *a = kp_cached_archive(f->held);
	size_t n = strlen(name);

	for (size_t i = 0; i < kp_archive_toc(a)->n_binaries; i++) {
		const char *key = (const char *)kp_toc_key(kp_archive_toc(a), i).data;

		if (strncmp(key, name, n) == 0 && (key[n] == '#' || key[n] == '\0'))
			return true;
	}
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

/* Add the likeliest of the candidates, and why it has no code for GPU. */
static void add_likely(struct kp_line *line, const struct binary *b,
		       const struct kp_target *gpu)
{
	const char *generic = kp_processor_generic(kp_span_str(gpu->processor));
	const struct kp_lookup_file *best = NULL;
	int most = -1;

	for (size_t i = 0; i < b->files.n_files; i++) {
		const struct kp_lookup_file *f = &b->files.files[i];
		char end = end_of_name(f->path, gpu->processor);
		int likely;

		/*
		 * A file with its name, or its generic target's, exists; one for the bare processor
		 * does not; one with features, or for the generic target, does not; the name is
		 * another.
		 */
		if (!end && !end_of_name(f->path, generic))
			likely = 0;
		else if (f->held || f->why.sys_errno != ENOENT)
			likely = 3;
		else
			likely = end == '.' ? 2 : 1;

		if (likely > most) {
			most = likely;
			best = f;
		}
	}
	if (!best) {
		kp_line_add(line, "no archive is named");
		return;
	}
	kp_line_add_name(line, best->path);
	kp_line_add(line, ": %s",
		    best->held ? "an archive for other GPUs" : best->why.text);
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

	while ((f = kp_lookup_next(&b->files, f)))
		if (serves_gpu(f, gpu))
			break;
	if (f && knows_binary(f, b->facts.kernel_name))
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
		add_likely(&line, b, gpu);
	}
	say_line(level, &line);
}

/* ---- the calls ---- */

kpack_error_t parts_find(struct binaries *all, struct binary *b, uint32_t index,
			 struct parts *out, struct kpackx_error *why)
{
	struct kp_lookup_file *f = NULL;
	size_t k;

	out->count = 0;
	if (asprintf(&out->key, "%s#%u", b->facts.kernel_name, index) < 0) {
		out->key = NULL;
		return kp_fail_memory(why, sizeof(*out), "a key");
	}
	while ((f = kp_lookup_next(&b->files, f)))
		add_parts(all, out, f);
	for (size_t i = 0; i < all->gpus.count; i++) {
		for (k = 0; k < out->count; k++)
			if (gpu_loads(&all->gpus.list[i], out->list[k].arch))
				break;
		if (k == out->count)
			report_missing(b, out->key, &all->gpus.list[i], &b->reported[i]);
	}
	for (k = 0; k < out->count && say_wants(SAY_ALL); k++) {
		const struct part *part = &out->list[k];
		struct kp_line line = {.used = 0};

		kp_line_add_name(&line, b->path);
		kp_line_add(&line, ": ");
		kp_line_add_name(&line, out->key);
		kp_line_add(&line, " %s: %llu bytes in ", part->arch,
			    (unsigned long long)part->size);
		kp_line_add_name(&line, part->file->path);
		say_line(SAY_ALL, &line);
	}
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
	while (!b->files.env->strict && (f = kp_lookup_next(&b->files, f)))
		if (kp_lookup_declares(kp_cached_archive(f->held),
				       kp_span_str(part->arch)) &&
		    take_object(p, f, part))
			return;
	memmove(part, part + 1,
		(size_t)(&p->list[p->count] - (part + 1)) * sizeof(*part));
	p->count--;
}
