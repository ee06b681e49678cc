/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "detect.h"
#include "packer/cli/report.h"

/* Make a JSON string of TEXT, which is on the heap, and free TEXT. */
static json_t *take_text(char *text)
{
	json_t *value = json_string(text);

	free(text);
	return value;
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static int set_extras(json_t *o, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	gpu_extra_part(label, part);
	return json_object_set_new(
		o, "extras", json_pack("[o, s]", json_sprintf("device-%s", part), part));
}

static int set_names(struct detect *d, json_t *o, const struct gpu_kind *kind)
{
	const char *label = gpu_names_label(&d->names, kind);
	int rc = 0;

	if (!label) {
		report_error(NULL, "%s: its family is not known", kind->arch);
		d->failed = true;
		return 0;
	}
	if (d->names.group)
		rc |= json_object_set_new(o, "archive",
					  take_text(gpu_archive_name(&d->names, label)));
	if (d->names.package)
		rc |= json_object_set_new(o, "package",
					  take_text(gpu_package_name(&d->names, label)));
	if (d->names.dist)
		rc |= json_object_set_new(o, "wheel",
					  take_text(gpu_wheel_name(&d->names, label)));
	return rc | set_extras(o, label);
}

static int set_served(struct detect *d, json_t *o, const struct gpu_kind *kind)
{
	const struct gpu_served *served = &d->served;
	json_t *archives = json_array(), *missing = json_array();
	int rc = 0;

	for (size_t i = 0; i < served->archives.count; i++)
		if (gpu_served_by(served, i, kind))
			rc |= json_array_append_new(archives,
						    report_json_text(kp_archive_path(
							    served->archives.items[i])));
	for (size_t g = 0; g < served->n_groups; g++) {
		if (gpu_served_group(served, g, kind))
			continue;
		rc |= json_array_append_new(missing, report_json_span(served->groups[g]));
		d->failed = true;
	}
	rc |= json_object_set_new(o, "archives", archives);
	return rc | json_object_set_new(o, "missing", missing);
}

static json_t *kind_json(struct detect *d, const struct gpu_kind *kind)
{
	const struct gpu_subfamily *s = kind->subfamily;
	json_t *o = json_pack("{ss, so, so, so, so}", "arch", kind->arch, "subfamily",
			      text_or_null(s ? s->name : NULL), "family",
			      text_or_null(s ? s->family : NULL), "series",
			      text_or_null(s ? s->series : NULL), "generic",
			      text_or_null(gpu_kind_generic(kind)));

	if (o && !set_names(d, o, kind) && (!d->with_archives || !set_served(d, o, kind)))
		return o;
	json_decref(o);
	return NULL;
}

void detect_json(struct detect *d)
{
	struct report_array array = {0};

	for (size_t i = 0; i < d->kinds.count; i++)
		report_array_add(&array, kind_json(d, &d->kinds.items[i]));
	report_array_end(&array);
}
