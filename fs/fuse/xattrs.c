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
#include <stdio.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "ops.h"

#define PREFIX "user.kpack."

enum fact {
	ARCHIVE,
	KEY,
	ARCH,
	TYPE,
	ORDINAL,
	SIZE,
	COMPRESSED_SIZE,
	SCHEME,
	CHUNK,
	XXH3,
	METADATA,
	FACTS
};

static const char *const names[FACTS] = {
	[ARCHIVE] = PREFIX "archive",
	[KEY] = PREFIX "key",
	[ARCH] = PREFIX "arch",
	[TYPE] = PREFIX "type",
	[ORDINAL] = PREFIX "ordinal",
	[SIZE] = PREFIX "size",
	[COMPRESSED_SIZE] = PREFIX "compressed_size",
	[SCHEME] = PREFIX "scheme",
	[CHUNK] = PREFIX "chunk",
	[XXH3] = PREFIX "xxh3",
	[METADATA] = PREFIX "metadata",
};

/* The entry's metadata as JSON; none if that would be too large. */
static void compose_metadata(struct kp_compose *c, const struct kpack_archive *a,
			     size_t entry)
{
	struct kp_span packed = kp_archive_meta_raw(a, entry), json;
	struct kp_mp values = kp_mp_over(packed);
	struct kp_json j = {.limit = KP_JSON_MAX};

	if (!packed.size)
		return;
	kp_json_value(&j, &values);
	if (!kp_json_finish(&j, &json, NULL))
		kp_compose_span(c, json);
	kp_json_fini(&j);
}

/*
 * The FACT about FILE, which the caller frees; NULL: it has none, or there is no memory, or
 * it is too long for an attribute.
 */
static char *fact_new(const struct file_content *file, enum fact fact)
{
	const struct bundle *b = file->bundle;
	/* a bundle's parts all have its key */
	const struct origin_entry what = b ? b->parts[0].what : file->entry;
	const struct kpack_archive *a = what.origin->archive;
	struct kp_compose c = {0};
	struct kp_entry_info info;
	struct kp_meta meta;
	char *text;

	kp_archive_entry(a, what.entry, &info);
	kp_archive_meta(a, what.entry, &meta);
	if (b && fact != KEY && fact != TYPE && fact != SIZE)
		return NULL;
	switch (fact) {
	case ARCHIVE:
		kp_compose_str(&c, kp_archive_path(a));
		break;
	case KEY:
		kp_compose_span(&c, info.key);
		break;
	case ARCH:
		kp_compose_span(&c, info.arch);
		break;
	case TYPE:
		kp_compose_span(&c, b ? kp_span_str("hipfb") : info.type);
		break;
	case ORDINAL:
		kp_compose_print(&c, "%" PRIu64, (uint64_t)info.ordinal);
		break;
	case SIZE:
		kp_compose_print(&c, "%" PRIu64, b ? b->size : info.size);
		break;
	case COMPRESSED_SIZE:
		kp_compose_print(&c, "%" PRIu64, info.stored);
		break;
	case SCHEME:
		kp_compose_str(&c, kp_archive_scheme(a));
		break;
	case CHUNK:
		if (!meta.chunk)
			return NULL;
		kp_compose_print(&c, "%" PRIu64, (uint64_t)meta.chunk);
		break;
	case XXH3:
		if (!meta.has_xxh3)
			return NULL;
		for (size_t i = 0; i < sizeof(meta.xxh3); i++)
			kp_compose_print(&c, "%02x", meta.xxh3[i]);
		break;
	default:
		compose_metadata(&c, a, what.entry);
		if (!c.size)
			return NULL;
		break;
	}
	if (kp_compose_take(&c, &text, NULL))
		return NULL;
	if (strlen(text) <= XATTR_SIZE_MAX)
		return text;
	free(text);
	return NULL;
}

/* The content of the file INO, with a reference; false: it has none. */
static bool find_content(fuse_req_t req, fuse_ino_t ino, struct file_content *out)
{
	const struct fs *fs = fuse_req_userdata(req);
	int err;

	inodes_enter(fs->inodes);
	err = inodes_file(fs->inodes, ino, out);
	inodes_leave(fs->inodes);
	return !err;
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
	struct file_content file;
	enum fact fact = 0;
	char *value = NULL;

	while (fact < FACTS && strcmp(name, names[fact]) != 0)
		fact++;
	if (fact < FACTS && find_content(req, ino, &file)) {
		value = fact_new(&file, fact);
		file_content_unref(&file);
	}
	if (value)
		reply_xattr(req, value, strlen(value), size);
	else
		fuse_reply_err(req, ENODATA);
	free(value);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	char list[FACTS * 32];
	struct file_content file;
	size_t used = 0;

	if (find_content(req, ino, &file)) {
		for (enum fact fact = 0; fact < FACTS; fact++) {
			char *value = fact_new(&file, fact);

			if (value) /* with its NUL */
				used += (size_t)snprintf(list + used, sizeof(list) - used,
							 "%s", names[fact]) +
					1;
			free(value);
		}
		file_content_unref(&file);
	}
	reply_xattr(req, list, used, size);
}

void xattrs_add(struct fuse_lowlevel_ops *handlers)
{
	handlers->getxattr = op_getxattr;
	handlers->listxattr = op_listxattr;
}
