/* SPDX-License-Identifier: MIT */
#include "split_write.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/progress.h"
#include "packer/files/below.h"
#include "core/base/file.h"
#include "wheel_out.h"

/* --- names ------------------------------------------------------------------------- */

/* The new file is valid until the next call. */
static struct wheel_file *add_file(struct wheel_files *files, enum wheel_file_kind kind,
				   const struct device_wheel *device)
{
	struct wheel_file *f;

	files->items = xrealloc(files->items, (files->count + 1) * sizeof(*f));
	f = &files->items[files->count++];
	*f = (struct wheel_file){.kind = kind, .device = device};
	return f;
}

/* The host's file name with another distribution and variant label. */
static kpack_error_t compose_name(const struct wheel_write *w, const char *dist,
				  const char *label, char out[WHEEL_NAME_MAX + 1],
				  struct kpackx_error *why)
{
	struct wheel_name name = w->host->name;

	name.dist = dist;
	name.variant = label;
	return wheel_name_compose(&name, out, why);
}

static kpack_error_t label_of(const struct device_wheel *device,
			      char out[VARIANT_TEXT_MAX], struct kpackx_error *why)
{
	bool ok = device->kind == DEVICE_WHEEL_TARGET
			  ? variant_escape(device->name, out)
			  : strlen(device->name) < VARIANT_TEXT_MAX;

	if (ok && device->kind != DEVICE_WHEEL_TARGET)
		for (size_t i = 0; i <= strlen(device->name); i++)
			out[i] = (char)tolower((unsigned char)device->name[i]);
	if (ok && variant_label_ok(out))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s cannot be spelled as a variant", device->name);
}

/* The distribution of variant wheels as spelled in file names. */
static bool variants_file(const struct wheel_write *w, char out[WHEEL_NAME_MAX + 1])
{
	return dist_name_normal(w->metadata.variants, '_', out);
}

static kpack_error_t add_variant(const struct wheel_write *w, struct wheel_files *files,
				 const struct device_wheel *device,
				 struct kpackx_error *why)
{
	struct wheel_file *f = add_file(files, WHEEL_FILE_VARIANT, device);
	char dist[WHEEL_NAME_MAX + 1];

	KP_TRY(label_of(device, f->label, why));
	variants_file(w, dist);
	return compose_name(w, dist, f->label, f->name, why);
}

static kpack_error_t add_index(const struct wheel_write *w, struct wheel_files *files,
			       struct kpackx_error *why)
{
	struct wheel_file *f = add_file(files, WHEEL_FILE_INDEX, NULL);
	char dist[WHEEL_NAME_MAX + 1];

	variants_file(w, dist);
	if (snprintf(f->name, sizeof(f->name), "%s-%s-variants.json", dist,
		     w->host->name.version) >= (int)sizeof(f->name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s is too long a name",
			       dist);
	return KPACK_SUCCESS;
}

/* A kernel database's family gets no variant: several variants would fit one GPU. */
static bool has_variant(const struct wheel_write *w, const struct device_wheel *device)
{
	return w->metadata.variants && device->kind != DEVICE_WHEEL_GROUP;
}

static kpack_error_t list_all(const struct wheel_write *w, struct wheel_files *out,
			      struct kpackx_error *why)
{
	struct wheel_file *f;

