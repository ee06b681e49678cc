/* SPDX-License-Identifier: MIT */
/*
 * A sorted list of files, which are on the disk or entries of archives.  A file's bytes are read
 * whole, because all that are asked for are small: databases and their indexes.
 */
#include "file_tree.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/archive/entry.h"
#include "core/base/order.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Limit of a database's unpacked bytes: the largest known ones have some 150 MiB. */
#define DATABASE_MAX (UINT64_C(1) << 30)

/* The first buffer for unpacked bytes, whose number is not known. */
#define FIRST_ROOM 65536

void file_tree_add(struct file_tree *t, const struct file_tree_item *item)
{
	struct file_tree_item *to;

	xgrow(&t->items, t->count, &t->cap, sizeof(*t->items));
	to = &t->items[t->count];
	*to = *item;
	to->path = xstrdup(item->path);
	to->disk = item->disk ? xstrdup(item->disk) : NULL;
	to->rank = t->count++;
}

void file_tree_sort(struct file_tree *t)
{
	size_t n = 0;

	kp_sort(t->items, t->count, KP_BY_TEXT(struct file_tree_item, path),
		KP_BY_NUMBER(struct file_tree_item, rank));
	for (size_t i = 0; i < t->count; i++) {
		if (n && strcmp(t->items[n - 1].path, t->items[i].path) == 0) {
			free(t->items[i].path);
			free(t->items[i].disk);
		} else {
			t->items[n++] = t->items[i];
		}
	}
	t->count = n;
}

void file_tree_fini(struct file_tree *t)
{
	for (size_t i = 0; i < t->count; i++) {
		free(t->items[i].path);
		free(t->items[i].disk);
	}
	free(t->items);
	*t = (struct file_tree){0};
}

size_t file_tree_from(const struct file_tree *t, const char *path)
{
	const struct file_tree_item probe = {.path = (char *)path};

	return kp_lower_bound(t->items, t->count, &probe,
			      KP_BY_TEXT(struct file_tree_item, path));
}

bool file_tree_find(const struct file_tree *t, const char *path, size_t *file)
{
	size_t at = file_tree_from(t, path);

	if (at == t->count || strcmp(t->items[at].path, path) != 0)
		return false;
	*file = at;
	return true;
}

/* --- bytes ----------------------------------------------------------------------------- */

kpack_error_t file_tree_open(const struct file_tree *t, size_t file,
			     struct file_bytes *out, struct kpackx_error *why)
{
	const struct file_tree_item *item = &t->items[file];
	kpack_error_t err;
	struct stat st;

	*out = (struct file_bytes){.fd = -1};
	if (item->disk) {
		KP_TRY(below_file_open(item->disk, &out->fd, &st, why));
		out->source = kp_source_fd(out->fd, 0, (uint64_t)st.st_size);
		return KPACK_SUCCESS;
	}
	out->heap = malloc((size_t)item->size + 1);
	if (!out->heap)
		return kp_fail_memory(why, item->size, "a file");
	err = kp_entry_read(item->archive, item->entry, out->heap, why);
	if (err)
		file_bytes_close(out);
	else
		out->source = kp_source_memory(out->heap, (size_t)item->size);
	return err;
}

void file_bytes_close(struct file_bytes *bytes)
{
	if (bytes->fd >= 0)
		close(bytes->fd);
	free(bytes->heap);
	*bytes = (struct file_bytes){.fd = -1};
}

void read_file_fini(struct read_file *dat)
{
	free(dat->data);
	*dat = (struct read_file){0};
}

static kpack_error_t fail_zlib(const z_stream *z, int code, struct kpackx_error *why)
{
	if (code == Z_MEM_ERROR)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "out of memory: zlib");
	if (code == Z_OK || code == Z_BUF_ERROR)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "zlib: ends after %lu bytes", z->total_in);
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "zlib: byte %lu: %s",
		       z->total_in, z->msg ? z->msg : zError(code));
}

kpack_error_t read_file_unpack(const struct kp_source *source, bool zlib,
			       struct read_file *out, struct kpackx_error *why)
{
	KP_AUTO(read_file) packed = {.size = (size_t)source->size};
	kpack_error_t err = KPACK_SUCCESS;
	z_stream z = {0};
	size_t room = 0;
	int code;

	*out = (struct read_file){0};
	KP_TRY(kp_source_load(source, DATABASE_MAX, "the file", &packed.data, why));
	if (!zlib) {
		*out = packed;
		packed.data = NULL;
		return KPACK_SUCCESS;
	}
	z.next_in = packed.data;
	z.avail_in = (uInt)packed.size;
	code = inflateInit(&z);
	if (code != Z_OK)
		return fail_zlib(&z, code, why);
	for (;;) {
		if (out->size == room) {
			uint8_t *data;

			if (room >= DATABASE_MAX) {
				err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					      "unpacks to more than %llu bytes",
					      (unsigned long long)DATABASE_MAX);
				break;
			}
			room = room ? 2 * room : FIRST_ROOM;
			data = realloc(out->data, room);
			if (!data) {
				err = kp_fail_memory(why, room, "a library");
				break;
			}
			out->data = data;
		}
		z.next_out = out->data + out->size;
		z.avail_out = (uInt)(room - out->size);
		code = inflate(&z, Z_NO_FLUSH);
		out->size = room - z.avail_out;
		if (code == Z_STREAM_END)
			break;
		if (code != Z_OK || (z.avail_in == 0 && z.avail_out)) {
			err = fail_zlib(&z, code, why);
			break;
		}
	}
	inflateEnd(&z);
	if (err)
		read_file_fini(out);
	return err;
}

kpack_error_t read_file_read(const struct file_tree *tree, size_t file,
			     struct read_file *out, struct kpackx_error *why)
{
	const struct file_tree_item *item = &tree->items[file];
	struct file_bytes bytes = {.fd = -1};
	kpack_error_t err;

	*out = (struct read_file){0};
	/* before an archive's entry is decoded */
	if (item->size > DATABASE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%llu bytes, at most %llu", (unsigned long long)item->size,
			       (unsigned long long)DATABASE_MAX);
	KP_TRY(file_tree_open(tree, file, &bytes, why));
	err = read_file_unpack(&bytes.source,
			       kp_span_ends(kp_span_str(item->path), ".zlib"), out, why);
	file_bytes_close(&bytes);
	return err;
}
