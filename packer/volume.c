/* SPDX-License-Identifier: MIT */
#include "volume.h"
#include <stdio.h>
#include <stdlib.h>
#include "codec.h"

char *volume_file_name(const char *group, unsigned number, const char *stem)
{
	char part[16] = "", *file;

	if (number > 1)
		snprintf(part, sizeof(part), ".%u", number);
	return asprintf(&file, "%s%s%s.kpack", group, part, stem) < 0 ? NULL : file;
}

void volume_fini(struct volume *v)
{
	kp_writer_close(v->writer);
	content_table_fini(&v->contents);
	free(v->file);
}

static kpack_error_t scratch_reserve(uint8_t **buf, size_t *cap, uint64_t size,
				     struct kpackx_error *why)
{
	uint8_t *bigger;

	if (size <= *cap && *buf)
		return KPACK_SUCCESS;
	bigger = realloc(*buf, (size_t)size + 1);
	if (!bigger)
		return kp_fail_memory(why, size, "comparing objects");
	*buf = bigger;
	*cap = (size_t)size;
	return KPACK_SUCCESS;
}

void archive_scratch_fini(struct archive_scratch *s)
{
	free(s->stored);
	free(s->decoded);
	*s = (struct archive_scratch){0};
}

kpack_error_t volume_read_stored(struct volume *v, uint32_t ordinal,
				 struct archive_scratch *scratch, struct kp_span *out,
				 struct kpackx_error *why)
{
	uint64_t size = kp_writer_stored_size(v->writer, ordinal);

	KP_TRY(scratch_reserve(&scratch->stored, &scratch->stored_cap, size, why));
	KP_TRY(kp_writer_read_stored(v->writer, ordinal, scratch->stored, why));
	*out = (struct kp_span){scratch->stored, (size_t)size};
	return KPACK_SUCCESS;
}

kpack_error_t volume_equals(kpack_compression_t scheme, struct kp_span stored,
			    struct kp_span data, struct archive_scratch *scratch,
			    bool *equal, struct kpackx_error *why)
{
	if (scheme == KPACK_COMPRESSION_NOOP) {
		*equal = kp_span_eq(stored, data);
		return KPACK_SUCCESS;
	}
	KP_TRY(scratch_reserve(&scratch->decoded, &scratch->decoded_cap, data.size, why));
	KP_TRY(kp_zstd_decode(stored, scratch->decoded, data.size, why));
	*equal = kp_span_eq((struct kp_span){scratch->decoded, data.size}, data);
	return KPACK_SUCCESS;
}

static struct content content_of(const struct archive_object *o)
{
	struct content c = {.size = o->size, .chunk = o->chunk};

	memcpy(c.hash, o->hash, sizeof(c.hash));
	return c;
}

bool volume_find(const struct volume *v, const struct archive_object *o,
		 uint32_t *ordinal)
{
	struct content want = content_of(o);

	return content_table_find(&v->contents, &want, ordinal);
}

/*
 * Store bytes unless the same are there.  The encoder gives the same frame for the
 * same bytes, so frames are compared as they are.
 */
kpack_error_t volume_store(struct volume *v, struct archive_object *o, bool *shared,
			   struct kpackx_error *why)
{
	struct archive_scratch scratch = {0};
	struct content want = content_of(o);
	kpack_error_t err = KPACK_SUCCESS;
	uint32_t ordinal;

	*shared = false;
	if (content_table_find(&v->contents, &want, &ordinal) &&
	    kp_writer_stored_size(v->writer, ordinal) == o->stored.size) {
		struct kp_span there;

		err = volume_read_stored(v, ordinal, &scratch, &there, why);
		*shared = !err && kp_span_eq(there, o->stored);
	}
	if (!err && *shared)
		o->ordinal = ordinal;
	else if (!err)
		err = kp_writer_add_stored(v->writer, o->stored, &o->ordinal, why);
	if (!err && !*shared && !content_table_add(&v->contents, &want, o->ordinal))
		err = kp_fail_memory(why, sizeof(want), "a table of contents");
	archive_scratch_fini(&scratch);
	return err;
}
