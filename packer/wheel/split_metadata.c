/* SPDX-License-Identifier: MIT */
#include "split_metadata.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/base/decimal.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "variant.h"

#ifndef KP_VERSION
#define KP_VERSION "unknown"
#endif

/* The placeholder for the target in a requirement. */
#define PLACEHOLDER "@GFXARCH@"

/* --- extras ------------------------------------------------------------------------ */

struct extras {
	struct wheel_extra *items;
	size_t count;
};

static void keep_extra(struct extras *list, const struct wheel_extra *extra)
{
	list->items = xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
	list->items[list->count++] = *extra;
}

static kpack_error_t name_extra(struct wheel_extra *e, const char *prefix,
				const char *name, struct kpackx_error *why)
{
	char text[WHEEL_NAME_MAX + 1];

	if (snprintf(text, sizeof(text), "%s%s", prefix, name) >= (int)sizeof(text) ||
	    !dist_name_normal(text, '-', e->name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s%s' cannot be the name of an extra", prefix, name);
	return KPACK_SUCCESS;
}

static kpack_error_t add_extra(struct extras *list, const char *prefix, const char *name,
			       const struct device_wheel *device,
			       struct kpackx_error *why)
{
	struct wheel_extra e = {.device = device};

	KP_TRY(name_extra(&e, prefix, name, why));
	keep_extra(list, &e);
	return KPACK_SUCCESS;
}

static kpack_error_t add_both(struct extras *list, const char *name,
			      const struct device_wheel *device, struct kpackx_error *why)
{
	KP_TRY(add_extra(list, "device-", name, device, why));
	return add_extra(list, "", name, device, why);
}

/*
 * False if PART is a database's family that other device wheels need: it gets no extra.
 */
static bool is_asked_for(const struct device_wheels *devices,
			 const struct device_wheel *device)
{
	if (device->kind != DEVICE_WHEEL_GROUP)
		return true;
	for (size_t i = 0; i < devices->count; i++)
		for (size_t k = 0; k < devices->items[i]->n_needs; k++)
			if (devices->items[i]->needs[k] == device)
				return false;
	return true;
}

/* True if the host already has an extra NAME, ignoring case and marks. */
static bool has_extra(const struct metadata_text *m, const char *name)
{
	char text[WHEEL_NAME_MAX + 1], normal[WHEEL_NAME_MAX + 1];
	struct kp_span value;

	for (size_t at = 0; metadata_text_next(m, "Provides-Extra", &at, &value);) {
		if (value.size > WHEEL_NAME_MAX)
			continue;
		memcpy(text, value.data, value.size);
		text[value.size] = '\0';
		if (dist_name_normal(text, '-', normal) && strcmp(normal, name) == 0)
			return true;
	}
	return false;
}

static bool is_taken(const struct extras *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return true;
	return false;
}

/* Add the extra of all device wheels that GPU can load, unless its name is taken. */
static kpack_error_t add_gpu(struct extras *list, const struct wheel_metadata *m,
			     const char *prefix, struct kp_span gpu,
			     struct kpackx_error *why)
{
	char suffix[WHEEL_NAME_MAX + 1];
	struct wheel_extra e = {0};

	snprintf(e.gpu, sizeof(e.gpu), "%.*s", (int)gpu.size, (const char *)gpu.data);
	if (!device_wheels_suffix(e.gpu, suffix))
		return KPACK_SUCCESS;
	KP_TRY(name_extra(&e, prefix, suffix, why));
	if (!is_taken(list, e.name) && !has_extra(&m->host->metadata, e.name))
		keep_extra(list, &e);
	return KPACK_SUCCESS;
}

/* Add extras for ARCH, for its GPU without features, and for the GPUs that it covers. */
static kpack_error_t add_gpus(struct extras *list, const struct wheel_metadata *m,
			      const char *prefix, const char *arch,
			      struct kpackx_error *why)
{
	const char *const *members;
	struct kp_target t;

	KP_TRY(add_gpu(list, m, prefix, kp_span_str(arch), why));
	if (kp_target_parse(kp_span_str(arch), &t, NULL))
		return KPACK_SUCCESS;
	KP_TRY(add_gpu(list, m, prefix, kp_processor_model(kp_span_str(t.processor)),
		       why));
	members = kp_generic_members(kp_span_str(t.processor));
	for (; members && *members; members++)
		KP_TRY(add_gpu(list, m, prefix, kp_span_str(*members), why));
	return KPACK_SUCCESS;
}

static int by_name(const void *a, const void *b)
{
	const struct wheel_extra *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static kpack_error_t check_twice(const struct extras *list, struct kpackx_error *why)
{
	qsort(list->items, list->count, sizeof(*list->items), by_name);
	for (size_t i = 1; i < list->count; i++)
		if (strcmp(list->items[i - 1].name, list->items[i].name) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "two device wheels would both have the extra '%s'",
				       list->items[i].name);
	return KPACK_SUCCESS;
}

static kpack_error_t add_parts(struct extras *list, const struct device_wheels *devices,
			       struct kpackx_error *why)
{
	for (size_t i = 0; i < devices->count; i++)
		if (is_asked_for(devices, devices->items[i]))
			KP_TRY(add_both(list, devices->items[i]->suffix,
					devices->items[i], why));
	return KPACK_SUCCESS;
}

/* A GPU for which only shared files of a family exist gets no extra. */
static kpack_error_t add_all_gpus(struct extras *list, const struct wheel_metadata *m,
				  const char *prefix, struct kpackx_error *why)
{
	for (size_t i = 0; i < m->devices->count; i++) {
		const struct device_wheel *device = m->devices->items[i];

		for (size_t k = 0;
		     is_asked_for(m->devices, device) && k < device->n_arches; k++)
			KP_TRY(add_gpus(list, m, prefix, device->arches[k], why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t all_extras(const struct wheel_metadata *m, struct extras *list,
				struct kpackx_error *why)
{
	KP_TRY(add_extra(list, "", "device-all", NULL, why));
	KP_TRY(add_parts(list, m->devices, why));
	KP_TRY(check_twice(list, why));
	KP_TRY(add_all_gpus(list, m, "device-", why));
	KP_TRY(add_all_gpus(list, m, "", why));
	qsort(list->items, list->count, sizeof(*list->items), by_name);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_extras(const struct wheel_metadata *m, struct wheel_extra **out,
			   size_t *count, struct kpackx_error *why)
{
	struct extras list = {0};
	kpack_error_t err = all_extras(m, &list, why);

	if (err) {
		free(list.items);
		list = (struct extras){0};
	}
	*out = list.items;
	*count = list.count;
	return err;
}

/* --- texts ------------------------------------------------------------------------- */

/* True if the host's Metadata-Version is below 2.MINOR. */
static bool format_below(const struct metadata_text *m, unsigned minor)
{
	struct kp_span v;

	if (!metadata_text_get(m, "Metadata-Version", &v))
		return true;
	return v.size < 3 || v.data[0] < '2' ||
	       (v.data[0] == '2' && v.size == 3 && v.data[2] < '0' + (int)minor);
}

static void put_pin(FILE *f, const char *dist, const char *version, const char *extra)
{
	fprintf(f, "Requires-Dist: %s == %s", dist, version);
	fprintf(f, extra ? "; extra == \"%s\"\n" : "\n", extra);
}

/*
 * The GPU that the extra E is for, if it can be the value of a property: it states no
 * feature, and is one GPU.  NULL: none, or it is another extra's, without "device-".
 */
static const char *property_of(const struct wheel_extra *e)
{
	const char *name = e->device && e->device->kind == DEVICE_WHEEL_TARGET
				   ? e->device->name
				   : e->gpu;
	struct kp_target t;

	if (strncmp(e->name, "device-", strlen("device-")) != 0 || strchr(name, ':') ||
	    kp_target_parse(kp_span_str(name), &t, NULL) || !t.known ||
	    kp_generic_members(kp_span_str(name)))
		return NULL;
	return name;
}

static void put_required(FILE *f, const struct wheel_metadata *m,
			 const struct wheel_extra *e, const char *dist, bool properties)
{
	const char *gpu = properties ? property_of(e) : NULL;

	put_pin(f, dist, m->host->version, e->name);
	if (gpu)
		fprintf(f,
			"Requires-Dist: %s == %s; \"amd :: gfx_arch :: %s\" in "
			"variant_properties\n",
			dist, m->host->version, gpu);
}

static void put_extra(FILE *f, const struct wheel_metadata *m,
		      const struct wheel_extra *e, bool properties)
{
	fprintf(f, "Provides-Extra: %s\n", e->name);
	if (e->device) {
		put_required(f, m, e, e->device->dist, properties);
		for (size_t i = 0; i < e->device->n_needs; i++)
			put_required(f, m, e, e->device->needs[i]->dist, properties);
		return;
	}
	for (size_t i = 0; i < m->devices->count; i++)
		if (!*e->gpu || device_wheel_serves(m->devices->items[i], e->gpu))
			put_required(f, m, e, m->devices->items[i]->dist, properties);
}

/* Fail if the host already has an extra NAME, which may mean something else. */
static kpack_error_t check_extra(const struct metadata_text *m, const char *name,
				 struct kpackx_error *why)
{
	if (has_extra(m, name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "METADATA has the extra '%s' already", name);
	return KPACK_SUCCESS;
}

static kpack_error_t extras_text(const struct wheel_metadata *m, bool properties,
				 char **out, struct kpackx_error *why)
{
	struct wheel_extra *extras;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n, size;
	FILE *f;

	KP_TRY(wheel_extras(m, &extras, &n, why));
	f = xmemstream(out, &size);
	for (size_t i = 0; !err && i < n; i++) {
		err = check_extra(&m->host->metadata, extras[i].name, why);
		put_extra(f, m, &extras[i], properties);
	}
	free(extras);
	fclose(f);
	if (err)
		free(*out);
	return err;
}

/* Raise Metadata-Version to 2.1, the first that has extras. */
static kpack_error_t raise_format(char **text, size_t *size, struct kpackx_error *why)
{
	struct metadata_text m = {0};
	char *old = *text;
	kpack_error_t err = metadata_text_parse(
		(struct kp_span){(const uint8_t *)old, *size}, &m, why);

	if (!err && format_below(&m, 1)) {
		*text = metadata_text_set(&m, "Metadata-Version", "2.1", size);
		free(old);
	}
	metadata_text_fini(&m);
	return err;
}

static kpack_error_t host_text(const struct wheel_metadata *m, bool properties,
			       char **out, size_t *size, struct kpackx_error *why)
{
	char *extras;
	kpack_error_t err;

	*out = NULL;
	KP_TRY(extras_text(m, properties, &extras, why));
	*out = metadata_text_add(&m->host->metadata, extras, size);
	free(extras);
	err = raise_format(out, size, why);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

kpack_error_t wheel_metadata_host(const struct wheel_metadata *m, char **out,
				  size_t *size, struct kpackx_error *why)
{
	return host_text(m, false, out, size, why);
}

kpack_error_t wheel_metadata_host_variant(const struct wheel_metadata *m, char **out,
					  size_t *size, struct kpackx_error *why)
{
	return host_text(m, true, out, size, why);
}

kpack_error_t wheel_metadata_host_json(const struct wheel_metadata *m, char **out,
				       struct kpackx_error *why)
{
	struct wheel_extra *extras;
	const char **gpus;
	size_t n, count = 0;

	KP_TRY(wheel_extras(m, &extras, &n, why));
	gpus = xmalloc(n * sizeof(*gpus));
	for (size_t i = 0; i < n; i++)
		if ((gpus[count] = property_of(&extras[i])))
			count++;
	*out = variant_host_json(gpus, count);
	free(gpus);
	free(extras);
	return KPACK_SUCCESS;
}

/* --- device wheels ----------------------------------------------------------------- */

bool wheel_requirement_ok(const char *text)
{
	return isalnum((unsigned char)*text) && kp_text_ok(kp_span_str(text));
}

/* Print TEXT with its placeholders replaced; for a family, skip a TEXT that has any. */
static void put_requirement(FILE *f, const char *text, const struct device_wheel *device)
{
	const char *at = strstr(text, PLACEHOLDER);

	if (at && device->kind != DEVICE_WHEEL_TARGET)
		return;
	fputs("Requires-Dist: ", f);
	for (; at; at = strstr(text, PLACEHOLDER)) {
		fprintf(f, "%.*s%s", (int)(at - text), text, device->suffix);
		text = at + strlen(PLACEHOLDER);
	}
	fprintf(f, "%s\n", text);
}

/* Copy headers of the host that also apply to device wheels. */
static void put_inherited(FILE *f, const struct metadata_text *m)
{
	static const char *const names[] = {"License-Expression", "License",
					    "Home-page",          "Author",
					    "Author-email",       "Requires-Python"};
	struct kp_span value;

	for (size_t i = 0; i < KP_COUNT(names); i++)
		/* do not repeat a value of several lines */
		if (metadata_text_get(m, names[i], &value) &&
		    !memchr(value.data, '\n', value.size))
			fprintf(f, "%s: %.*s\n", names[i], (int)value.size,
				(const char *)value.data);
}

static void put_device(FILE *f, const struct wheel_metadata *m, const char *dist,
		       const struct device_wheel *device)
{
	const struct dist_info *host = m->host;

	fprintf(f, "Metadata-Version: 2.4\nName: %s\nVersion: %s\n", dist, host->version);
	fprintf(f, "Summary: GPU code of %s for %s\n", host->name, device->name);
	put_inherited(f, &host->metadata);
	put_pin(f, host->name, host->version, NULL);
	for (size_t i = 0; i < device->n_needs; i++)
		put_pin(f, device->needs[i]->dist, host->version, NULL);
	for (size_t i = 0; i < m->n_requires; i++)
		put_requirement(f, m->requires[i], device);
}

char *wheel_metadata_device(const struct wheel_metadata *m,
			    const struct device_wheel *device, size_t *size)
{
	char *text;
	FILE *f = xmemstream(&text, size);

	put_device(f, m, device->dist, device);
	fclose(f);
	return text;
}

/*
 * Root-Is-Purelib must be the host's: pure and other wheels may go to different places.
 */
static bool is_pure(const struct metadata_text *wheel)
{
	struct kp_span value;

	return metadata_text_get(wheel, "Root-Is-Purelib", &value) &&
	       value.size == strlen("true") &&
	       strncasecmp((const char *)value.data, "true", value.size) == 0;
}

static void put_tags(FILE *f, const struct dist_info *host, const struct wheel_name *name)
{
	struct kp_span value;

	if (*host->tag_fault) {
		wheel_tags_print(f, name);
		return;
	}
	for (size_t at = 0; metadata_text_next(&host->wheel, "Tag", &at, &value);)
		fprintf(f, "Tag: %.*s\n", (int)value.size, (const char *)value.data);
}

char *wheel_metadata_wheel(const struct dist_info *host, const struct wheel_name *name,
			   size_t *size)
{
	char *text;
	FILE *f = xmemstream(&text, size);

	fprintf(f,
		"Wheel-Version: 1.0\nGenerator: kpack " KP_VERSION
		"\nRoot-Is-Purelib: %s\n",
		is_pure(&host->wheel) ? "true" : "false");
	put_tags(f, host, name);
	if (*name->build)
		fprintf(f, "Build: %s\n", name->build);
	fclose(f);
	return text;
}
