/* SPDX-License-Identifier: MIT */
#include "flatzip.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

/* The end record and the longest comment after it, as many bytes as AOTriton reads. */
enum { END = 22, TAIL = END + 65536 };

/* Find the last end record whose comment ends with the file; NULL: none. */
static const uint8_t *find_end(struct kp_span tail)
{
	for (size_t at = tail.size; at-- > 0;)
		if (kp_range_ok(tail.size, at, END) &&
		    memcmp(tail.data + at, "PK\5\6", 4) == 0 &&
		    kp_le16(tail.data + at + 20) == tail.size - at - END)
			return tail.data + at;
	return NULL;
}

static kpack_error_t read_end(const struct kp_source *source, struct kp_span tail,
			      unsigned *members, struct kpackx_error *why)
{
	const uint8_t *end = find_end(tail);
	uint64_t at;

	if (!end)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zip: no end record in the last %zu bytes: cut short",
			       tail.size);
	at = source->size - tail.size + (uint64_t)(end - tail.data);
	*members = kp_le16(end + 10);
	if (!kp_range_ok(at, kp_le32(end + 16), kp_le32(end + 12)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"zip: a directory of %u bytes at %u, but its end is at %llu",
			kp_le32(end + 12), kp_le32(end + 16), (unsigned long long)at);
	return KPACK_SUCCESS;
}

kpack_error_t flatzip_read(const struct kp_source *source, unsigned *members,
			   struct kpackx_error *why)
{
	size_t n = source->size < TAIL ? (size_t)source->size : TAIL;
	uint8_t *tail = xmalloc(n);
	kpack_error_t err = kp_source_read(source, source->size - n, tail, n, why);

	if (!err)
		err = read_end(source, (struct kp_span){tail, n}, members, why);
	free(tail);
	return err;
}
