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

static kpack_error_t list_all(const struct wheel_write *w, struct wheel_files *out,
			      struct kpackx_error *why)
{
	struct wheel_file *f;

	for (size_t i = 0; i < w->devices->count; i++) {
		f = add_file(out, WHEEL_FILE_DEVICE, w->devices->items[i]);
		KP_TRY(compose_name(w, w->devices->items[i]->file, "", f->name, why));
	}
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

static kpack_error_t add_device_info(const struct wheel_write *w,
				     const struct wheel_file *file, struct info *info,
				     struct kpackx_error *why)
{
	size_t size;
	char *text;

	text = wheel_metadata_device(&w->metadata, file->device, &size);
	KP_TRY(add_text(info, "METADATA", text, size, why));
	text = wheel_metadata_wheel(&w->host->info, &w->host->name, &size);
	KP_TRY(add_text(info, "WHEEL", text, size, why));
	return add_top_level(w, info, why);
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

	for (size_t i = 0; i < w->items->count; i++)
		if (w->items->items[i].device == file->device)
			KP_TRY(add_item(&w->items->items[i], info->out, why));
	if (!file->device) {
		snprintf(info->dir, sizeof(info->dir), "%s", w->host->info.dir);
		return file->kind == WHEEL_FILE_HOST
			       ? add_host_info(w, info, why)
			       : add_host_variant_info(w, info, why);
	}
	snprintf(info->dir, sizeof(info->dir), "%s-%s.dist-info", file->device->file,
		 version);
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
		kpack_error_t err = write_wheel(w, file, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", file->name);
		KP_TRY(find_size(w, file, why));
	}
	return KPACK_SUCCESS;
}
