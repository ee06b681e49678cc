/* SPDX-License-Identifier: MIT */
#include "tensile.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "arch_name.h"
#include "tensile_directory.h"
#include "tensile_solutions.h"
#include "tensile_name.h"
#include "tensile_rows.h"
#include "core/target/target.h"

/* A file below the library's directory, as its path describes it. */
struct place {
	struct kp_span rest;           /* the path after the library's directory */
	struct kp_span directory;      /* name of the GPU's directory; or empty */
	char arch[KP_TARGET_TEXT_MAX]; /* target ID of that directory; or "" */
	bool variant;
	struct tensile_name name;
};

static const struct tensile *row(const struct library *self)
{
	return self->data;
}

/* Set REST to the part of the path after the library's directory. */
static bool find_rest(const struct library *self, const struct library_question *q,
		      struct kp_span *rest)
{
	return path_below(q->path, row(self)->directory, rest) ||
	       tensile_directory_has(q->tree, q->path, self->name, rest);
}

bool tensile_probe(const struct library *self, const struct library_question *q)
{
	struct kp_span rest;

	return find_rest(self, q, &rest);
}

/* Find the first directory that is named after a GPU. */
static void find_directory(struct place *place)
{
	size_t depth = path_depth(place->rest);

	for (size_t i = 0; i + 1 < depth; i++) {
		place->directory = path_component(place->rest, i);
		if (arch_of_directory(place->directory, place->arch, &place->variant))
			return;
	}
	place->directory = (struct kp_span){NULL, 0};
	place->arch[0] = '\0';
	place->variant = false;
}

static void place_read(const char *path, struct kp_span rest, struct place *place)
{
	*place =
		(struct place){.rest = rest, .name = tensile_name_split(path_name(path))};
	find_directory(place);
}

/* --- facts -------------------------------------------------------------------------------- */

static bool has_stem(const char *role)
{
	static const char *const without[] = {"manifest", "file"};

	for (size_t i = 0; i < KP_COUNT(without); i++)
		if (strcmp(role, without[i]) == 0)
			return false;
	return true;
}

static void add_xnack(const struct library_object *out, struct facts *facts)
{
	struct kp_target target;

	if (out->n_arches == 1 &&
	    kp_target_parse(kp_span_str(out->arches[0]), &target, NULL) ==
		    KPACK_SUCCESS &&
	    target.xnack != KP_FEATURE_ANY)
		facts_flag(facts, "xnack", target.xnack == KP_FEATURE_ON);
}

static void add_kernel_count(const struct library_question *q, struct facts *facts)
{
	struct kp_span head = {q->head, q->head_size};
	uint64_t count = 0;

	if ((solutions_count(head, &count) || solutions_count_zlib(head, &count)) &&
	    count)
		facts_number(facts, "kernel_count", count);
}

static void add_facts(const struct library_question *q, const struct place *place,
		      struct library_object *out)
{
	struct facts *facts = &out->facts;

	if (has_stem(out->role)) {
		if (place->name.stem.size <= NAME_MAX)
			facts_text(facts, "stem", place->name.stem);
		tensile_name_facts(place->name.stem, facts);
	}
	add_xnack(out, facts);
	if (place->variant)
		facts_text(facts, "variant", place->directory);
	if (kp_span_is(place->name.ending, "dat"))
		add_kernel_count(q, facts);
}

/* --- the paper's keys ---------------------------------------------------------------------- */

/* Whether a file exists whose path is the first SIZE bytes of Q's path, and NAME. */
static bool has_file(const struct library_question *q, size_t size, const char *name)
{
	char *path = xasprintf("%.*s%s", (int)size, q->path, name);
	size_t ignored;
	bool found = file_tree_find(q->tree, kp_span_str(path), &ignored);

	free(path);
	return found;
}

/* Whether the file's path is as the paper draws it: gfx1100/kernel_1.co. */
static bool is_drawn(const struct tensile *t, const struct library_question *q,
		     const struct place *place)
{
	size_t n = t->drawn_in ? strlen(t->drawn_in) : 0;
	size_t before = (size_t)((const char *)place->rest.data - q->path);
	struct kp_span rest = place->rest;

	if (!t->drawn_in || !*place->arch || !kp_span_starts(rest, t->drawn_in, n))
		return false;
	rest = (struct kp_span){rest.data + n, rest.size - n};
	return rest.data == place->directory.data && path_depth(rest) == 2 &&
	       tensile_name_is_code(&place->name) &&
	       (!t->drawn_with || has_file(q, before, t->drawn_with));
}

/* The key has no ending: if x.co and x.hsaco both exist, only x.co gets it. */
static void add_key(const struct library *self, const struct library_question *q,
		    const struct place *place, struct library_object *out)
{
	struct kp_span name = path_name(q->path);
	size_t without = strlen(q->path) - place->name.ending.size;

	if (!kp_span_is(place->name.ending, "hsaco") || !has_file(q, without, "co"))
		library_add_key(out, "%s/%s/%.*s", self->name, place->arch,
				(int)(name.size - place->name.ending.size - 1),
				(const char *)name.data);
}

/*
 * A file that the library opens by the same name for every GPU is stored for all GPUs,
 * even if a build has code for only one: builds that differ in this file must conflict.
 */
static bool is_for_all(const char *role)
{
	return strcmp(role, "transform") == 0;
}

kpack_error_t tensile_check(const struct library *self, const struct library_question *q,
			    bool *mine, struct library_object *out,
			    struct kpackx_error *why)
{
	char named[KP_TARGET_TEXT_MAX];
	struct kp_span rest;
	struct place place;

	*mine = find_rest(self, q, &rest) &&
		strcmp(content_container(q), "host-elf") != 0;
	if (!*mine)
		return KPACK_SUCCESS;
	place_read(q->path, rest, &place);
	out->role = place.name.role;
	arch_named(q->path, place.arch, named, out);
	KP_TRY(arch_decide(q, named, out, why));
	if (*named && !out->warning && strcmp(out->role, "parent") == 0)
		KP_TRY(tensile_rows_check(q, named, out, why));
	if (!*named && is_for_all(out->role)) {
		out->n_arches = 0;
		library_add_arch(out, KP_ARCH_GENERIC);
	}
	add_facts(q, &place, out);
	if (is_drawn(row(self), q, &place))
		add_key(self, q, &place, out);
	return KPACK_SUCCESS;
}