	for (size_t i = 0; i < w->devices->count; i++) {
		f = add_file(out, WHEEL_FILE_DEVICE, w->devices->items[i]);
		KP_TRY(compose_name(w, w->devices->items[i]->file, "", f->name, why));
	}
	for (size_t i = 0; i < w->devices->count; i++)
		if (has_variant(w, w->devices->items[i]))
			KP_TRY(add_variant(w, out, w->devices->items[i], why));
	if (w->metadata.variants)
		KP_TRY(add_index(w, out, why));
	if (w->args->host_label) {
		f = add_file(out, WHEEL_FILE_HOST_VARIANT, NULL);
		KP_TRY(compose_name(w, w->host->name.dist, w->args->host_label, f->name,
				    why));
	}
	f = add_file(out, WHEEL_FILE_HOST, NULL);
	return compose_name(w, w->host->name.dist, "", f->name, why);
}

kpack_error_t wheel_files_list(const struct wheel_write *w, struct wheel_files *out,
			       struct kpackx_error *why)
{
	*out = (struct wheel_files){0};
	return list_all(w, out, why);
}

void wheel_files_fini(struct wheel_files *files)
{
	free(files->items);
	*files = (struct wheel_files){0};
}

/* --- texts ------------------------------------------------------------------------- */

/* The .dist-info of one output wheel. */
struct info {
	struct wheel_out *out;
	char dir[2 * WHEEL_NAME_MAX];
};

/* Takes ownership of TEXT. */
static kpack_error_t add_text(struct info *info, const char *name, char *text,
			      size_t size, struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", info->dir, name);
	kpack_error_t err =
		wheel_out_add_bytes(info->out, path, 0644,
				    (struct kp_span){(const uint8_t *)text, size}, why);

	free(path);
	free(text);
	return err;
}

static kpack_error_t add_top_level(const struct wheel_write *w, struct info *info,
				   struct kpackx_error *why)
{
	const char *overlay = w->host->overlay;
	size_t n = strcspn(overlay, "/");

	if (n == 0)
		return KPACK_SUCCESS;
	return add_text(info, "top_level.txt", xasprintf("%.*s\n", (int)n, overlay),
			n + 1, why);
}

/* The values of a variant: the escaped targets of its device wheel. */
struct values {
	char (*texts)[VARIANT_TEXT_MAX];
	const char **list;
	size_t count;
};

static void values_fini(struct values *v)
{
	free(v->texts);
	free(v->list);
}

static kpack_error_t values_of(const struct device_wheel *device, struct values *out,
			       struct kpackx_error *why)
{
	out->texts = xcalloc(device->n_arches, sizeof(*out->texts));
	out->list = xcalloc(device->n_arches, sizeof(*out->list));
	for (size_t i = 0; i < device->n_arches; i++) {
		if (!variant_escape(device->arches[i], out->texts[i]))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s cannot be spelled as a variant's value",
				       device->arches[i]);
		out->list[i] = out->texts[i];
	}
	out->count = device->n_arches;
	return KPACK_SUCCESS;
}

/* The JSON of the variants among N FILES. */
static kpack_error_t variants_text(const struct wheel_file *files, size_t n, char **out,
				   struct kpackx_error *why)
{
	struct variant *list = xcalloc(n, sizeof(*list));
	struct values *values = xcalloc(n, sizeof(*values));
	kpack_error_t err = KPACK_SUCCESS;
	size_t count = 0;

	for (size_t i = 0; !err && i < n; i++) {
		if (files[i].kind != WHEEL_FILE_VARIANT)
			continue;
		err = values_of(files[i].device, &values[count], why);
		list[count] = (struct variant){files[i].label, values[count].list,
					       values[count].count};
		count++;
	}
	if (!err)
		*out = variant_json(list, count);
	for (size_t i = 0; i < count; i++)
		values_fini(&values[i]);
	free(values);
	free(list);
	return err;
}

static kpack_error_t add_device_info(const struct wheel_write *w,
				     const struct wheel_file *file, struct info *info,
				     struct kpackx_error *why)
{
	bool variant = file->kind == WHEEL_FILE_VARIANT;
	size_t size;
	char *text;

	text = variant ? wheel_metadata_variant(&w->metadata, file->device, &size)
		       : wheel_metadata_device(&w->metadata, file->device, &size);
	KP_TRY(add_text(info, "METADATA", text, size, why));
	text = wheel_metadata_wheel(&w->host->info, &w->host->name, &size);
	KP_TRY(add_text(info, "WHEEL", text, size, why));
	KP_TRY(add_top_level(w, info, why));
	if (!variant)
		return KPACK_SUCCESS;
	KP_TRY(variants_text(file, 1, &text, why));
	return add_text(info, "variant.json", text, strlen(text), why);
}

static kpack_error_t add_host_info(const struct wheel_write *w, struct info *info,
				   struct kpackx_error *why)
{
	size_t size;
	char *text;

	KP_TRY(wheel_metadata_host(&w->metadata, &text, &size, why));
	return add_text(info, "METADATA", text, size, why);
}

