/* SPDX-License-Identifier: MIT */
/*
 * The texts of output wheels: METADATA, WHEEL, top_level.txt, and the variant.json of PEP 817.
 *
 * The host wheel's METADATA gets extras for every architecture, device-gfx942 and gfx942,
 * which require the device wheels with its code in exactly the host's version; extras for
 * every family that the user named; and device-all.  An architecture without its own
 * device wheel gets extras, too, if it can load the code of other device wheels: those
 * with its features stated or for a generic target that covers it.  Extras are written in
 * normal form: lower case, "-" for any mark.
 *
 *	Provides-Extra: device-gfx942
 *	Requires-Dist: amd-torch-device-gfx942 == 2.10.0; extra == "device-gfx942"
 *	Requires-Dist: amd-torch-device-gfx9-4-generic == 2.10.0; extra == "device-gfx942"
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <jansson.h>
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "split.h"

/* The placeholder for the target in a requirement. */
#define PLACEHOLDER "@GFXARCH@"

/* --- extras -------------------------------------------------------------------------- */

void wheel_extras_fini(struct wheel_extras *extras)
{
	free(extras->items);
}

/* Add an extra named PREFIX NAME; the caller sets what it installs. */
static kpack_error_t add_extra(struct wheel_extras *list, const char *prefix,
			       const char *name, struct wheel_extra **out,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE char *text = xasprintf("%s%s", prefix, name);
	struct wheel_extra e = {0};

	if (!dist_name_normal(text, '-', e.name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be the name of an extra", text);
	xgrow(&list->items, list->count, &list->cap, sizeof(e));
	list->items[list->count] = e;
	*out = &list->items[list->count++];
	return KPACK_SUCCESS;
}

static bool is_listed(const struct wheel_extras *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return true;
	return false;
}

/* Whether the host already has an extra NAME, ignoring case and marks. */
static bool host_has(const struct metadata_text *m, const char *name)
{
	char normal[WHEEL_NAME_MAX + 1];
	struct kp_span value;

	for (size_t at = 0; metadata_text_next(m, "Provides-Extra", &at, &value);) {
		KP_AUTO_FREE char *text = xstrndup((const char *)value.data, value.size);

		if (dist_name_normal(text, '-', normal) && strcmp(normal, name) == 0)
			return true;
	}
	return false;
}

/* Whether DEVICE gets extras: not a database's family that other device wheels need. */
static bool has_extras(const struct device_wheels *devices,
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

/*
 * Extras of GPUs are a help for those who ask for their GPU by name; they give way to extras of
 * device wheels and of the host, whose meaning is somebody else's.
 */

/* Add the extra of all device wheels that GPU can load, unless its name is taken. */
static kpack_error_t add_gpu(struct wheel_extras *list, const struct split *s,
			     const char *prefix, struct kp_span gpu,
			     struct kpackx_error *why)
{
	char name[KP_TARGET_TEXT_MAX], suffix[WHEEL_NAME_MAX + 1];
	struct wheel_extra *e;

	snprintf(name, sizeof(name), "%.*s", (int)gpu.size, (const char *)gpu.data);
	if (!device_wheel_suffix(name, suffix))
		return KPACK_SUCCESS;
	KP_TRY(add_extra(list, prefix, suffix, &e, why));
	memcpy(e->gpu, name, sizeof(name));
	if (is_listed(list, list->count - 1, e->name) ||
	    host_has(&s->host->info.metadata, e->name))
		list->count--;
	return KPACK_SUCCESS;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wheel_extra *)a)->name,
		      ((const struct wheel_extra *)b)->name);
}

kpack_error_t wheel_extras_list(const struct split *s, struct wheel_extras *list,
				struct kpackx_error *why)
{
	static const char *const prefixes[] = {"device-", ""};
	const struct device_wheels *devices = &s->devices;
	struct wheel_extra *e;

	KP_TRY(add_extra(list, "", "device-all", &e, why));
	for (size_t i = 0; i < devices->count; i++) {
		if (!has_extras(devices, devices->items[i]))
			continue;
		for (size_t k = 0; k < KP_COUNT(prefixes); k++) {
			KP_TRY(add_extra(list, prefixes[k], devices->items[i]->suffix, &e,
					 why));
			e->device = devices->items[i];
		}
	}
	for (size_t i = 0; i < list->count; i++)
		if (is_listed(list, i, list->items[i].name))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "two device wheels would both have the extra '%s'",
				       list->items[i].name);
	/*
	 * All device-... first: if a name is taken in one form, it is not in the other.  A GPU
	 * for which there are only a family's files gets none.
	 */
	for (size_t k = 0; k < KP_COUNT(prefixes); k++)
		for (size_t i = 0; i < devices->count; i++) {
			const struct device_wheel *d = devices->items[i];

			if (!has_extras(devices, d))
				continue;
			/* for each target, its GPU without features, and the GPUs that it covers */
			for (size_t a = 0; a < d->n_arches; a++) {
				struct kp_span arch = kp_span_str(d->arches[a]);
				const char *const *members;
				struct kp_target t;

				KP_TRY(add_gpu(list, s, prefixes[k], arch, why));
				if (kp_target_parse(arch, &t, NULL))
					continue;
				arch = kp_span_str(t.processor);
				KP_TRY(add_gpu(list, s, prefixes[k],
					       kp_processor_model(arch), why));
				members = kp_generic_members(arch);
				for (; members && *members; members++)
					KP_TRY(add_gpu(list, s, prefixes[k],
						       kp_span_str(*members), why));
			}
		}
	qsort(list->items, list->count, sizeof(*list->items), by_name);
	return KPACK_SUCCESS;
}

