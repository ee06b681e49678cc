/* SPDX-License-Identifier: MIT */
#include "directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/scan/scan.h"
#include "dist_info.h"
#include "record_check.h"
#include "wheel_out.h"
#include "unpack.h"

/* --- the name ---------------------------------------------------------------------- */

enum { TAG_PARTS = 3 };

/* True if ONE is in LIST, whose names are separated by ".". */
static bool has_tag(const char *list, struct kp_span one)
{
	for (size_t n; *list; list += n + (list[n] == '.')) {
		n = strcspn(list, ".");
		if (n == one.size && memcmp(list, one.data, n) == 0)
			return true;
	}
	return false;
}

/* Join the distinct components with the index PART of all tags with ".". */
static kpack_error_t join_tags(const struct metadata_text *wheel, size_t part,
			       char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why)
{
	struct kp_span tag, one, rest;
	size_t used = 0;

	out[0] = '\0';
	for (size_t at = 0; metadata_text_next(wheel, "Tag", &at, &tag);) {
		rest = tag;
		for (size_t k = 0; k <= part; k++) {
			const uint8_t *end = memchr(rest.data, '-', rest.size);

			one = rest;
			if (end)
				one.size = (size_t)(end - rest.data);
			rest.data += one.size + (end != NULL);
			rest.size -= one.size + (end != NULL);
		}
		if (one.size == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "WHEEL has a Tag of fewer than three parts");
		if (has_tag(out, one))
			continue;
		if (WHEEL_NAME_MAX - used < one.size + 1)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "WHEEL has too many tags for a file name");
		used += (size_t)snprintf(out + used, WHEEL_NAME_MAX + 1 - used, "%s%.*s",
					 used ? "." : "", (int)one.size,
					 (const char *)one.data);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t name_of(const struct dist_info *info, char out[WHEEL_NAME_MAX + 1],
			     struct kpackx_error *why)
{
	char tags[TAG_PARTS][WHEEL_NAME_MAX + 1], dist[WHEEL_NAME_MAX + 1];
	char version[WHEEL_NAME_MAX + 1], build[WHEEL_NAME_MAX + 1] = "";
	struct kp_span value;
	struct wheel_name name;

	for (size_t i = 0; i < TAG_PARTS; i++)
		KP_TRY(join_tags(&info->wheel, i, tags[i], why));
	if (metadata_text_get(&info->wheel, "Build", &value))
		snprintf(build, sizeof(build), "%.*s", (int)value.size,
			 (const char *)value.data);
	if (!dist_name_normal(info->name, '_', dist) ||
	    !dist_version_escape(info->version, version))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "METADATA: %s %s cannot be part of a file name",
			       info->name, info->version);
	name = (struct wheel_name){.dist = dist,
				   .version = version,
				   .build = build,
				   .python = tags[0],
				   .abi = tags[1],
				   .platform = tags[2],
				   .variant = ""};
	return wheel_name_compose(&name, out, why);
}

/* --- packing ----------------------------------------------------------------------- */

static kpack_error_t read_text(const char *dir, const char *info, const char *file,
			       char **out, size_t *size, struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s/%s", dir, info, file);
	struct kp_source source;
	uint8_t *text;
	struct stat st;
	int fd;
	kpack_error_t err = below_file_open_nofollow(path, &fd, &st, why);

	free(path);
	if (err)
		return kp_fail_prefix(why, err, "%s/%s", info, file);
	source = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	err = kp_source_load(&source, METADATA_TEXT_MAX, file, &text, why);
	close(fd);
	*out = (char *)text;
	*size = (size_t)st.st_size;
	return err;
}

static kpack_error_t read_info(const char *dir, const struct scan *scan,
			       struct dist_info *out, struct kpackx_error *why)
{
	const char **paths = xmalloc(scan->n_entries * sizeof(*paths));
	struct dist_info_texts t = {0};
	char *info = NULL;
	size_t n = 0;
	kpack_error_t err;

