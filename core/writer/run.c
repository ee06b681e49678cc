/* SPDX-License-Identifier: MIT */
/* Copying objects of another archive as they are stored there. */
#include "core/base/scheme.h"
#include "internal.h"

/* Contiguous bytes of a file that are to be appended. */
struct stretch {
	uint64_t offset, size;
};

static kpack_error_t append_stretch(struct kp_writer *w, const struct kpack_archive *from,
				    struct stretch *s, struct kpackx_error *why)
{
	KP_TRY(kp_writer_append_file(w, kp_archive_fd(from), s->offset, s->size, why));
	s->size = 0;
	return KPACK_SUCCESS;
}

/* Record a place as if the WAITING bytes of the stretch were already appended. */
static kpack_error_t place_object(struct kp_writer *w, uint64_t waiting, uint64_t size,
				  struct kpackx_error *why)
{
	kpack_error_t err;

	w->end += waiting;
	err = kp_writer_place(w, size, why);
	w->end -= waiting;
	return err;
}

static kpack_error_t copy_run(struct kp_writer *w, const struct kpack_archive *from,
			      uint32_t first, uint32_t count, struct kpackx_error *why)
{
	uint64_t word = w->scheme == KPACK_COMPRESSION_NOOP ? 0 : 4;
	uint64_t file_size = (uint64_t)kp_archive_stat(from)->st_size;
	struct stretch s = {0};

	for (uint32_t i = first; i < first + count; i++) {
		struct kp_source at;

		KP_TRY(kp_archive_source(from, i, &at, why));
		if (!kp_range_ok(file_size, at.offset, at.size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "object %u: %llu bytes at %llu in a file of %llu",
				       i, (unsigned long long)at.size,
				       (unsigned long long)at.offset,
				       (unsigned long long)file_size);
		if (s.size && s.offset + s.size != at.offset - word)
			KP_TRY(append_stretch(w, from, &s, why));
		if (s.size == 0)
			s.offset = at.offset - word;
		KP_TRY(place_object(w, s.size, at.size, why));
		s.size += word + at.size;
		KP_TRY(kp_writer_hash(w, &at, why));
		w->n_frames++;
	}
	return append_stretch(w, from, &s, why);
}

kpack_error_t kp_writer_add_run(struct kp_writer *w, const struct kpack_archive *from,
				uint32_t first, uint32_t count, uint32_t *ordinal,
				struct kpackx_error *why)
{
	if (w->share || strcmp(kp_archive_scheme(from), kp_scheme_name(w->scheme)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: its scheme is not %s", kp_archive_scheme(from));
	if (!kp_range_ok(kp_archive_ordinal_count(from), first, count))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: from ordinal %u on %u objects, of %u", first,
			       count, kp_archive_ordinal_count(from));
	*ordinal = w->n_frames;
	if (!w->failed)
		w->failed = copy_run(w, from, first, count, why);
	else
		kp_fail(why, w->failed, "archive: an earlier write failed");
	return w->failed;
}
