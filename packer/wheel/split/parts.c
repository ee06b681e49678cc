/* SPDX-License-Identifier: MIT */
#include "parts.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/gpu/hierarchy.h"

void wheel_parts_fini(struct wheel_parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		free(parts->items[i]->arches);
		free(parts->items[i]->needs);
		free(parts->items[i]);
	}
	free(parts->items);
	*parts = (struct wheel_parts){0};
}

/* --- names ------------------------------------------------------------------------- */

void wheel_parts_bundle(const char *arch, char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target t;

	if (kp_target_parse(kp_span_str(arch), &t, NULL)) {
		kp_target_canonical(kp_span_str(arch), out);
		return;
	}
	t.xnack = KP_FEATURE_ANY;
	kp_target_format(&t, out);
}

/* Spell one character of a name: a feature's sign as a word, any other mark as a dash. */
static const char *spell_char(const char *p, char one[2])
{
	bool last = p[1] == '\0' || p[1] == ':';

	one[0] = isalnum((unsigned char)*p) ? *p : '-';
	one[1] = '\0';
	if (*p == '+')
		return "-on";
	return *p == '-' && last ? "-off" : one;
}

bool wheel_parts_suffix(const char *name, char out[WHEEL_NAME_MAX + 1])
{
	size_t used = 0;
	char one[2];

	for (const char *p = name; *p; p++) {
		const char *text = spell_char(p, one);
		size_t n = strlen(text);

		if (!strchr(":+-_.", *p) && !isalnum((unsigned char)*p))
			return false;
		if (WHEEL_NAME_MAX - used < n)
			return false;
		memcpy(out + used, text, n);
		used += n;
	}
	out[used] = '\0';
	return dist_name_ok(out);
}

/* Spell a distribution's name as in file names: marks become "_", capitals stay. */
static void file_of(const char *dist, char out[WHEEL_NAME_MAX + 1])
{
	size_t used = 0;

	for (const char *p = dist; *p; p++) {
		bool mark = strchr("-_.", *p) != NULL;

		if (!mark || used == 0 || out[used - 1] != '_')
			out[used++] = mark ? '_' : *p;
	}
	out[used] = '\0';
}

static kpack_error_t name_part(const struct wheel_parts *parts, struct wheel_part *part,
			       struct kpackx_error *why)
{
	bool asked = part->kind == WHEEL_PART_FAMILY;
	int n;

	if (!wheel_parts_suffix(part->name, part->suffix))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be part of a distribution's name",
			       part->name);
	if (parts->prefix && !asked)
		n = snprintf(part->dist, sizeof(part->dist), "%s-%s", parts->prefix,
			     part->suffix);
	else
		n = snprintf(part->dist, sizeof(part->dist), "%s%s-device-%s",
			     asked ? "" : "amd-", parts->host, part->suffix);
	if (n < 0 || (size_t)n >= sizeof(part->dist) || !dist_name_ok(part->dist))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be part of a distribution's name",
			       part->name);
	file_of(part->dist, part->file);
	return KPACK_SUCCESS;
}

/* --- making ------------------------------------------------------------------------ */

static struct wheel_part *find_part(const struct wheel_parts *parts,
				    enum wheel_part_kind kind, const char *name)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i]->kind == kind &&
		    strcmp(parts->items[i]->name, name) == 0)
			return parts->items[i];
	return NULL;
}

static kpack_error_t keep_part(struct wheel_parts *parts, struct wheel_part *part,
			       struct kpackx_error *why)
{
	struct wheel_part **items =
		realloc(parts->items, (parts->count + 1) * sizeof(*items));

	if (!items)
		return kp_fail_memory(why, parts->count, "device wheels");
	parts->items = items;
	items[parts->count++] = part;
	return KPACK_SUCCESS;
}

static kpack_error_t part_of(struct wheel_parts *parts, enum wheel_part_kind kind,
			     const char *name, struct wheel_part **out,
			     struct kpackx_error *why)
{
	struct wheel_part *part = find_part(parts, kind, name);
	kpack_error_t err;

	*out = part;
	if (part)
		return KPACK_SUCCESS;
	part = calloc(1, sizeof(*part));
	if (!part)
		return kp_fail_memory(why, sizeof(*part), "a device wheel");
	part->kind = kind;
	if (snprintf(part->name, sizeof(part->name), "%s", name) >=
	    (int)sizeof(part->name))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "'%s' is too long a name", name);
	else
		err = name_part(parts, part, why);
	if (!err)
		err = keep_part(parts, part, why);
	if (err)
		free(part);
	else
		*out = part;
	return err;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static kpack_error_t add_arch(struct wheel_part *part, const char *arch,
			      struct kpackx_error *why)
{
	char bundle[KP_TARGET_TEXT_MAX];
	char(*arches)[KP_TARGET_TEXT_MAX];

	wheel_parts_bundle(arch, bundle);
	for (size_t i = 0; i < part->n_arches; i++)
		if (strcmp(part->arches[i], bundle) == 0)
			return KPACK_SUCCESS;
	arches = realloc(part->arches, (part->n_arches + 1) * sizeof(*arches));
	if (!arches)
		return kp_fail_memory(why, part->n_arches, "architectures");
	part->arches = arches;
	memcpy(arches[part->n_arches++], bundle, sizeof(bundle));
	qsort(arches, part->n_arches, sizeof(*arches), by_text);
	return KPACK_SUCCESS;
}

