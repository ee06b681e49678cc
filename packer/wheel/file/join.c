/* SPDX-License-Identifier: MIT */
#include "join.h"
#include <stdlib.h>
#include <sys/stat.h>
#include "list.h"
#include "packer/base/xalloc.h"
#include "packer/wheel/zip/bytes.h"
#include "packer/wheel/zip/fault.h"
#include "packer/wheel/zip/output.h"

enum { BUFFER = 256 << 10 };

/* A wheel from which members are copied. */
struct origin {
	const struct wheel_in *wheel;
	struct wheel_reader *reader;
};

struct joining {
	const struct wheel_join *j;
	zip_t *zip;
	struct origin *origins;
	size_t n_origins, cap_origins;
	struct kpackx_error source_error; /* error of a source */
};

static kpack_error_t find_reader(struct joining *x, const struct wheel_in *wheel,
				 struct wheel_reader **out, struct kpackx_error *why)
{
	for (size_t i = x->n_origins; i > 0; i--)
		if (x->origins[i - 1].wheel == wheel) {
			*out = x->origins[i - 1].reader;
			return KPACK_SUCCESS;
		}
	KP_TRY(wheel_reader_new(wheel, out, why));
	xgrow(&x->origins, x->n_origins, &x->cap_origins, sizeof(*x->origins));
	x->origins[x->n_origins++] = (struct origin){wheel, *out};
	return KPACK_SUCCESS;
}

static zip_source_t *copy_source(struct joining *x, const struct wheel_out_member *m,
				 struct wheel_reader *reader)
{
	return zip_source_zip(x->zip, wheel_reader_zip(reader), m->member,
			      ZIP_FL_COMPRESSED, 0, -1);
}

static zip_source_t *press_source(struct joining *x, const struct wheel_out_member *m)
{
	struct zip_bytes bytes = {.file = m->file,
				  .identity = &m->identity,
				  .src = kp_source_memory(m->bytes, (size_t)m->size),
				  .size = m->size,
				  .buffer = BUFFER,
				  .why = &x->source_error};

	if (m->deflated) {
		bytes.file = NULL;
		bytes.src = kp_source_fd(x->j->collected, m->packed_at, m->packed);
		bytes.size = m->packed;
		bytes.deflated = true;
		bytes.decoded = m->size;
		bytes.crc = m->crc;
	}
	return zip_bytes_new(&bytes, zip_get_error(x->zip));
}

/* The member that M copies, or NULL. */
static const struct wheel_member *copied_member(const struct wheel_out_member *m)
{
	size_t count;

	return m->from ? &wheel_in_members(m->from, &count)[m->member] : NULL;
}

/*
 * An empty member is stored, whatever it was: libzip 1.11 leaves out the two bytes that
 * deflating nothing gives, but not the method, and unzip refuses that.
 */
static bool is_empty(const struct wheel_out_member *m)
{
	const struct wheel_member *copied = copied_member(m);

	return (copied ? copied->size : m->size) == 0;
}

static bool is_deflated(const struct wheel_out_member *m)
{
	const struct wheel_member *copied = copied_member(m);

	if (is_empty(m))
		return false;
	return copied ? copied->method == ZIP_CM_DEFLATE : m->deflated;
}

static kpack_error_t set_attributes(struct joining *x, zip_uint64_t i,
				    const struct wheel_out_member *m,
				    struct kpackx_error *why)
{
	const struct dos_time *t = &x->j->time;
	zip_int32_t method = is_deflated(m) ? ZIP_CM_DEFLATE : ZIP_CM_STORE;

	if (zip_set_file_compression(x->zip, i, method, 0) ||
	    zip_file_set_dostime(x->zip, i, t->time, t->date, 0) ||
	    zip_file_set_external_attributes(x->zip, i, 0, ZIP_OPSYS_UNIX,
					     (zip_uint32_t)(S_IFREG | m->mode) << 16))
		return zip_fault(why, zip_get_error(x->zip), m->path);
	return KPACK_SUCCESS;
}

static kpack_error_t add_member(struct joining *x, const struct wheel_out_member *m,
				struct kpackx_error *why)
{
	struct wheel_reader *reader;
	zip_source_t *source;
	zip_int64_t i;

	if (is_empty(m)) {
		source = zip_source_buffer(x->zip, "", 0, 0);
	} else if (m->from) {
		KP_TRY(find_reader(x, m->from, &reader, why));
		source = copy_source(x, m, reader);
	} else {
		source = press_source(x, m);
	}
	if (!source)
		return zip_fault(why, zip_get_error(x->zip), m->path);
	i = zip_file_add(x->zip, m->path, source, ZIP_FL_ENC_UTF_8);
	if (i < 0) {
		zip_source_free(source);
		return zip_fault(why, zip_get_error(x->zip), m->path);
	}
	return set_attributes(x, (zip_uint64_t)i, m, why);
}

static kpack_error_t begin_archive(struct joining *x, struct kpackx_error *why)
{
	zip_error_t error;
	zip_source_t *source;
	kpack_error_t err = KPACK_SUCCESS;

	zip_error_init(&error);
	source = zip_output_new(x->j->out, &x->source_error, &error);
	if (source)
		x->zip = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error);
	if (!x->zip) {
		if (source)
			zip_source_free(source);
		err = zip_fault(why, &error, "");
	}
	zip_error_fini(&error);
	return err;
}

static kpack_error_t finish_archive(struct joining *x, struct kpackx_error *why)
{
	kpack_error_t err;

	if (zip_close(x->zip) == 0) {
		x->zip = NULL;
		return KPACK_SUCCESS;
	}
	err = zip_fault(why, zip_get_error(x->zip), "");
	return x->source_error.code
		       ? kp_fail(why, x->source_error.code, "%s", x->source_error.text)
		       : err;
}

kpack_error_t wheel_join_run(const struct wheel_join *j, struct kpackx_error *why)
{
	struct joining x = {.j = j};
	kpack_error_t err = begin_archive(&x, why);

	for (size_t i = 0; !err && i < j->count; i++)
		err = add_member(&x, &j->members[i], why);
	if (!err)
		err = finish_archive(&x, why);
	if (x.zip)
		zip_discard(x.zip);
	while (x.n_origins)
		wheel_reader_free(x.origins[--x.n_origins].reader);
	free(x.origins);
	return err;
}
