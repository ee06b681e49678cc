/* SPDX-License-Identifier: MIT */
/*
 * LLVM bitcode: "BC" C0 DE, or that behind a wrapper, which alone says where it ends:
 *
 *	0   u32   0x0b17c0de
 *	4   u32   version
 *	8   u32   offset of the bitcode
 *	12  u32   its size
 *	16  u32   processor
 */
#include <inttypes.h>
#include "bitcode_triple.h"
#include "object.h"

#define WRAPPER_SIZE 20

static const uint8_t raw_magic[] = {'B', 'C', 0xc0, 0xde};
static const uint8_t wrapper_magic[] = {0xde, 0xc0, 0x17, 0x0b};

static bool probe(struct kp_span head)
{
	return kp_span_starts(head, raw_magic, sizeof(raw_magic)) ||
	       kp_span_starts(head, wrapper_magic, sizeof(wrapper_magic));
}

/* Where the bitcode is in SRC; without a wrapper it is all of it. */
static kpack_error_t unwrap(const struct kp_source *src, struct kp_source *out,
			    uint64_t *end, struct kpackx_error *why)
{
	uint8_t b[WRAPPER_SIZE];
	uint64_t offset, size;

	*out = *src;
	*end = src->size;
	KP_TRY(kp_source_read(src, 0, b, sizeof(wrapper_magic), why));
	if (memcmp(b, wrapper_magic, sizeof(wrapper_magic)) != 0)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(src, 0, b, sizeof(b), why));
	offset = kp_le32(b + 8);
	size = kp_le32(b + 12);
	if (offset < sizeof(b) || !kp_source_sub(src, offset, size, out))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "wrapper of bitcode: %" PRIu64 " bytes at offset %" PRIu64
			       " are not behind it and before the end at %" PRIu64,
			       size, offset, src->size);
	*end = offset + size;
	return KPACK_SUCCESS;
}

static kpack_error_t parse(const struct kp_source *src, uint64_t off,
			   struct kp_container *c, struct kp_containers *list,
			   struct kpackx_error *why)
{
	struct kp_span none = {NULL, 0};
	struct kp_source rest, code;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(unwrap(&rest, &code, &c->size, why));
	c->payload_size = c->size;
	return kp_containers_add_image(list, c, none, 0, c->size, why);
}

static kpack_error_t describe(const struct kp_source *src, struct kp_object *out,
			      struct kpackx_error *why)
{
	char triple[KP_TRIPLE_MAX];
	struct kp_source code;
	uint64_t end;

	KP_TRY(unwrap(src, &code, &end, why));
	if (!kp_bitcode_triple(&code, triple))
		return KPACK_SUCCESS;
	return kp_pairs_print(&out->facts, why, "triple", "%s", triple);
}

const struct kp_format kp_format_bitcode = {
	.name = "bitcode",
	.type = "bc",
	.probe = probe,
	.parse = parse,
	.describe = describe,
};
