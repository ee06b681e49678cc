/* SPDX-License-Identifier: MIT */
#include "dist_info.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static const char suffix[] = ".dist-info";

static struct kp_span first_component(const char *path)
{
	return (struct kp_span){(const uint8_t *)path, strcspn(path, "/")};
}

kpack_error_t dist_info_find(const char *const *paths, size_t count, char **dir,
			     struct kpackx_error *why)
{
	struct kp_span found = {0};
	char shown[120];

	for (size_t i = 0; i < count; i++) {
		struct kp_span top = first_component(paths[i]);

		if (!kp_span_ends(top, suffix) || kp_span_eq(top, found))
			continue;
		if (found.size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "expected exactly one .dist-info directory, and "
				       "%s is another",
				       kp_text_escape(top, shown, sizeof(shown)));
		found = top;
	}
	if (!found.size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "expected exactly one .dist-info directory, there is "
			       "none");
	*dir = xstrndup((const char *)found.data, found.size);
	return KPACK_SUCCESS;
}

/* Get a header that must occur exactly once. */
static kpack_error_t take_header(const struct metadata_text *m, const char *file,
				 const char *name, char **out, struct kpackx_error *why)
{
	struct kp_span value, second;
	size_t at = 0;

	if (!metadata_text_next(m, name, &at, &value))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: no %s", file, name);
	if (metadata_text_next(m, name, &at, &second))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s occurs twice",
			       file, name);
	*out = xstrndup((const char *)value.data, value.size);
	return KPACK_SUCCESS;
}

static kpack_error_t check_wheel(const struct metadata_text *m, struct kpackx_error *why)
{
	char *version;
	struct kp_span tag;
	bool known;

	KP_TRY(take_header(m, "WHEEL", "Wheel-Version", &version, why));
	known = strncmp(version, "1.", 2) == 0;
	free(version);
	if (!known)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "WHEEL: Wheel-Version is not 1.x");
	if (!metadata_text_get(m, "Tag", &tag))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "WHEEL: no Tag");
	return KPACK_SUCCESS;
}

/* Check that DIR is named after Name and Version. */
static kpack_error_t check_dir(const struct dist_info *info, struct kpackx_error *why)
{
	struct wheel_name name = {0};
	char *dash;

	if (strlen(info->dir) > WHEEL_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the name of .dist-info is too long");
	memcpy(name.text, info->dir, strlen(info->dir) - strlen(suffix));
	dash = strchr(name.text, '-');
	name.dist = name.text;
	name.version = dash ? dash + 1 : "";
	if (dash)
		*dash = '\0';
	KP_TRY(wheel_name_check(&name, info->name, info->version, why));
	return KPACK_SUCCESS;
}

static kpack_error_t check_names(const struct dist_info *info,
				 const struct wheel_name *file_name,
				 struct kpackx_error *why)
{
	char shown[120];

	if (!dist_name_ok(info->name))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"METADATA: Name '%s' is not a valid name",
			kp_text_escape(kp_span_str(info->name), shown, sizeof(shown)));
	if (!dist_version_ok(info->version))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"METADATA: Version '%s' is not a valid version",
			kp_text_escape(kp_span_str(info->version), shown, sizeof(shown)));
	KP_TRY(check_dir(info, why));
	return file_name ? wheel_name_check(file_name, info->name, info->version, why)
			 : KPACK_SUCCESS;
}

static kpack_error_t parse_file(const char *file, const char *text, size_t size,
				struct metadata_text *out, struct kpackx_error *why)
{
	kpack_error_t err = metadata_text_parse(
		(struct kp_span){(const uint8_t *)text, size}, out, why);

	return err ? kp_fail_prefix(why, err, "%s", file) : KPACK_SUCCESS;
}

kpack_error_t dist_info_parse(const char *dir, const struct dist_info_texts *texts,
			      const struct wheel_name *file_name, struct dist_info *out,
			      struct kpackx_error *why)
{
	*out = (struct dist_info){.metadata_file = texts->metadata,
				  .wheel_file = texts->wheel};
	out->dir = xstrdup(dir);
	if (!kp_span_ends(kp_span_str(dir), suffix))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no .dist-info");
	KP_TRY(parse_file("METADATA", texts->metadata, texts->metadata_size,
			  &out->metadata, why));
	KP_TRY(parse_file("WHEEL", texts->wheel, texts->wheel_size, &out->wheel, why));
	KP_TRY(take_header(&out->metadata, "METADATA", "Name", &out->name, why));
	KP_TRY(take_header(&out->metadata, "METADATA", "Version", &out->version, why));
	KP_TRY(check_wheel(&out->wheel, why));
	KP_TRY(check_names(out, file_name, why));
	/* only a note: there are installable wheels that were renamed, but not in WHEEL */
	if (file_name)
		wheel_tags_compare(&out->wheel, file_name, out->tag_fault);
	return KPACK_SUCCESS;
}

static kpack_error_t read_file(const struct wheel_in *w, struct wheel_reader *r,
			       const char *dir, const char *file, char **text,
			       size_t *size, struct kpackx_error *why)
{
	struct dist_info where = {.dir = (char *)dir};
	char *path = dist_info_path(&where, file);
	size_t member, count;
	bool found = wheel_in_find(w, path, &member) &&
		     !wheel_in_members(w, &count)[member].directory;

	free(path);
	if (!found)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: there is no %s", dir,
			       file);
	return wheel_reader_text(r, member, METADATA_TEXT_MAX, text, size, why);
}

static kpack_error_t find_dir(const struct wheel_in *w, char **dir,
			      struct kpackx_error *why)
{
	size_t count;
	const struct wheel_member *members = wheel_in_members(w, &count);
	const char **paths = xmalloc(count * sizeof(*paths));
	kpack_error_t err;

	for (size_t i = 0; i < count; i++)
		paths[i] = members[i].path;
	err = dist_info_find(paths, count, dir, why);
	free(paths);
	return err;
}

kpack_error_t dist_info_read(const struct wheel_in *w, struct wheel_reader *r,
			     const struct wheel_name *file_name, struct dist_info *out,
			     struct kpackx_error *why)
{
	struct dist_info_texts t = {0};
	char *dir = NULL;
	kpack_error_t err = find_dir(w, &dir, why);

	*out = (struct dist_info){0};
	if (!err)
		err = read_file(w, r, dir, "METADATA", &t.metadata, &t.metadata_size,
				why);
	if (!err)
		err = read_file(w, r, dir, "WHEEL", &t.wheel, &t.wheel_size, why);
	if (err) {
		free(t.metadata);
		free(t.wheel);
	} else {
		err = dist_info_parse(dir, &t, file_name, out, why);
	}
	free(dir);
	return err;
}

void dist_info_fini(struct dist_info *info)
{
	metadata_text_fini(&info->metadata);
	metadata_text_fini(&info->wheel);
	free(info->metadata_file);
	free(info->wheel_file);
	free(info->dir);
	free(info->name);
	free(info->version);
	*info = (struct dist_info){0};
}

char *dist_info_path(const struct dist_info *info, const char *file)
{
	return xasprintf("%s/%s", info->dir, file);
}
