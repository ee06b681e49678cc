/* SPDX-License-Identifier: MIT */
#include "aks2.h"

enum { HEAD = 16, RECORD_MIN = 5 * 4 + 1, TAIL = 1024 };

/* An xz stream has a head and a foot of 12 bytes each, and an index between them. */
enum { STREAM_MIN = 32 };

static kpack_error_t check_numbers(const struct aks2 *a, struct kpackx_error *why)
{
	if (a->directory_size > a->decoded_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: a directory of %u bytes in %u decoded ones",
			       a->directory_size, a->decoded_size);
	if (a->kernel_count > a->directory_size / RECORD_MIN)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: %u kernels in a directory of %u bytes",
			       a->kernel_count, a->directory_size);
	return KPACK_SUCCESS;
}

/* Zeros in groups of four may follow an xz stream: skip those in the last TAIL bytes. */
static kpack_error_t check_foot(const struct kp_source *source, struct kpackx_error *why)
{
	uint8_t tail[TAIL];
	size_t n = source->size - HEAD < TAIL ? (size_t)source->size - HEAD : TAIL;

	KP_TRY(kp_source_read(source, source->size - n, tail, n, why));
	while (n >= 4 && kp_le32(tail + n - 4) == 0)
		n -= 4;
	if (n >= STREAM_MIN && memcmp(tail + n - 2, "YZ", 2) == 0)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "aks2: the xz stream has no end: cut short at %llu bytes",
		       (unsigned long long)source->size);
}

static kpack_error_t check_stream(const struct kp_source *source, const uint8_t *stream,
				  struct kpackx_error *why)
{
	if (memcmp(stream,
		   "\xfd"
		   "7zXZ",
		   6) == 0)
		return check_foot(source, why);
	/* older LZMA has no mark of its end */
	if (stream[0] == 0x5d && stream[1] == 0 && stream[2] == 0)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "aks2: no xz stream behind the header, but %02x%02x%02x%02x",
		       stream[0], stream[1], stream[2], stream[3]);
}

kpack_error_t aks2_read(const struct kp_source *source, struct aks2 *out,
			struct kpackx_error *why)
{
	uint8_t head[HEAD + 6];

	if (source->size < sizeof(head))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: %llu bytes hold no header",
			       (unsigned long long)source->size);
	KP_TRY(kp_source_read(source, 0, head, sizeof(head), why));
	if (memcmp(head, "AKS2", 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: begins with %02x%02x%02x%02x, not with \"AKS2\"",
			       head[0], head[1], head[2], head[3]);
	*out = (struct aks2){kp_le32(head + 4), kp_le32(head + 8), kp_le32(head + 12)};
	KP_TRY(check_numbers(out, why));
	return check_stream(source, head + HEAD, why);
}
