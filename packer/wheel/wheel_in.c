/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "core/base/file.h"
#include "core/base/text.h"
#include "wheel_in.h"
#include "wheel_list.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

struct wheel_in {
	int fd;
	uint64_t size;
	struct wheel_list list;
};

struct wheel_reader {
	const struct wheel_in *w;
	z_stream z;
	uint8_t in[128 << 10], out[128 << 10];
};

/* List members before their headers are compared, which does not name duplicates. */
static kpack_error_t read_list(struct wheel_in *w, struct kpackx_error *why)
{
	struct kp_source src = wheel_in_source(w);
	struct central central;
	kpack_error_t err = central_read(&src, WHEEL_MEMBERS_MAX, &central, why);

	if (!err)
		err = wheel_list_read(&w->list, &central, w->size, why);
	if (!err)
		err = central_check_locals(&src, &central, why);
	for (size_t i = 0; !err && i < central.count; i++)
		w->list.members[i].at = central.entries[i].data;
	central_fini(&central);
	return err;
}

kpack_error_t wheel_in_open(const char *path, struct wheel_in **out,
			    struct kpackx_error *why)
{
	struct wheel_in *w = xcalloc(1, sizeof(*w));
	struct stat st;
	kpack_error_t err;

	w->fd = -1;
	err = below_file_open(path, &w->fd, &st, why);
	if (!err) {
		w->size = (uint64_t)st.st_size;
		err = read_list(w, why);
	}
	if (err)
		wheel_in_close(w);
	else
		*out = w;
	return err;
}

void wheel_in_close(struct wheel_in *w)
{
	if (!w)
		return;
	wheel_list_fini(&w->list);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

struct kp_source wheel_in_source(const struct wheel_in *w)
{
	return kp_source_fd(w->fd, 0, w->size);
}

struct kp_source wheel_in_bytes(const struct wheel_in *w, size_t member)
{
	const struct wheel_member *m = &w->list.members[member];

	return kp_source_fd(w->fd, m->at, m->compressed);
}

const struct wheel_member *wheel_in_members(const struct wheel_in *w, size_t *count)
{
	*count = w->list.count;
	return w->list.members;
}

bool wheel_in_find(const struct wheel_in *w, const char *path, size_t *member)
{
	return wheel_list_find(&w->list, kp_span_str(path), member);
}

kpack_error_t wheel_reader_new(const struct wheel_in *w, struct wheel_reader **out,
			       struct kpackx_error *why)
{
	struct wheel_reader *r = xcalloc(1, sizeof(*r));

	r->w = w;
	/* negative: raw deflate without a header, as in zip */
	if (inflateInit2(&r->z, -MAX_WBITS) != Z_OK) {
		free(r);
		return kp_fail_memory(why, sizeof(*r), "inflate");
	}
	*out = r;
	return KPACK_SUCCESS;
}

void wheel_reader_free(struct wheel_reader *r)
{
	if (r)
		inflateEnd(&r->z);
	free(r);
}

/* A member while it is decoded. */
struct decoding {
	const struct wheel_member *m;
	uint64_t done;
	uint32_t crc;
	wheel_take *take;
	void *arg;
};

static kpack_error_t take_bytes(struct decoding *d, const uint8_t *bytes, size_t n,
				struct kpackx_error *why)
{
	if (n > d->m->size - d->done)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: decodes to more than %" PRIu64 " bytes", d->m->path,
			       d->m->size);
	d->done += n;
	d->crc = (uint32_t)crc32_z(d->crc, bytes, n);
	return n ? d->take(d->arg, (struct kp_span){bytes, n}, why) : KPACK_SUCCESS;
}

/* Decode the N bytes in R's buffer; *ENDED: the member is complete. */
static kpack_error_t inflate_bytes(struct wheel_reader *r, size_t n, struct decoding *d,
				   bool *ended, struct kpackx_error *why)
{
	r->z.next_in = r->in;
	r->z.avail_in = (uInt)n;
	do {
		int result;

		r->z.next_out = r->out;
		r->z.avail_out = sizeof(r->out);
		result = inflate(&r->z, Z_NO_FLUSH);
		*ended = result == Z_STREAM_END;
		if (result == Z_MEM_ERROR)
			return kp_fail_memory(why, 0, d->m->path);
		if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: does not decode: %s", d->m->path,
				       r->z.msg ? r->z.msg : "damaged");
		KP_TRY(take_bytes(d, r->out, sizeof(r->out) - r->z.avail_out, why));
	} while (!*ended && r->z.avail_out == 0);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_reader_read(struct wheel_reader *r, size_t member, wheel_take *take,
				void *arg, struct kpackx_error *why)
{
	const struct wheel_member *m = &r->w->list.members[member];
	struct kp_source src = wheel_in_bytes(r->w, member);
	struct decoding d = {.m = m, .take = take, .arg = arg};
	bool ended = false;

	inflateReset(&r->z);
	for (uint64_t at = 0; at < src.size && !ended;) {
		size_t n = src.size - at < sizeof(r->in) ? (size_t)(src.size - at)
							 : sizeof(r->in);

		KP_TRY(kp_source_read(&src, at, r->in, n, why));
		KP_TRY(m->method == ZIP_DEFLATED ? inflate_bytes(r, n, &d, &ended, why)
						 : take_bytes(&d, r->in, n, why));
		at += n;
	}
	if (d.done != m->size || (m->method == ZIP_DEFLATED && !ended))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: decodes to %" PRIu64 " bytes of %" PRIu64, m->path,
			       d.done, m->size);
	return d.crc == m->crc ? KPACK_SUCCESS
			       : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					 "%s: its bytes do not match its CRC", m->path);
}

struct text {
	char *bytes;
	size_t size;
};

static kpack_error_t append_text(void *arg, struct kp_span data, struct kpackx_error *why)
{
	struct text *t = arg;

	(void)why; /* never more than the member's size */
	memcpy(t->bytes + t->size, data.data, data.size);
	t->size += data.size;
	return KPACK_SUCCESS;
}

kpack_error_t wheel_reader_text(struct wheel_reader *r, size_t member, size_t max,
				char **text, size_t *size, struct kpackx_error *why)
{
	const struct wheel_member *m = &r->w->list.members[member];
	struct text t = {0};
	kpack_error_t err;

	if (m->size > max)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %" PRIu64 " bytes, at most %zu", m->path, m->size,
			       max);
	t.bytes = malloc((size_t)m->size + 1);
	if (!t.bytes)
		return kp_fail_memory(why, m->size, m->path);
	err = wheel_reader_read(r, member, append_text, &t, why);
	if (err) {
		free(t.bytes);
		return err;
	}
	t.bytes[t.size] = '\0';
	*text = t.bytes;
	*size = t.size;
	return KPACK_SUCCESS;
}
