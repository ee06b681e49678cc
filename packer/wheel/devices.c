/* SPDX-License-Identifier: MIT */
/*
 * The device wheels that a wheel is split into, their names, and which of them need each other.
 *
 * A device wheel is for a target, with xnack on, off and unstated together, because one
 * GPU may need each of them, and with the processor's steppings (gfx1250-strict), because
 * drivers, extras and AMD's own distributions know only the processor; or it is for a
 * family, if a kernel database has files for a whole family or if the user asks for it.
 *
 *	code or file for		device wheel		needs
 *	gfx90a:xnack+, gfx90a:xnack-	gfx90a
 *	gfx942				gfx942			gfx9-4-generic
 *	gfx9-4-generic			gfx9-4-generic
 *	AOTriton's gfx11xx		gfx11
 *	gfx1100				gfx1100			gfx11
 *	gfx1100, --family x=gfx1100	x			gfx11
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/gpu/names.h"
#include "split.h"

void device_wheels_fini(struct device_wheels *devices)
{
	for (size_t i = 0; i < devices->count; i++) {
		free(devices->items[i]->arches);
		free(devices->items[i]->needs);
		free(devices->items[i]);
	}
	free(devices->items);
	families_fini(&devices->families);
	*devices = (struct device_wheels){0};
}

/* --- names --------------------------------------------------------------------------- */

/*
 * The bundle of a target is what one device wheel is for: sramecc stays, because a GPU has it on
 * or off, whoever uses it; xnack and steppings do not, see above.
 */

/* ARCH without xnack and stepping, canonical; accepts "gfx90a-xnack+", too. */
static void bundle_of(const char *arch, char out[KP_TARGET_TEXT_MAX])
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

/* A "-" is a sign only at the end of a feature: gfx9-4-generic has none. */
bool device_wheel_suffix(const char *name, char out[WHEEL_NAME_MAX + 1])
{
	size_t used = 0;

	for (const char *p = name; *p; p++) {
		bool last = p[1] == '\0' || p[1] == ':';
		char one[2] = {isalnum((unsigned char)*p) ? *p : '-', '\0'};
		const char *text = *p == '+' ? "-on" : *p == '-' && last ? "-off" : one;

		if (one[0] == '-' && !strchr(":+-_.", *p))
			return false;
		if (WHEEL_NAME_MAX - used < strlen(text))
			return false;
		used = (size_t)(stpcpy(out + used, text) - out);
	}
	out[used] = '\0';
	return dist_name_ok(out);
}

/* --- making -------------------------------------------------------------------------- */

/*
 * Find the device wheel of KIND called NAME, or add it; there are some tens.  Its distribution is
 * named after the host and NAME, and its file after the distribution, where marks become "_"
 * and capitals stay.
 */
static kpack_error_t find_device(struct device_wheels *devices,
				 enum device_wheel_kind kind, const char *name,
				 struct device_wheel **out, struct kpackx_error *why)
{
	bool asked = kind == DEVICE_WHEEL_FAMILY;
	char suffix[WHEEL_NAME_MAX + 1], *to;
	KP_AUTO_FREE char *dist = NULL;
	struct device_wheel *device;

