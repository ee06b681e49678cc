/* SPDX-License-Identifier: MIT */
#include "record_check.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

/*
 * True for RECORD, which cannot have its own hash, and its signatures, which depend on
 * it.
 */
static bool is_exempt(const char *path, const char *dist_info)
{
	static const char *const files[] = {"RECORD", "RECORD.jws", "RECORD.p7s"};
	size_t n = strlen(dist_info);

	if (strncmp(path, dist_info, n) != 0 || path[n] != '/')
		return false;
	for (size_t i = 0; i < KP_COUNT(files); i++)
		if (strcmp(path + n + 1, files[i]) == 0)
			return true;
	return false;
}

kpack_error_t record_refuse(struct kpackx_error *why, const char *path, const char *text)
{
	char shown[160];

	kp_text_escape(kp_span_str(path), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: %s: %s", shown, text);
}

static kpack_error_t check_listed(const struct record *record,
				  const struct wheel_member *m, const char *dist_info,
				  struct kpackx_error *why)
{
	const struct record_line *l = record_find(record, m->path);
	bool exempt = is_exempt(m->path, dist_info);

	if (m->directory || (!l && exempt))
		return KPACK_SUCCESS;
	if (!l)
		return record_refuse(why, m->path, "not listed");
	if (l->kind == DIGEST_NONE && !exempt)
		return record_refuse(why, m->path, "no hash");
	if (l->has_size && l->size != m->size) {
		char text[100];

		snprintf(text, sizeof(text),
			 "%" PRIu64 " bytes listed, %" PRIu64 " found", l->size, m->size);
		return record_refuse(why, m->path, text);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_there(const struct wheel_in *w, const struct record_line *l,
				 struct kpackx_error *why)
{
	size_t member, count;

	if (!wheel_in_find(w, l->path, &member) ||
	    wheel_in_members(w, &count)[member].directory)
		return record_refuse(why, l->path, "listed, but not a file of the wheel");
	return KPACK_SUCCESS;
}

static kpack_error_t read_record(const struct wheel_in *w, struct wheel_reader *r,
				 const char *dist_info, struct record *out,
				 struct kpackx_error *why)
{
	char *path = xasprintf("%s/RECORD", dist_info), *text = NULL;
	size_t member, size = 0;
	kpack_error_t err;

	if (wheel_in_find(w, path, &member))
		err = wheel_reader_text(r, member, RECORD_SIZE_MAX, &text, &size, why);
	else
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: it is missing", path);
	if (!err)
		err = record_parse((struct kp_span){(const uint8_t *)text, size}, out,
				   why);
	free(text);
	free(path);
	return err;
}

kpack_error_t record_check(const struct wheel_in *w, struct wheel_reader *r,
			   const char *dist_info, struct record *out,
			   struct kpackx_error *why)
{
	size_t count;
	const struct wheel_member *members = wheel_in_members(w, &count);

	*out = (struct record){0};
	KP_TRY(read_record(w, r, dist_info, out, why));
	for (size_t i = 0; i < count; i++)
		KP_TRY(check_listed(out, &members[i], dist_info, why));
	for (size_t i = 0; i < out->count; i++)
		KP_TRY(check_there(w, &out->lines[i], why));
	return KPACK_SUCCESS;
}
