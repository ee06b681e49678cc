/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <unistd.h>
#include "bytes.h"
#include "packer/base/xalloc.h"
#include "packer/files/below.h"

struct reading {
	struct zip_bytes bytes;
	zip_error_t error;
	uint64_t pos;
	uint8_t *buf;
	uint64_t buf_off;
	size_t buf_size;
};

static zip_int64_t set_error(struct reading *r, int code)
{
	zip_error_set(&r->error, code, 0);
	return -1;
}

static kpack_error_t open_file(struct reading *r, struct kpackx_error *why)
{
	int fd;

	KP_TRY(below_file_open_again(r->bytes.file, r->bytes.identity, &fd, why));
	r->bytes.src = kp_source_fd(fd, 0, r->bytes.size);
	return KPACK_SUCCESS;
}

static zip_int64_t begin_reading(struct reading *r)
{
	struct kpackx_error why = {0};

	if (r->bytes.file && open_file(r, &why)) {
		if (r->bytes.why)
			*r->bytes.why = why;
		return set_error(r, ZIP_ER_OPEN);
	}
	r->buf = xmalloc(r->bytes.buffer);
	r->pos = r->buf_off = r->buf_size = 0;
	return 0;
}

static void end_reading(struct reading *r)
{
	if (r->bytes.file && r->bytes.src.fd >= 0) {
		close(r->bytes.src.fd);
		r->bytes.src.fd = -1;
	}
	free(r->buf);
	r->buf = NULL;
}

static bool fill_buffer(struct reading *r)
{
	uint64_t rest = r->bytes.size - r->pos;
	size_t n = rest < r->bytes.buffer ? (size_t)rest : r->bytes.buffer;

	r->buf_off = r->pos;
	r->buf_size = 0;
	if (kp_source_read(&r->bytes.src, r->pos, r->buf, n, r->bytes.why))
		return false;
	r->buf_size = n;
	return true;
}

static zip_int64_t read_bytes(struct reading *r, void *data, uint64_t len)
{
	uint64_t done = 0;

	while (done < len && r->pos < r->bytes.size) {
		uint64_t at = r->pos - r->buf_off, n;

		if (r->pos < r->buf_off || at >= r->buf_size) {
			if (!fill_buffer(r))
				return set_error(r, ZIP_ER_READ);
			at = 0;
		}
		n = r->buf_size - at < len - done ? r->buf_size - at : len - done;
		memcpy((uint8_t *)data + done, r->buf + at, n);
		done += n;
		r->pos += n;
	}
	return (zip_int64_t)done;
}

static zip_int64_t put_stat(const struct reading *r, zip_stat_t *st)
{
	zip_stat_init(st);
	st->size = r->bytes.deflated ? r->bytes.decoded : r->bytes.size;
	st->comp_size = r->bytes.size;
	st->comp_method = r->bytes.deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
	st->valid = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
	if (r->bytes.deflated) {
		st->crc = r->bytes.crc;
		st->valid |= ZIP_STAT_CRC;
	}
	return sizeof(*st);
}

static zip_int64_t seek_to(struct reading *r, void *data, uint64_t len)
{
	zip_int64_t pos = zip_source_seek_compute_offset(r->pos, r->bytes.size, data, len,
							 &r->error);

	if (pos >= 0)
		r->pos = (uint64_t)pos;
	return pos < 0 ? -1 : 0;
}

static zip_int64_t handle_command(void *arg, void *data, zip_uint64_t len,
				  zip_source_cmd_t cmd)
{
	struct reading *r = arg;

	switch (cmd) {
	case ZIP_SOURCE_OPEN:
		return begin_reading(r);
	case ZIP_SOURCE_READ:
		return read_bytes(r, data, len);
	case ZIP_SOURCE_CLOSE:
		end_reading(r);
		return 0;
	case ZIP_SOURCE_STAT:
		return put_stat(r, data);
	case ZIP_SOURCE_ERROR:
		return zip_error_to_data(&r->error, data, len);
	case ZIP_SOURCE_FREE:
		end_reading(r);
		free(r);
		return 0;
	case ZIP_SOURCE_SEEK:
		return seek_to(r, data, len);
	case ZIP_SOURCE_TELL:
		return (zip_int64_t)r->pos;
	case ZIP_SOURCE_SUPPORTS:
		return ZIP_SOURCE_SUPPORTS_SEEKABLE;
	default:
		return set_error(r, ZIP_ER_OPNOTSUPP);
	}
}

zip_source_t *zip_bytes_new(const struct zip_bytes *bytes, zip_error_t *error)
{
	struct reading *r = xcalloc(1, sizeof(*r));
	zip_source_t *source;

	r->bytes = *bytes;
	if (r->bytes.file)
		r->bytes.src.fd = -1;
	zip_error_init(&r->error);
	source = zip_source_function_create(handle_command, r, error);
	if (!source)
		free(r);
	return source;
}
