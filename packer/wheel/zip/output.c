/* SPDX-License-Identifier: MIT */
#include "output.h"
#include <stdlib.h>
#include "packer/base/xalloc.h"

struct output {
	struct kp_outfile *out;
	struct kpackx_error *why;
	zip_error_t error;
	uint64_t pos;  /* offset of the next byte */
	uint64_t size; /* of the whole file */
	size_t used;   /* bytes in the buffer, which ends at POS */
	uint8_t buf[1 << 20];
};

static zip_int64_t set_error(struct output *o, int code)
{
	zip_error_set(&o->error, code, 0);
	return -1;
}

static bool flush_buffer(struct output *o)
{
	size_t n = o->used;

	o->used = 0;
	return n == 0 || !kp_outfile_pwrite(o->out, o->pos - n, o->buf, n, o->why);
}

static zip_int64_t write_bytes(struct output *o, const uint8_t *data, uint64_t len)
{
	for (uint64_t done = 0; done < len;) {
		size_t room = sizeof(o->buf) - o->used;
		size_t n = len - done < room ? (size_t)(len - done) : room;

		memcpy(o->buf + o->used, data + done, n);
		o->used += n;
		o->pos += n;
		done += n;
		if (o->used == sizeof(o->buf) && !flush_buffer(o))
			return set_error(o, ZIP_ER_WRITE);
	}
	if (o->pos > o->size)
		o->size = o->pos;
	return (zip_int64_t)len;
}

static zip_int64_t seek_to(struct output *o, void *data, uint64_t len)
{
	zip_int64_t pos =
		zip_source_seek_compute_offset(o->pos, o->size, data, len, &o->error);

	if (pos < 0)
		return -1;
	if (!flush_buffer(o))
		return set_error(o, ZIP_ER_WRITE);
	o->pos = (uint64_t)pos;
	return 0;
}

static zip_int64_t put_stat(zip_stat_t *st)
{
	zip_stat_init(st);
	st->size = 0;
	st->valid = ZIP_STAT_SIZE;
	return sizeof(*st);
}

static zip_int64_t handle_command(void *arg, void *data, zip_uint64_t len,
				  zip_source_cmd_t cmd)
{
	struct output *o = arg;

	switch (cmd) {
	case ZIP_SOURCE_WRITE:
		return write_bytes(o, data, len);
	case ZIP_SOURCE_SEEK_WRITE:
		return seek_to(o, data, len);
	case ZIP_SOURCE_TELL_WRITE:
		return (zip_int64_t)o->pos;
	case ZIP_SOURCE_COMMIT_WRITE:
		return flush_buffer(o) ? 0 : set_error(o, ZIP_ER_WRITE);
	case ZIP_SOURCE_STAT:
		return put_stat(data);
	case ZIP_SOURCE_ERROR:
		return zip_error_to_data(&o->error, data, len);
	case ZIP_SOURCE_FREE:
		free(o);
		return 0;
	case ZIP_SOURCE_SUPPORTS:
		return ZIP_SOURCE_SUPPORTS_WRITABLE;
	case ZIP_SOURCE_BEGIN_WRITE:
	case ZIP_SOURCE_ROLLBACK_WRITE:
	case ZIP_SOURCE_OPEN: /* there is no old archive to read */
	case ZIP_SOURCE_READ:
	case ZIP_SOURCE_CLOSE:
	case ZIP_SOURCE_SEEK:
	case ZIP_SOURCE_TELL:
		return 0;
	default:
		return set_error(o, ZIP_ER_OPNOTSUPP);
	}
}

zip_source_t *zip_output_new(struct kp_outfile *out, struct kpackx_error *why,
			     zip_error_t *error)
{
	struct output *o = xcalloc(1, sizeof(*o));
	zip_source_t *source;

	o->out = out;
	o->why = why;
	zip_error_init(&o->error);
	source = zip_source_function_create(handle_command, o, error);
	if (!source)
		free(o);
	return source;
}
