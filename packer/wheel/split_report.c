/* SPDX-License-Identifier: MIT */
#include "split_report.h"

#include <stdlib.h>
#include "packer/cli/exit.h"
#include "packer/cli/report.h"

static const char *kind_name(enum wheel_file_kind kind)
{
	static const char *const names[] = {
		[WHEEL_FILE_DEVICE] = "device",
		[WHEEL_FILE_HOST_VARIANT] = "host variant",
		[WHEEL_FILE_HOST] = "host",
	};

	return names[kind];
}

static json_t *arches_json(const struct device_wheel *device)
{
	json_t *list = json_array();

	for (size_t i = 0; device && i < device->n_arches; i++)
		json_array_append_new(list, report_json_text(device->arches[i]));
	return list;
}

static json_t *needs_json(const struct device_wheel *device)
{
	json_t *list = json_array();

	for (size_t i = 0; i < device->n_needs; i++)
		json_array_append_new(list, report_json_text(device->needs[i]->dist));
	return list;
}

static json_t *file_json(const struct wheel_file *f)
{
	json_t *o = json_pack("{s:o, s:s, s:I}", "file", report_json_text(f->name),
			      "kind", kind_name(f->kind), "size", (json_int_t)f->size);

	if (!f->device)
		return o;
	json_object_set_new(o, "part", report_json_text(f->device->name));
	json_object_set_new(o, "arches", arches_json(f->device));
	json_object_set_new(o, "requires", needs_json(f->device));
	json_object_set_new(o, "distribution", report_json_text(f->device->dist));
	return o;
}

static json_t *extras_json(const struct wheel_write *w)
{
	json_t *list = json_array();
	struct wheel_extra *extras;
	struct kpackx_error why;
	size_t n;

	if (wheel_extras(&w->metadata, &extras, &n, &why))
		return list;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, report_json_text(extras[i].name));
	free(extras);
	return list;
}

static int report_as_json(const struct wheel_write *w, const struct wheel_files *files)
{
	json_t *list = json_array();

	for (size_t i = 0; i < files->count; i++)
		json_array_append_new(list, file_json(&files->items[i]));
	return report_json(json_pack("{s:o, s:o, s:o, s:o, s:o}", "distribution",
				     report_json_text(w->host->info.name), "version",
				     report_json_text(w->host->info.version),
				     "overlay_root", report_json_text(w->host->overlay),
				     "files", list, "extras", extras_json(w)))
		       ? EXIT_OK
		       : EXIT_FAULT;
}

int wheel_report(const struct wheel_write *w, const struct wheel_files *files)
{
	char size[24];

	if (w->args->json)
		return report_as_json(w, files);
	for (size_t i = 0; !w->args->quiet && i < files->count; i++) {
		const struct wheel_file *f = &files->items[i];

		printf("%-8s%12s  ", kind_name(f->kind), report_size(f->size, size));
		report_text(f->name);
		putchar('\n');
	}
	return EXIT_OK;
}
