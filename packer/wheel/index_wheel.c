/* SPDX-License-Identifier: MIT */
#include "index_wheel.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "record_check.h"

/* VARIANT_SIZE_MAX limits variant.json: real ones have less than 10,000 bytes. */
enum { VARIANT_SIZE_MAX = 1 << 20, READ_SIZE = 1 << 20 };

static kpack_error_t hash_file(const struct wheel_in *in,
			       void (*progress)(void *arg, uint64_t bytes), void *arg,
			       struct index_wheel *w, struct kpackx_error *why)
{
	struct digest hash = {0};
	uint8_t *buf = xmalloc(READ_SIZE);
	struct kp_source file = wheel_in_source(in);
	kpack_error_t err = KPACK_SUCCESS;

	digest_begin(&hash, DIGEST_SHA256);
	w->size = file.size;
	for (uint64_t at = 0; !err && at < w->size;) {
		size_t n = w->size - at < READ_SIZE ? (size_t)(w->size - at) : READ_SIZE;

		err = kp_source_read(&file, at, buf, n, why);
		digest_add(&hash, (struct kp_span){buf, n});
		progress(arg, n);
		at += n;
	}
	free(buf);
	if (!err)
		err = digest_end_text(&hash, w->sha256, why);
	digest_fini(&hash);
	return err;
}

static kpack_error_t write_metadata(const char *dir, const struct index_wheel *w,
				    struct kp_span text, struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s.metadata", dir, w->file);
	kpack_error_t err = below_file_write(path, 0666, text, why);

	free(path);
	return err;
}

/*
 * The versions of Requires-Python, in one line.  A text with other characters than those
 * of versions (PEP 440 has ASCII only) names none, and stays out of the index; pip finds
 * it in METADATA.
 */
static char *python_versions(struct kp_span value)
{
	char *text = xstrndup((const char *)value.data, value.size);

	for (char *p = text; *p; p++) {
		if (strchr("\t\r\n", *p))
			*p = ' '; /* a header of several lines */
		if (*p < ' ' || *p > '~') {
			free(text);
			return NULL;
		}
	}
	return text;
}

/* The name is valid: dist_info_read has checked it. */
static void take_headers(const struct dist_info *info, struct index_wheel *w)
{
	struct kp_span value;

	memcpy(w->tag_fault, info->tag_fault, sizeof(w->tag_fault));
	w->version = xstrdup(info->version);
	if (metadata_text_get(&info->metadata, "Requires-Python", &value))
		w->requires_python = python_versions(value);
	dist_name_normal(info->name, '-', w->project);
}

static kpack_error_t take_variant(const struct wheel_in *in, struct wheel_reader *r,
				  const struct dist_info *info, struct index_wheel *w,
				  struct kpackx_error *why)
{
	char *path = dist_info_path(info, "variant.json");
	size_t member, size;
	kpack_error_t err = KPACK_SUCCESS;

	if (wheel_in_find(in, path, &member))
		err = wheel_reader_text(r, member, VARIANT_SIZE_MAX, &w->variant, &size,
					why);
	else if (*w->name.variant)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%s: it is missing, and the wheel is a variant", path);
	free(path);
	return err;
}

static kpack_error_t take_info(const char *dir, const struct wheel_in *in,
			       struct wheel_reader *r, const struct dist_info *info,
			       struct index_wheel *w, struct kpackx_error *why)
{
	struct record record;
	kpack_error_t err = record_check(in, r, info->dir, &record, why);

	record_fini(&record);
	if (err)
		return err;
	take_headers(info, w);
	KP_TRY(take_variant(in, r, info, w, why));
	KP_TRY(digest_text(info->metadata.text, w->metadata, why));
	return write_metadata(dir, w, info->metadata.text, why);
}

static kpack_error_t read_wheel(const char *dir, const struct wheel_in *in,
				struct index_wheel *w, struct kpackx_error *why)
{
	struct wheel_reader *r;
	struct dist_info info;
	kpack_error_t err;

	KP_TRY(wheel_reader_new(in, &r, why));
	err = dist_info_read(in, r, &w->name, &info, why);
	if (!err)
		err = take_info(dir, in, r, &info, w, why);
	dist_info_fini(&info);
	wheel_reader_free(r);
	return err;
}

kpack_error_t index_wheel_read(const char *dir, const char *file,
			       void (*progress)(void *arg, uint64_t bytes), void *arg,
			       struct index_wheel *out, struct kpackx_error *why)
{
	struct wheel_in *in = NULL;
	char *path = xasprintf("%s/%s", dir, file);
	kpack_error_t err;

	*out = (struct index_wheel){.file = xstrdup(file)};
	err = wheel_name_parse(file, &out->name, why);
	if (!err)
		err = wheel_in_open(path, &in, why);
	if (!err)
		err = read_wheel(dir, in, out, why);
	if (!err)
		err = hash_file(in, progress, arg, out, why);
	wheel_in_close(in);
	free(path);
	return err;
}

void index_wheel_fini(struct index_wheel *w)
{
	free(w->file);
	free(w->version);
	free(w->requires_python);
	free(w->variant);
	*w = (struct index_wheel){0};
}
