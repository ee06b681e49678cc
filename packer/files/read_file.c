/* SPDX-License-Identifier: MIT */
#include "read_file.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include <zlib.h>

/* Limit of a library's unpacked bytes: the largest known ones have some 150 MiB. */
#define DAT_MAX (UINT64_C(1) << 30)

/* The first buffer for an unpacked library, whose size is not known. */
#define FIRST_ROOM 65536

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

/* Double the buffer, which is full. */
static kpack_error_t more_room(struct read_file *out, size_t *room,
			       struct kpackx_error *why)
{
	size_t larger = *room ? 2 * *room : FIRST_ROOM;
	uint8_t *data;

	if (*room >= DAT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "unpacks to more than %llu bytes",
			       (unsigned long long)DAT_MAX);
	data = realloc(out->data, larger);
	if (!data)
		return kp_fail_memory(why, larger, "a library");
	out->data = data;
	*room = larger;
	return KPACK_SUCCESS;
}

static kpack_error_t unpack_stream(z_stream *z, struct read_file *out,
				   struct kpackx_error *why)
{
	size_t room = 0;

	for (;;) {
		int code;

		if (out->size == room)
			KP_TRY(more_room(out, &room, why));
		z->next_out = out->data + out->size;
		z->avail_out = (uInt)(room - out->size);
		code = inflate(z, Z_NO_FLUSH);
		out->size = room - z->avail_out;
		if (code == Z_STREAM_END)
			return KPACK_SUCCESS;
		if (code != Z_OK || (z->avail_in == 0 && z->avail_out))
			return fail_zlib(z, code, why);
	}
}

kpack_error_t read_file_inflate(struct kp_span packed, struct read_file *out,
				struct kpackx_error *why)
{
	z_stream z = {.next_in = (Bytef *)packed.data, .avail_in = (uInt)packed.size};
	kpack_error_t err;
	int code;

	*out = (struct read_file){0};
	if (packed.size > DAT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%zu bytes, at most %llu",
			       packed.size, (unsigned long long)DAT_MAX);
	code = inflateInit(&z);
	if (code != Z_OK)
		return fail_zlib(&z, code, why);
	err = unpack_stream(&z, out, why);
	inflateEnd(&z);
	if (err)
		read_file_fini(out);
	return err;
}

kpack_error_t read_file_unpack(const struct kp_source *source, bool zlib,
			       struct read_file *out, struct kpackx_error *why)
{
	struct read_file packed;
	kpack_error_t err;

	*out = (struct read_file){0};
	KP_TRY(kp_source_load(source, DAT_MAX, "the file", &out->data, why));
	out->size = (size_t)source->size;
	if (!zlib)
		return KPACK_SUCCESS;
	packed = *out;
	err = read_file_inflate(read_file_span(&packed), out, why);
	read_file_fini(&packed);
	return err;
}

static bool is_packed(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".zlib") == 0;
}

kpack_error_t read_file_read(const struct file_tree *tree, size_t file,
			     struct read_file *out, struct kpackx_error *why)
{
	struct file_bytes bytes = {.fd = -1};
	kpack_error_t err;

	*out = (struct read_file){0};
	/* for an archive's entry, check this before decoding it */
	if (tree->items[file].size > DAT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%llu bytes, at most %llu",
			       (unsigned long long)tree->items[file].size,
			       (unsigned long long)DAT_MAX);
	KP_TRY(file_tree_open(tree, file, &bytes, why));
	err = read_file_unpack(&bytes.source, is_packed(tree->items[file].path), out,
			       why);
	file_bytes_close(&bytes);
	return err;
}