/* --- METADATA of the host ------------------------------------------------------------ */

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

/* Write that the extra E requires D, and in the variant so does the property of its GPU. */
static void put_required(FILE *f, const struct split *s, const struct wheel_extra *e,
			 enum wheel_output_kind kind, const struct device_wheel *d)
{
	const char *version = s->host->info.version;
	const char *gpu = kind == WHEEL_OUTPUT_VARIANT ? property_of(e) : NULL;

	fprintf(f, "Requires-Dist: %s == %s; extra == \"%s\"\n", d->dist, version,
		e->name);
	if (gpu)
		fprintf(f,
			"Requires-Dist: %s == %s; \"amd :: gfx_arch :: %s\" in "
			"variant_properties\n",
			d->dist, version, gpu);
}

/* Make the host's METADATA with extras; it is otherwise as it was. */
static kpack_error_t host_metadata(const struct split *s, enum wheel_output_kind kind,
				   char **out, size_t *size, struct kpackx_error *why)
{
	const struct metadata_text *host = &s->host->info.metadata;
	KP_AUTO(wheel_extras) extras = {0};
	KP_AUTO_FREE char *lines = NULL, *text = NULL;
	KP_AUTO(metadata_text) m = {0};
	struct kp_span format = {0};
	size_t n_lines;
	FILE *f;

	KP_TRY(wheel_extras_list(s, &extras, why));
	/* who installs the wheel with it means the old one, and would get device code */
	for (size_t i = 0; i < extras.count; i++)
		if (host_has(host, extras.items[i].name))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "METADATA has the extra '%s' already",
				       extras.items[i].name);
	f = xmemstream(&lines, &n_lines);
	for (size_t i = 0; i < extras.count; i++) {
		const struct wheel_extra *e = &extras.items[i];

		fprintf(f, "Provides-Extra: %s\n", e->name);
		if (e->device)
			put_required(f, s, e, kind, e->device);
		for (size_t k = 0; e->device && k < e->device->n_needs; k++)
			put_required(f, s, e, kind, e->device->needs[k]);
		/* an extra of a GPU, or of all */
		for (size_t k = 0; !e->device && k < s->devices.count; k++)
			if (!*e->gpu || device_wheel_serves(s->devices.items[k], e->gpu))
				put_required(f, s, e, kind, s->devices.items[k]);
	}
	fclose(f);
	text = metadata_text_add(host, lines, size);
	KP_TRY(metadata_text_parse((struct kp_span){(const uint8_t *)text, *size}, &m,
				   why));
	/* 2.1 is the first that has extras */
	metadata_text_get(&m, "Metadata-Version", &format);
	if (format.size < 3 || format.data[0] < '2' ||
	    (format.data[0] == '2' && format.size == 3 && format.data[2] < '1')) {
		*out = metadata_text_set(&m, "Metadata-Version", "2.1", size);
	} else {
		*out = text;
		text = NULL;
	}
	return KPACK_SUCCESS;
}

/* --- device wheels ------------------------------------------------------------------- */

/*
 * METADATA of a device wheel: it requires the host, which it is nothing without, and the device
 * wheels that its GPUs also load from, all in exactly this version.
 */
