/* SPDX-License-Identifier: MIT */
/*
 * LLVM bitcode: "BC" C0 DE, plain or in a wrapper; only a wrapper states where it ends.
 */
#include "bitcode_triple.h"
#include "bitstream.h"
#include "object.h"

static const uint8_t raw_magic[] = {'B', 'C', 0xc0, 0xde};
static const uint8_t wrapper_magic[] = {0xde, 0xc0, 0x17, 0x0b};

static bool probe_bitcode(struct kp_span head)
{
	return kp_span_starts(head, raw_magic, sizeof(raw_magic)) ||
	       kp_span_starts(head, wrapper_magic, sizeof(wrapper_magic));
}

static kpack_error_t parse_bitcode(const struct kp_source *src, uint64_t off,
				   struct kp_container *c, struct kp_containers *list,
				   struct kpackx_error *why)
{
	struct kp_span none = {NULL, 0};
	struct kp_source rest, code;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_bitcode_unwrap(&rest, &code, &c->size, why));
	c->payload_size = c->size;
	return kp_containers_add_image(list, c, none, 0, c->size, why);
}

static kpack_error_t describe_bitcode(const struct kp_source *src, struct kp_object *out,
				      struct kpackx_error *why)
{
	char triple[KP_TRIPLE_MAX];
	struct kp_source code;
	uint64_t end;

	KP_TRY(kp_bitcode_unwrap(src, &code, &end, why));
	if (!kp_bitcode_triple(&code, triple))
		return KPACK_SUCCESS;
	return kp_pairs_print(&out->facts, why, "triple", "%s", triple);
}

const struct kp_format kp_format_bitcode = {
	.name = "bitcode",
	.type = "bc",
	.probe = probe_bitcode,
	.parse = parse_bitcode,
	.describe = describe_bitcode,
};
