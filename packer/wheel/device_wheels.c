/* SPDX-License-Identifier: MIT */
#include "device_wheels.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/gpu/hierarchy.h"

void device_wheels_fini(struct device_wheels *devices)
{
	for (size_t i = 0; i < devices->count; i++) {
		free(devices->items[i]->arches);
		free(devices->items[i]->needs);
		free(devices->items[i]);
	}
	free(devices->items);
	*devices = (struct device_wheels){0};
}

/* --- names ------------------------------------------------------------------------- */

void device_wheels_bundle(const char *arch, char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target t;
	size_t model, n;

	if (kp_target_parse(kp_span_str(arch), &t, NULL)) {
		kp_target_canonical(kp_span_str(arch), out);
	} else {
		t.xnack = KP_FEATURE_ANY;
		kp_target_format(&t, out);
	}
	n = strcspn(out, ":");
	model = kp_processor_model((struct kp_span){(const uint8_t *)out, n}).size;
	memmove(out + model, out + n, strlen(out + n) + 1);
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

bool device_wheels_suffix(const char *name, char out[WHEEL_NAME_MAX + 1])
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

static kpack_error_t name_part(const struct device_wheels *devices,
			       struct device_wheel *device, struct kpackx_error *why)
{
	bool asked = device->kind == DEVICE_WHEEL_FAMILY;
	int n;

	if (!device_wheels_suffix(device->name, device->suffix))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be part of a distribution's name",
			       device->name);
	if (devices->prefix && !asked)
		n = snprintf(device->dist, sizeof(device->dist), "%s-%s", devices->prefix,
			     device->suffix);
	else
		n = snprintf(device->dist, sizeof(device->dist), "%s%s-device-%s",
			     asked ? "" : "amd-", devices->host, device->suffix);
	if (n < 0 || (size_t)n >= sizeof(device->dist) || !dist_name_ok(device->dist))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be part of a distribution's name",
			       device->name);
	file_of(device->dist, device->file);
	return KPACK_SUCCESS;
}

/* --- making ------------------------------------------------------------------------ */

static struct device_wheel *find_part(const struct device_wheels *devices,
				      enum device_wheel_kind kind, const char *name)
{
	for (size_t i = 0; i < devices->count; i++)
		if (devices->items[i]->kind == kind &&
		    strcmp(devices->items[i]->name, name) == 0)
			return devices->items[i];
	return NULL;
}

static void keep_part(struct device_wheels *devices, struct device_wheel *device)
{
	devices->items = xrealloc(devices->items,
				  (devices->count + 1) * sizeof(struct device_wheel *));
	devices->items[devices->count++] = device;
}

static kpack_error_t tree_of(struct device_wheels *devices, enum device_wheel_kind kind,
			     const char *name, struct device_wheel **out,
			     struct kpackx_error *why)
{
	struct device_wheel *device = find_part(devices, kind, name);
	kpack_error_t err;

	*out = device;
	if (device)
		return KPACK_SUCCESS;
	device = xcalloc(1, sizeof(*device));
	device->kind = kind;
	if (snprintf(device->name, sizeof(device->name), "%s", name) >=
	    (int)sizeof(device->name))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "'%s' is too long a name", name);
	else
		err = name_part(devices, device, why);
	if (err) {
		free(device);
		return err;
	}
	keep_part(devices, device);
	*out = device;
	return KPACK_SUCCESS;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_arch(struct device_wheel *device, const char *arch)
{
	char bundle[KP_TARGET_TEXT_MAX];

	device_wheels_bundle(arch, bundle);
	for (size_t i = 0; i < device->n_arches; i++)
		if (strcmp(device->arches[i], bundle) == 0)
			return;
	device->arches = xrealloc(device->arches,
				  (device->n_arches + 1) * sizeof(*device->arches));
	memcpy(device->arches[device->n_arches++], bundle, sizeof(bundle));
	qsort(device->arches, device->n_arches, sizeof(*device->arches), by_text);
}