static char *device_metadata(const struct split *s, const struct device_wheel *device,
			     size_t *size)
{
	/* headers of the host that also apply to device wheels */
	static const char *const inherited[] = {"License-Expression", "License",
						"Home-page",          "Author",
						"Author-email",       "Requires-Python"};
	const struct dist_info *host = &s->host->info;
	struct kp_span value;
	char *out;
	FILE *f = xmemstream(&out, size);

	fprintf(f, "Metadata-Version: 2.4\nName: %s\nVersion: %s\n", device->dist,
		host->version);
	fprintf(f, "Summary: GPU code of %s for %s\n", host->name, device->name);
	for (size_t i = 0; i < KP_COUNT(inherited); i++)
		/* do not repeat a value of several lines */
		if (metadata_text_get(&host->metadata, inherited[i], &value) &&
		    !memchr(value.data, '\n', value.size))
			fprintf(f, "%s: %.*s\n", inherited[i], (int)value.size,
				(const char *)value.data);
	fprintf(f, "Requires-Dist: %s == %s\n", host->name, host->version);
	for (size_t i = 0; i < device->n_needs; i++)
		fprintf(f, "Requires-Dist: %s == %s\n", device->needs[i]->dist,
			host->version);
	for (size_t i = 0; i < s->args->n_requires; i++) {
		const char *text = s->args->requires[i], *at = strstr(text, PLACEHOLDER);

		if (at && device->kind != DEVICE_WHEEL_TARGET)
			continue; /* a family has no target */
		fputs("Requires-Dist: ", f);
		for (; at; at = strstr(text, PLACEHOLDER)) {
			fprintf(f, "%.*s%s", (int)(at - text), text, device->suffix);
			text = at + strlen(PLACEHOLDER);
		}
		fprintf(f, "%s\n", text);
	}
	fclose(f);
	return out;
}

kpack_error_t wheel_texts_add(const struct split *s, const struct wheel_output *output,
			      const char *dir, struct wheel_out *out,
			      struct kpackx_error *why)
{
	const char *overlay = s->host->overlay;
	int top = (int)strcspn(overlay, "/");
	KP_AUTO(wheel_extras) extras = {0};
	json_t *gpus, *variants;
	const struct wheel_name *host = &s->host->name;
	char *text = NULL;
	struct kp_span value;
	size_t size, x, y, z;
	bool pure;
	FILE *f;

	if (output->device) {
		text = device_metadata(s, output->device, &size);
		wheel_out_add_text(out, dir, "METADATA", text, size);
		/*
		 * WHEEL has the tags and the build number of the host's file name, which are those
		 * of its own, whatever the host's WHEEL has; and it is pure as that one is, because
		 * pure and other wheels may go to different places.
		 */
		pure = metadata_text_get(&s->host->info.wheel, "Root-Is-Purelib",
					 &value) &&
		       value.size == strlen("true") &&
		       strncasecmp((const char *)value.data, "true", value.size) == 0;
		f = xmemstream(&text, &size);
		fprintf(f,
			"Wheel-Version: 1.0\nGenerator: kpack " KP_VERSION
			"\nRoot-Is-Purelib: %s\n",
			pure ? "true" : "false");
		for (const char *p = host->python; *p; p += x + (p[x] == '.')) {
			x = strcspn(p, ".");
			for (const char *a = host->abi; *a; a += y + (a[y] == '.')) {
				y = strcspn(a, ".");
				for (const char *o = host->platform; *o;
				     o += z + (o[z] == '.')) {
					z = strcspn(o, ".");
					fprintf(f, "Tag: %.*s-%.*s-%.*s\n", (int)x, p,
						(int)y, a, (int)z, o);
				}
			}
		}
		if (*host->build)
			fprintf(f, "Build: %s\n", host->build);
		fclose(f);
		wheel_out_add_text(out, dir, "WHEEL", text, size);
		if (top)
			wheel_out_add_text(out, dir, "top_level.txt",
					   xasprintf("%.*s\n", top, overlay),
					   (size_t)top + 1);
		return KPACK_SUCCESS;
	}
	KP_TRY(host_metadata(s, output->kind, &text, &size, why));
	wheel_out_add_text(out, dir, "METADATA", text, size);
	if (output->kind != WHEEL_OUTPUT_VARIANT)
		return KPACK_SUCCESS;
	/* variant.json as AMD's program writes it: each GPU with an extra is a variant */
	KP_TRY(wheel_extras_list(s, &extras, why));
	gpus = json_array();
	variants = json_object();
	for (size_t i = 0; i < extras.count; i++) {
		const char *gpu = property_of(&extras.items[i]);

		if (gpu && (json_array_append_new(gpus, json_string(gpu)) ||
			    json_object_set_new(
				    variants, gpu,
				    json_pack("{s:{s:[s]}}", "amd", "gfx_arch", gpu))))
			xalloc_fail(0);
	}
	text = report_json_new(
		json_pack("{s:{s:{s:b, s:s, s:[s]}}, s:{s:[s], s:{s:{s:o}}}, s:o}",
			  "providers", "amd", "install-time", 1, "plugin-api",
			  "amd_variant_provider.plugin:AMDVariantPlugin", "requires",
			  "amd-variant-provider >= 1.0", "default-priorities",
			  "namespace", "amd", "property", "amd", "gfx_arch", gpus,
			  "variants", variants),
		JSON_INDENT(2));
	wheel_out_add_text(out, dir, "variant.json", text, strlen(text));
	return KPACK_SUCCESS;
}