static kpack_error_t add_host_variant_info(const struct wheel_write *w, struct info *info,
					   struct kpackx_error *why)
{
	size_t size;
	char *text;

	KP_TRY(wheel_metadata_host_variant(&w->metadata, &text, &size, why));
	KP_TRY(add_text(info, "METADATA", text, size, why));
	KP_TRY(wheel_metadata_host_json(&w->metadata, &text, why));
	return add_text(info, "variant.json", text, strlen(text), why);
}

/* --- wheels ------------------------------------------------------------------------ */

static kpack_error_t add_item(const struct wheel_item *item, struct wheel_out *out,
			      struct kpackx_error *why)
{
	if (item->disk)
		return wheel_out_add_file(out, item->path, item->mode, item->disk, why);
	return wheel_out_add_copy(out, item->path, item->source->in, item->member,
				  item->source->digests[item->member], why);
}

static kpack_error_t fill_wheel(const struct wheel_write *w,
				const struct wheel_file *file, struct info *info,
				struct kpackx_error *why)
{
	const char *version = w->host->name.version;
	char dist[WHEEL_NAME_MAX + 1];

	for (size_t i = 0; i < w->items->count; i++)
		if (w->items->items[i].device == file->device)
			KP_TRY(add_item(&w->items->items[i], info->out, why));
	if (!file->device) {
		snprintf(info->dir, sizeof(info->dir), "%s", w->host->info.dir);
		return file->kind == WHEEL_FILE_HOST
			       ? add_host_info(w, info, why)
			       : add_host_variant_info(w, info, why);
	}
	if (file->kind == WHEEL_FILE_VARIANT)
		variants_file(w, dist);
	else
		memcpy(dist, file->device->file, sizeof(dist));
	snprintf(info->dir, sizeof(info->dir), "%s-%s.dist-info", dist, version);
	return add_device_info(w, file, info, why);
}

static void advance_progress(void *arg, uint64_t bytes)
{
	progress_add(arg, bytes);
}

static kpack_error_t finish_wheel(const struct wheel_write *w,
				  const struct wheel_file *file, struct info *info,
				  struct progress *progress, struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(fill_wheel(w, file, info, why));
	progress_begin(progress, file->name, wheel_out_size(info->out),
		       !w->args->quiet && !w->args->json);
	err = wheel_out_finish(info->out, info->dir, why);
	progress_end(progress);
	return err ? err : wheel_out_publish(info->out, why);
}

static kpack_error_t write_wheel(const struct wheel_write *w,
				 const struct wheel_file *file, struct kpackx_error *why)
{
	struct progress progress = {0};
	struct wheel_out_options how = {.dir = w->dir,
					.name = file->name,
					.threads = w->args->jobs,
					.level = w->args->zip_level,
					.progress = advance_progress,
					.arg = &progress};
	struct info info = {0};
	kpack_error_t err = wheel_out_new(&how, &info.out, why);

	if (!err)
		err = finish_wheel(w, file, &info, &progress, why);
	wheel_out_close(info.out);
	return err;
}

static kpack_error_t write_index(const struct wheel_write *w,
				 const struct wheel_files *files, const char *name,
				 struct kpackx_error *why)
{
	kpack_error_t err;
	char *text, *path;

	KP_TRY(variants_text(files->items, files->count, &text, why));
	path = xasprintf("%s/%s", w->dir, name);
	err = below_file_write(path, 0666, kp_span_str(text), why);
	free(path);
	free(text);
	return err;
}

static kpack_error_t find_size(const struct wheel_write *w, struct wheel_file *file,
			       struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", w->dir, file->name);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (below_lstat(path, &st) < 0)
		err = below_fail(why, "%s", path);
	else
		file->size = (uint64_t)st.st_size;
	free(path);
	return err;
}

kpack_error_t wheel_files_write(const struct wheel_write *w, struct wheel_files *files,
				struct kpackx_error *why)
{
	for (size_t i = 0; i < files->count; i++) {
		struct wheel_file *file = &files->items[i];
		kpack_error_t err = file->kind == WHEEL_FILE_INDEX
					    ? write_index(w, files, file->name, why)
					    : write_wheel(w, file, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", file->name);
		KP_TRY(find_size(w, file, why));
	}
	return KPACK_SUCCESS;
}
