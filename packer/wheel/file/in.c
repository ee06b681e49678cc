/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>
#include "core/base/file.h"
#include "core/base/text.h"
#include "in.h"
#include "list.h"
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/wheel/zip/bytes.h"
#include "packer/wheel/zip/fault.h"

struct wheel_in {
	char *path;
	int fd;
	uint64_t size;
	struct wheel_list list;
};

struct wheel_reader {
	const struct wheel_in *w;
	zip_t *zip;
	struct kpackx_error why; /* error of the source */
	uint8_t buf[128 << 10];
};

/* Buffer sizes: members are read sequentially, the directory is read in random order. */
enum { BUFFER_READ = 256 << 10, BUFFER_CHECK = 4 << 10 };

static kpack_error_t open_zip(const struct wheel_in *w, int flags, size_t buffer,
			      struct kpackx_error *source_error, zip_t **out,
			      struct kpackx_error *why)
{
	struct zip_bytes bytes = {.src = wheel_in_source(w),
				  .size = w->size,
				  .buffer = buffer,
				  .why = source_error};
	zip_error_t error;
	zip_source_t *source;
	kpack_error_t err;

	zip_error_init(&error);
	source = zip_bytes_new(&bytes, &error);
	*out = source ? zip_open_from_source(source, ZIP_RDONLY | flags, &error) : NULL;
	if (*out) {
		zip_error_fini(&error);
		return KPACK_SUCCESS;
	}
	if (source)
		zip_source_free(source);
	err = source_error->code
		      ? kp_fail(why, source_error->code, "%s", source_error->text)
		      : zip_fault(why, &error, "");
	zip_error_fini(&error);
	return err;
}

/* Let libzip compare the central directory with each member's local header. */
static kpack_error_t check_locals(const struct wheel_in *w, struct kpackx_error *why)
{
	struct kpackx_error source_error = {0};
	zip_t *zip;

	KP_TRY(open_zip(w, ZIP_CHECKCONS, BUFFER_CHECK, &source_error, &zip, why));
	zip_discard(zip);
	return KPACK_SUCCESS;
}

/* List members before libzip's checks, which do not name duplicate members. */
static kpack_error_t read_list(struct wheel_in *w, struct kpackx_error *why)
{
	struct kp_source src = wheel_in_source(w);
	struct kpackx_error source_error = {0};
	struct central central;
	zip_t *zip = NULL;
	kpack_error_t err = central_read(&src, WHEEL_MEMBERS_MAX, &central, why);

	if (!err)
		err = open_zip(w, 0, BUFFER_CHECK, &source_error, &zip, why);
	if (!err)
		err = wheel_list_read(&w->list, zip, &central, w->size, why);
	if (zip)
		zip_discard(zip);
	central_fini(&central);
	return err ? err : check_locals(w, why);
}

kpack_error_t wheel_in_open(const char *path, struct wheel_in **out,
			    struct kpackx_error *why)
{
	struct wheel_in *w = xcalloc(1, sizeof(*w));
	struct stat st;
	kpack_error_t err;

	w->fd = -1;
	w->path = xstrdup(path);
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
	free(w->path);
	free(w);
}

const char *wheel_in_path(const struct wheel_in *w)
{
	return w->path;
}

struct kp_source wheel_in_source(const struct wheel_in *w)
{
	return kp_source_fd(w->fd, 0, w->size);
}

uint64_t wheel_in_file_size(const struct wheel_in *w)
{
	return w->size;
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

bool wheel_in_case_clash(const struct wheel_in *w, size_t *a, size_t *b)
{
	return wheel_list_case_clash(&w->list, a, b);
}

kpack_error_t wheel_reader_new(const struct wheel_in *w, struct wheel_reader **out,
			       struct kpackx_error *why)
{
	struct wheel_reader *r = xcalloc(1, sizeof(*r));
	kpack_error_t err;

	r->w = w;
	err = open_zip(w, 0, BUFFER_READ, &r->why, &r->zip, why);
	if (err) {
		wheel_reader_free(r);
		return err;
	}
	*out = r;
	return KPACK_SUCCESS;
}

void wheel_reader_free(struct wheel_reader *r)
{
	if (r && r->zip)
		zip_discard(r->zip);
	free(r);
}

struct zip *wheel_reader_zip(struct wheel_reader *r)
{
	return r->zip;
}

static kpack_error_t decode_fault(struct wheel_reader *r, zip_error_t *error,
				  const char *path, struct kpackx_error *why)
{
	if (!r->why.code)
		return zip_fault(why, error, path);
	return kp_fail(why, r->why.code, "%s", r->why.text);
}

static kpack_error_t decode_member(struct wheel_reader *r, zip_file_t *file,
				   const struct wheel_member *m, wheel_take *take,
				   void *arg, struct kpackx_error *why)
{
	uint64_t done = 0;
	zip_int64_t n;

	while ((n = zip_fread(file, r->buf, sizeof(r->buf))) > 0) {
		if ((uint64_t)n > m->size - done)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: decodes to more than %" PRIu64 " bytes",
				       m->path, m->size);
		done += (uint64_t)n;
		KP_TRY(take(arg, (struct kp_span){r->buf, (size_t)n}, why));
	}
	if (n < 0)
		return decode_fault(r, zip_file_get_error(file), m->path, why);
	if (done != m->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: decodes to %" PRIu64 " bytes of %" PRIu64, m->path,
			       done, m->size);
	return KPACK_SUCCESS;
}

/* True if the member is as listed: the file may have changed since. */
static bool is_same(struct wheel_reader *r, size_t member)
{
	const struct wheel_member *m = &r->w->list.members[member];
	zip_stat_t st;

	return zip_stat_index(r->zip, member, ZIP_FL_ENC_RAW, &st) == 0 &&
	       st.size == m->size && st.comp_size == m->compressed && st.crc == m->crc &&
	       kp_span_starts(kp_span_str(st.name), m->path, strlen(m->path));
}

kpack_error_t wheel_reader_read(struct wheel_reader *r, size_t member, wheel_take *take,
				void *arg, struct kpackx_error *why)
{
	const struct wheel_member *m = &r->w->list.members[member];
	zip_file_t *file;
	kpack_error_t err;

	if (!is_same(r, member))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: the wheel has changed",
			       m->path);
	file = zip_fopen_index(r->zip, member, 0);
	if (!file)
		return decode_fault(r, zip_get_error(r->zip), m->path, why);
	err = decode_member(r, file, m, take, arg, why);
	zip_fclose(file);
	return err;
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