	for (size_t i = 0; i < scan->n_entries; i++)
		if (S_ISREG(scan->entries[i].mode))
			paths[n++] = scan->entries[i].relative;
	err = dist_info_find(paths, n, &info, why);
	free(paths);
	if (!err)
		err = read_text(dir, info, "METADATA", &t.metadata, &t.metadata_size,
				why);
	if (!err)
		err = read_text(dir, info, "WHEEL", &t.wheel, &t.wheel_size, why);
	if (err) {
		free(t.metadata);
		free(t.wheel);
	} else {
		err = dist_info_parse(info, &t, NULL, out, why);
	}
	free(info);
	return err;
}

/* True for RECORD, which is rewritten, and its signatures, which are dropped. */
static bool is_record(const char *path, const char *info)
{
	size_t n = strlen(info);

	return strncmp(path, info, n) == 0 && path[n] == '/' &&
	       strncmp(path + n + 1, "RECORD", strlen("RECORD")) == 0;
}

static kpack_error_t add_all(const struct scan *scan, const char *info,
			     struct wheel_out *out, struct kpackx_error *why)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (S_ISDIR(e->mode) || is_record(e->relative, info))
			continue;
		if (!S_ISREG(e->mode))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: a wheel has only files", e->relative);
		KP_TRY(wheel_out_add_file(out, e->relative, e->mode & 0777, e->path,
					  why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t finish_wheel(const struct scan *scan, const char *info,
				  struct wheel_out *out, struct kpackx_error *why)
{
	KP_TRY(add_all(scan, info, out, why));
	KP_TRY(wheel_out_finish(out, info, why));
	return wheel_out_publish(out, why);
}

static kpack_error_t write_wheel(const struct scan *scan, const struct dist_info *info,
				 const char *to, unsigned jobs, char **file,
				 struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1];
	struct wheel_out_options how = {.dir = to, .name = name, .threads = jobs};
	struct wheel_out *out = NULL;
	kpack_error_t err;

	KP_TRY(name_of(info, name, why));
	*file = xasprintf("%s/%s", to, name);
	err = wheel_out_new(&how, &out, why);
	if (!err)
		err = finish_wheel(scan, info->dir, out, why);
	wheel_out_close(out);
	return err;
}

kpack_error_t wheel_directory_pack(const char *dir, const char *to, unsigned jobs,
				   char **file, struct kpackx_error *why)
{
	struct dist_info info = {0};
	struct scan scan = {0};
	kpack_error_t err;

	*file = NULL;
	err = scan_open(dir, "", SCAN_CONVERTIBLE, NULL, false, &scan, why);
	if (!err)
		err = read_info(dir, &scan, &info, why);
	if (!err)
		err = write_wheel(&scan, &info, to, jobs, file, why);
	dist_info_fini(&info);
	scan_close(&scan);
	return err;
}

/* --- unpacking --------------------------------------------------------------------- */

static kpack_error_t unpack_wheel(const struct wheel_in *w, const char *dir,
				  unsigned jobs, struct kpackx_error *why)
{
	struct wheel_unpack how = {.dir = dir, .threads = jobs};
	struct wheel_reader *reader = NULL;
	struct dist_info info = {0};
	struct record record = {0};
	kpack_error_t err = wheel_reader_new(w, &reader, why);

	if (!err)
		err = dist_info_read(w, reader, NULL, &info, why);
	if (!err)
		err = record_check(w, reader, info.dir, &record, why);
	if (!err)
		err = wheel_unpack(w, &record, &how, why);
	record_fini(&record);
	dist_info_fini(&info);
	wheel_reader_free(reader);
	return err;
}

kpack_error_t wheel_directory_unpack(const char *file, const char *dir, unsigned jobs,
				     struct kpackx_error *why)
{
	struct wheel_in *w = NULL;
	kpack_error_t err = below_mkdirs(dir, 0777, why);

	if (!err)
		err = wheel_in_open(file, &w, why);
	if (!err)
		err = unpack_wheel(w, dir, jobs, why);
	wheel_in_close(w);
	return err;
}