/* The user's family that has ARCH, with or without its xnack; or NULL. */
static const struct family *asked_for(const struct device_wheels *devices,
				      const char *arch)
{
	const struct family *f = families_find(devices->families, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	device_wheels_bundle(arch, bundle);
	return f ? f : families_find(devices->families, bundle);
}

kpack_error_t device_wheels_arch(struct device_wheels *devices, const char *arch,
				 struct device_wheel **out, struct kpackx_error *why)
{
	const struct family *family = asked_for(devices, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	device_wheels_bundle(arch, bundle);
	if (family)
		KP_TRY(tree_of(devices, DEVICE_WHEEL_FAMILY, family->name, out, why));
	else
		KP_TRY(tree_of(devices, DEVICE_WHEEL_TARGET, bundle, out, why));
	add_arch(*out, arch);
	return KPACK_SUCCESS;
}

/*
 * The user's family that equals a database's family NAME or has all its members; or NULL.
 */
static const struct family *asked_family(const struct device_wheels *devices,
					 const char *name,
					 char (*arches)[KP_TARGET_TEXT_MAX], size_t n)
{
	const char *group = gpu_group_name(kp_span_str(name));
	const struct family *all = n ? asked_for(devices, arches[0]) : NULL;

	for (size_t i = 0; group && i < devices->families->count; i++)
		if (gpu_group_name(kp_span_str(devices->families->items[i].name)) ==
		    group)
			return &devices->families->items[i];
	for (size_t i = 1; all && i < n; i++)
		if (asked_for(devices, arches[i]) != all)
			return NULL;
	return all;
}

kpack_error_t device_wheels_family(struct device_wheels *devices, const char *family,
				   char (*arches)[KP_TARGET_TEXT_MAX], size_t n,
				   struct device_wheel **out, struct kpackx_error *why)
{
	const struct family *asked = asked_family(devices, family, arches, n);
	const char *group = gpu_group_name(kp_span_str(family));

	if (asked)
		return tree_of(devices, DEVICE_WHEEL_FAMILY, asked->name, out, why);
	KP_TRY(tree_of(devices, DEVICE_WHEEL_GROUP, group ? group : family, out, why));
	for (size_t i = 0; i < n; i++)
		add_arch(*out, arches[i]);
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

bool device_wheel_serves(const struct device_wheel *device, const char *gpu)
{
	struct kp_target want, code;

	if (kp_target_parse(kp_span_str(gpu), &want, NULL))
		return false;
	for (size_t i = 0; i < device->n_arches; i++)
		if (!kp_target_parse(kp_span_str(device->arches[i]), &code, NULL) &&
		    kp_target_loadable(&want, &code))
			return true;
	return false;
}

static bool part_needs(const struct device_wheel *p, const struct device_wheel *q)
{
	if (p == q || p->kind == DEVICE_WHEEL_GROUP)
		return false;
	for (size_t i = 0; i < p->n_arches; i++)
		for (size_t k = 0; k < q->n_arches; k++)
			if (arch_needs(p->arches[i], q->arches[k]))
				return true;
	return false;
}

static void find_needs(const struct device_wheels *devices, struct device_wheel *p)
{
	free(p->needs);
	p->n_needs = 0;
	p->needs = xmalloc(devices->count * sizeof(struct device_wheel *));
	for (size_t i = 0; i < devices->count; i++)
		if (part_needs(p, devices->items[i]))
			p->needs[p->n_needs++] = devices->items[i];
}

static int by_name(const void *a, const void *b)
{
	const struct device_wheel *const *p = a, *const *q = b;

	if ((*p)->kind != (*q)->kind)
		return KP_ORDER((*p)->kind, (*q)->kind);
	return strcmp((*p)->name, (*q)->name);
}

static kpack_error_t check_names(const struct device_wheels *devices,
				 struct kpackx_error *why)
{
	char a[WHEEL_NAME_MAX + 1], b[WHEEL_NAME_MAX + 1];

	for (size_t i = 0; i < devices->count; i++)
		for (size_t k = i + 1; k < devices->count; k++) {
			dist_name_normal(devices->items[i]->dist, '-', a);
			dist_name_normal(devices->items[k]->dist, '-', b);
			if (strcmp(a, b) == 0)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "'%s' and '%s' would both be the "
					       "distribution %s",
					       devices->items[i]->name,
					       devices->items[k]->name, a);
		}
	return KPACK_SUCCESS;
}

kpack_error_t device_wheels_finish(struct device_wheels *devices,
				   struct kpackx_error *why)
{
	if (devices->count)
		qsort(devices->items, devices->count, sizeof(struct device_wheel *),
		      by_name);
	for (size_t i = 0; i < devices->count; i++)
		find_needs(devices, devices->items[i]);
	return check_names(devices, why);
}
