/* SPDX-License-Identifier: MIT */
/*
 * The facts that an archive states about a file, as extended attributes user.kpack.NAME.
 * If several entries share a file, its facts are those of the first.  A bundle has its
 * key, type and size.  Directories and the files of .kpackfs have no such attributes.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/json.h"
#include "ops.h"

static const char prefix[] = "user.kpack.";

/* What is asked about: an entry, or a bundle by the first of its parts. */
struct subject {
	const struct kpack_archive *archive;
	size_t entry;
	bool is_bundle;
	struct kp_entry_info info;
	struct kp_meta meta;
};

/* Each returns the fact as text, which the caller frees; NULL: none, or no memory. */

static char *span_text(struct kp_span s)
{
	return strndup((const char *)s.data, s.size);
}

static char *number_text(uint64_t n)
{
	char *out;

	return asprintf(&out, "%" PRIu64, n) < 0 ? NULL : out;
}

static char *archive_of(const struct subject *s)
{
	return strdup(kp_archive_path(s->archive));
}

static char *key_of(const struct subject *s)
{
	return span_text(s->info.key);
}

static char *arch_of(const struct subject *s)
{
	return span_text(s->info.arch);
}

static char *type_of(const struct subject *s)
{
	return span_text(s->info.type);
}

static char *ordinal_of(const struct subject *s)
{
	return number_text(s->info.ordinal);
}

static char *size_of(const struct subject *s)
{
	return number_text(s->info.size);
}

static char *compressed_size_of(const struct subject *s)
{
	return number_text(s->info.stored);
}

static char *scheme_of(const struct subject *s)
{
	return strdup(kp_archive_scheme(s->archive));
}

static char *chunk_of(const struct subject *s)
{
	return s->meta.chunk ? number_text(s->meta.chunk) : NULL;
}

static char *xxh3_of(const struct subject *s)
{
	char digits[2 * sizeof(s->meta.xxh3) + 1];

	if (!s->meta.has_xxh3)
		return NULL;
	for (size_t i = 0; i < sizeof(s->meta.xxh3); i++)
		snprintf(digits + 2 * i, 3, "%02x", s->meta.xxh3[i]);
	return strdup(digits);
}

/* As JSON; metadata whose JSON would be too large is none. */
static char *metadata_of(const struct subject *s)
{
	struct kp_span packed = kp_archive_meta_raw(s->archive, s->entry), json;
	struct kp_mp c = kp_mp_over(packed);
	struct kp_json j;
	char *out = NULL;

	if (!packed.size)
		return NULL;
	kp_json_init(&j, KP_JSON_MAX);
	kp_json_value(&j, &c);
	if (!kp_json_finish(&j, &json, NULL))
		out = span_text(json);
	kp_json_fini(&j);
	return out;
}

static const struct fact {
	const char *name;
	char *(*get)(const struct subject *s);
	bool of_bundle;
} facts[] = {
	{"archive", archive_of, false},
	{"key", key_of, true},
	{"arch", arch_of, false},
	{"type", type_of, true},
	{"ordinal", ordinal_of, false},
	{"size", size_of, true},
	{"compressed_size", compressed_size_of, false},
	{"scheme", scheme_of, false},
	{"chunk", chunk_of, false},
	{"xxh3", xxh3_of, false},
	{"metadata", metadata_of, false},
};

/* The value of an attribute; NULL: none, or too long for one. */
static char *value_new(const struct subject *s, const struct fact *fact)
{
	char *text = s->is_bundle && !fact->of_bundle ? NULL : fact->get(s);

	if (text && strlen(text) > XATTR_SIZE_MAX) {
		free(text);
		return NULL;
	}
	return text;
}

/* The content of a file, with a reference, and S about it; false: it has none. */
static bool find_subject(fuse_req_t req, fuse_ino_t ino, struct file_content *content,
			 struct subject *s)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct origin_entry what;
	int err;

	inodes_enter(fs->inodes);
	err = inodes_file(fs->inodes, ino, content);
	inodes_leave(fs->inodes);
	if (err)
		return false;
	/* a bundle's parts all have its key */
	what = content->bundle ? content->bundle->parts[0].what : content->entry;
	*s = (struct subject){
		.archive = what.origin->archive,
		.entry = what.entry,
		.is_bundle = content->bundle,
	};
	kp_archive_entry(s->archive, s->entry, &s->info);
	kp_archive_meta(s->archive, s->entry, &s->meta);
	if (s->is_bundle) {
		s->info.type = kp_span_str("hipfb");
		s->info.size = content->bundle->size;
	}
	return true;
}

/* Reply as getxattr(2) and listxattr(2) specify: a request with no room gets the size. */
static void reply_xattr(fuse_req_t req, const char *bytes, size_t used, size_t room)
{
	if (room == 0)
		fuse_reply_xattr(req, used);
	else if (used > room)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, bytes, used);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	const size_t n = sizeof(prefix) - 1;
	struct file_content content;
	struct subject s;
	char *value = NULL;

	for (size_t i = 0; strncmp(name, prefix, n) == 0 && i < KP_COUNT(facts); i++) {
		if (strcmp(name + n, facts[i].name) != 0 ||
		    !find_subject(req, ino, &content, &s))
			continue;
		value = value_new(&s, &facts[i]);
		file_content_unref(&content);
	}
	if (value)
		reply_xattr(req, value, strlen(value), size);
	else
		fuse_reply_err(req, ENODATA);
	free(value);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	char names[KP_COUNT(facts) * (sizeof(prefix) + 16)];
	struct file_content content;
	struct subject s;
	size_t used = 0;

	if (find_subject(req, ino, &content, &s)) {
		for (size_t i = 0; i < KP_COUNT(facts); i++) {
			char *value = value_new(&s, &facts[i]);

			if (value)
				used += (size_t)snprintf(names + used,
							 sizeof(names) - used, "%s%s",
							 prefix, facts[i].name) +
					1;
			free(value);
		}
		file_content_unref(&content);
	}
	reply_xattr(req, names, used, size);
}

void xattrs_add(struct fuse_lowlevel_ops *handlers)
{
	handlers->getxattr = op_getxattr;
	handlers->listxattr = op_listxattr;
}
