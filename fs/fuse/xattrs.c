/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdlib.h>
#include "fs/tree/entry_facts.h"
#include "ops.h"
#include "xattrs.h"

static const char prefix[] = "user.kpack.";

#define PREFIX_SIZE (sizeof(prefix) - 1)

/* The content of a file, with a reference; false: it has none. */
static bool find_content(fuse_req_t req, fuse_ino_t ino, struct file_content *out)
{
	const struct fs *fs = fuse_req_userdata(req);
	int err;

	inodes_enter(fs->inodes);
	err = inodes_file(fs->inodes, ino, out);
	inodes_leave(fs->inodes);
	return !err;
}

/* The fact at POSITION as text; NULL: no such fact, or too long for an attribute. */
static char *fact_new(const struct file_content *what, size_t position)
{
	char *text = what->bundle ? facts_bundle_text(what->bundle, position)
				  : facts_text(what->entry.origin->archive,
					       what->entry.entry, position);

	if (text && strlen(text) <= XATTR_SIZE_MAX)
		return text;
	free(text);
	return NULL;
}

static char *value_new(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct file_content what;
	char *value = NULL;
	size_t i = 0;

	if (strncmp(name, prefix, PREFIX_SIZE) != 0)
		return NULL;
	while (facts_name(i) && strcmp(name + PREFIX_SIZE, facts_name(i)) != 0)
		i++;
	if (!facts_name(i) || !find_content(req, ino, &what))
		return NULL;
	value = fact_new(&what, i);
	file_content_unref(&what);
	return value;
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
	char *value = value_new(req, ino, name);

	if (value)
		reply_xattr(req, value, strlen(value), size);
	else
		fuse_reply_err(req, ENODATA);
	free(value);
}

/* Write the names of the entry's attributes, each with its NUL. */
static void put_names(FILE *f, const struct file_content *what)
{
	for (size_t i = 0; facts_name(i); i++) {
		char *value = fact_new(what, i);

		if (value)
			fprintf(f, "%s%s%c", prefix, facts_name(i), 0);
		free(value);
	}
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct file_content what;
	char *names = NULL;
	size_t used = 0;
	FILE *f;

	if (!find_content(req, ino, &what)) {
		reply_xattr(req, NULL, 0, size);
		return;
	}
	f = open_memstream(&names, &used);
	if (f)
		put_names(f, &what);
	if (f && !fclose(f))
		reply_xattr(req, names, used, size);
	else
		fuse_reply_err(req, ENOMEM);
	free(names);
	file_content_unref(&what);
}

void xattrs_add(struct fuse_lowlevel_ops *handlers)
{
	handlers->getxattr = op_getxattr;
	handlers->listxattr = op_listxattr;
}