	for (size_t i = 0; i < devices->count; i++) {
		*out = devices->items[i];
		if ((*out)->kind == kind && strcmp((*out)->name, name) == 0)
			return KPACK_SUCCESS;
	}
	if (strlen(name) >= sizeof(device->name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' is too long a name", name);
	if (device_wheel_suffix(name, suffix))
		dist = devices->prefix && !asked
			       ? xasprintf("%s-%s", devices->prefix, suffix)
			       : xasprintf("%s%s-device-%s", asked ? "" : "amd-",
					   devices->host, suffix);
	if (!dist || !dist_name_ok(dist))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be part of a distribution's name", name);
	*out = device = xcalloc(1, sizeof(*device));
	device->kind = kind;
	memcpy(device->name, name, strlen(name) + 1);
	memcpy(device->suffix, suffix, strlen(suffix) + 1);
	memcpy(device->dist, dist, strlen(dist) + 1);
	to = device->file;
	for (const char *p = dist; *p; p++) {
		bool mark = strchr("-_.", *p);

		if (!mark || to == device->file || to[-1] != '_')
			*to++ = mark ? '_' : *p;
	}
	devices->items = xrealloc(devices->items,
				  (devices->count + 1) * sizeof(struct device_wheel *));
	devices->items[devices->count++] = device;
	return KPACK_SUCCESS;
}

/* Add ARCH to the sorted targets of DEVICE, once. */
static void add_arch(struct device_wheel *device, const char *arch)
{
	char bundle[KP_TARGET_TEXT_MAX];
	size_t at = 0, n = device->n_arches;

	bundle_of(arch, bundle);
	while (at < n && strcmp(device->arches[at], bundle) < 0)
		at++;
	if (at < n && strcmp(device->arches[at], bundle) == 0)
		return;
	device->arches = xrealloc(device->arches, (n + 1) * sizeof(*device->arches));
	memmove(device->arches + at + 1, device->arches + at,
		(n - at) * sizeof(*device->arches));
	memcpy(device->arches[at], bundle, sizeof(bundle));
	device->n_arches++;
}

/* The user's family that has ARCH, with or without its xnack; or NULL. */
static const struct family *asked_for(const struct device_wheels *devices,
				      const char *arch)
{
	const struct family *f = families_find(&devices->families, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	bundle_of(arch, bundle);
	return f ? f : families_find(&devices->families, bundle);
}

/* Find the device wheel for code of ARCH alone, or add it. */
static kpack_error_t find_for_arch(struct device_wheels *devices, const char *arch,
				   struct device_wheel **out, struct kpackx_error *why)
{
	const struct family *family = asked_for(devices, arch);
	char bundle[KP_TARGET_TEXT_MAX];

	bundle_of(arch, bundle);
	KP_TRY(find_device(devices, family ? DEVICE_WHEEL_FAMILY : DEVICE_WHEEL_TARGET,
			   family ? family->name : bundle, out, why));
	add_arch(*out, arch);
	return KPACK_SUCCESS;
}

/*
 * A tree of a partition is for one target, or for a family, which is the user's own, or of a
 * database; a database's family is the user's if the two mean the same, or if all of its
 * members are the user's.
 */
kpack_error_t device_wheels_find(struct device_wheels *devices,
				 const struct output_tree *tree,
				 const struct device_wheel **out,
				 struct kpackx_error *why)
{
	const char *group = gpu_group_name(kp_span_str(tree->name));
	const struct family *asked = NULL;
	struct device_wheel *device = NULL;
	bool named = false;

	if (!tree->family) {
		KP_TRY(find_for_arch(devices, tree->name, &device, why));
		*out = device;
		return KPACK_SUCCESS;
	}
	if (tree->n_arches)
		asked = asked_for(devices, tree->arches[0]);
	for (size_t i = 1; i < tree->n_arches; i++)
		if (asked_for(devices, tree->arches[i]) != asked)
			asked = NULL;
	for (size_t i = devices->families.count; i--;) {
		const struct family *f = &devices->families.items[i];

		named |= strcmp(f->name, tree->name) == 0;
		if (group && gpu_group_name(kp_span_str(f->name)) == group)
			asked = f;
	}
	if (named) {
		for (size_t i = 0; i < tree->n_arches; i++)
			KP_TRY(find_for_arch(devices, tree->arches[i], &device, why));
	} else if (asked) {
		KP_TRY(find_device(devices, DEVICE_WHEEL_FAMILY, asked->name, &device,
				   why));
	} else {
		KP_TRY(find_device(devices, DEVICE_WHEEL_GROUP,
				   group ? group : tree->name, &device, why));
		for (size_t i = 0; i < tree->n_arches; i++)
			add_arch(device, tree->arches[i]);
	}
	*out = device;
	return KPACK_SUCCESS;
}

/* --- needs --------------------------------------------------------------------------- */

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

/* Whether a GPU of the target ID ARCH can also load code for OTHER. */
static bool loads_also(const char *arch, const char *other)
{
	struct kp_target gpu, code;

	if (strcmp(arch, other) == 0)
		return true;
	if (kp_target_parse(kp_span_str(arch), &gpu, NULL) ||
	    kp_target_parse(kp_span_str(other), &code, NULL))
		return false;
	return strcmp(gpu.processor, code.processor) == 0
		       ? kp_target_compatible(&code, &gpu)
		       : kp_target_loadable(&gpu, &code);
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct device_wheel *const *p = a, *const *q = b;

	return (*p)->kind != (*q)->kind ? KP_ORDER((*p)->kind, (*q)->kind)
					: strcmp((*p)->name, (*q)->name);
}

kpack_error_t device_wheels_finish(struct device_wheels *devices,
				   struct kpackx_error *why)
{
	struct device_wheel **all = devices->items;
	char a[WHEEL_NAME_MAX + 1], b[WHEEL_NAME_MAX + 1];
	size_t n = devices->count;

	qsort(all, n, sizeof(struct device_wheel *), by_kind_and_name);
	for (size_t i = 0; i < n; i++) {
		all[i]->needs = xmalloc(n * sizeof(struct device_wheel *));
		/* a database's family needs nothing: it has files, the targets' wheels the code */
		for (size_t k = 0; k < n && all[i]->kind != DEVICE_WHEEL_GROUP; k++) {
			bool needs = false;

			for (size_t x = 0; x < all[i]->n_arches; x++)
				for (size_t y = 0; y < all[k]->n_arches; y++)
					needs |= loads_also(all[i]->arches[x],
							    all[k]->arches[y]);
			if (k != i && needs)
				all[i]->needs[all[i]->n_needs++] = all[k];
		}
	}
	/* two targets can have one spelling, and installers ignore case and marks */
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			dist_name_normal(all[i]->dist, '-', a);
			dist_name_normal(all[k]->dist, '-', b);
			if (strcmp(a, b) == 0)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "'%s' and '%s' would both be the "
					       "distribution %s",
					       all[i]->name, all[k]->name, a);
		}
	return KPACK_SUCCESS;
}