/* The user's family that has ARCH, with or without its xnack; or NULL. */
static const struct family *asked_for(const struct wheel_parts *parts, const char *arch)
{
	const struct family *f = families_find(parts->families, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	wheel_parts_bundle(arch, bundle);
	return f ? f : families_find(parts->families, bundle);
}

kpack_error_t wheel_parts_arch(struct wheel_parts *parts, const char *arch,
			       struct wheel_part **out, struct kpackx_error *why)
{
	const struct family *family = asked_for(parts, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	wheel_parts_bundle(arch, bundle);
	if (family)
		KP_TRY(part_of(parts, WHEEL_PART_FAMILY, family->name, out, why));
	else
		KP_TRY(part_of(parts, WHEEL_PART_TARGET, bundle, out, why));
	return add_arch(*out, arch, why);
}

/*
 * The user's family that equals a database's family NAME or has all its members; or NULL.
 */
static const struct family *asked_family(const struct wheel_parts *parts,
					 const char *name,
					 char (*arches)[KP_TARGET_TEXT_MAX], size_t n)
{
	const char *group = gpu_group_name(kp_span_str(name));
	const struct family *all = n ? asked_for(parts, arches[0]) : NULL;

	for (size_t i = 0; group && i < parts->families->count; i++)
		if (gpu_group_name(kp_span_str(parts->families->items[i].name)) == group)
			return &parts->families->items[i];
	for (size_t i = 1; all && i < n; i++)
		if (asked_for(parts, arches[i]) != all)
			return NULL;
	return all;
}

kpack_error_t wheel_parts_family(struct wheel_parts *parts, const char *family,
				 char (*arches)[KP_TARGET_TEXT_MAX], size_t n,
				 struct wheel_part **out, struct kpackx_error *why)
{
	const struct family *asked = asked_family(parts, family, arches, n);
	const char *group = gpu_group_name(kp_span_str(family));

	if (asked)
		return part_of(parts, WHEEL_PART_FAMILY, asked->name, out, why);
	KP_TRY(part_of(parts, WHEEL_PART_GROUP, group ? group : family, out, why));
	for (size_t i = 0; i < n; i++)
		KP_TRY(add_arch(*out, arches[i], why));
	return KPACK_SUCCESS;
}

/* --- needed device wheels ---------------------------------------------------------- */

static bool same_processor(const struct kp_target *a, const struct kp_target *b)
{
	return strcmp(a->processor, b->processor) == 0;
}

/* True if a GPU of ARCH can also load code for OTHER. */
static bool arch_needs(const char *arch, const char *other)
{
	struct kp_target gpu, code;

	if (strcmp(arch, other) == 0)
		return true;
	if (kp_target_parse(kp_span_str(arch), &gpu, NULL) ||
	    kp_target_parse(kp_span_str(other), &code, NULL))
		return false;
	return same_processor(&gpu, &code) ? kp_target_compatible(&code, &gpu)
					   : kp_target_loadable(&gpu, &code);
}

bool wheel_part_serves(const struct wheel_part *part, const char *gpu)
{
	struct kp_target want, code;

	if (kp_target_parse(kp_span_str(gpu), &want, NULL))
		return false;
	for (size_t i = 0; i < part->n_arches; i++)
		if (!kp_target_parse(kp_span_str(part->arches[i]), &code, NULL) &&
		    kp_target_loadable(&want, &code))
			return true;
	return false;
}

static bool part_needs(const struct wheel_part *p, const struct wheel_part *q)
{
	if (p == q || p->kind == WHEEL_PART_GROUP)
		return false;
	for (size_t i = 0; i < p->n_arches; i++)
		for (size_t k = 0; k < q->n_arches; k++)
			if (arch_needs(p->arches[i], q->arches[k]))
				return true;
	return false;
}

static kpack_error_t find_needs(const struct wheel_parts *parts, struct wheel_part *p,
				struct kpackx_error *why)
{
	free(p->needs);
	p->n_needs = 0;
	p->needs = calloc(parts->count, sizeof(struct wheel_part *));
	if (!p->needs)
		return kp_fail_memory(why, parts->count, "device wheels");
	for (size_t i = 0; i < parts->count; i++)
		if (part_needs(p, parts->items[i]))
			p->needs[p->n_needs++] = parts->items[i];
	return KPACK_SUCCESS;
}

static int by_name(const void *a, const void *b)
{
	const struct wheel_part *const *p = a, *const *q = b;

	if ((*p)->kind != (*q)->kind)
		return (*p)->kind < (*q)->kind ? -1 : 1;
	return strcmp((*p)->name, (*q)->name);
}

static kpack_error_t check_names(const struct wheel_parts *parts,
				 struct kpackx_error *why)
{
	char a[WHEEL_NAME_MAX + 1], b[WHEEL_NAME_MAX + 1];

	for (size_t i = 0; i < parts->count; i++)
		for (size_t k = i + 1; k < parts->count; k++) {
			dist_name_normal(parts->items[i]->dist, '-', a);
			dist_name_normal(parts->items[k]->dist, '-', b);
			if (strcmp(a, b) == 0)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "'%s' and '%s' would both be the "
					       "distribution %s",
					       parts->items[i]->name,
					       parts->items[k]->name, a);
		}
	return KPACK_SUCCESS;
}

kpack_error_t wheel_parts_finish(struct wheel_parts *parts, struct kpackx_error *why)
{
	if (parts->count)
		qsort(parts->items, parts->count, sizeof(struct wheel_part *), by_name);
	for (size_t i = 0; i < parts->count; i++)
		KP_TRY(find_needs(parts, parts->items[i], why));
	return check_names(parts, why);
}
