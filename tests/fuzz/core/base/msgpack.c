/* SPDX-License-Identifier: MIT */
/* The MessagePack cursor: reading heads one by one agrees with skipping whole values. */
#include "core/base/msgpack_read.h"
#include "core/base/bounds.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_mp heads = kp_mp_over((struct kp_span){data, size}), whole = heads;
	struct kpackx_error why = {0};
	struct kp_mp_value v;
	bool skipped;

	while (heads.pos != heads.end) {
		enum kp_mp_type peeked = kp_mp_peek(&heads);
		struct kp_mp again = heads;
		struct kp_mp number = heads;
		struct kp_span s;
		uint64_t n;

		if (!kp_mp_next(&heads, &v)) {
			assert(v.type == KP_MP_BAD && heads.fault);
			break;
		}
		assert(v.type == peeked);
		assert(kp_mp_str(&again, &s) == (v.type == KP_MP_STR));
		assert(v.type != KP_MP_STR ||
		       (s.data == v.span.data && s.size == v.span.size));
		assert(kp_mp_uint(&number, &n) == (v.type == KP_MP_UINT));
		assert(v.type != KP_MP_UINT || (n == v.num && number.pos == heads.pos));
		if (v.type == KP_MP_STR || v.type == KP_MP_BIN || v.type == KP_MP_EXT)
			assert(v.span.data >= data && v.span.size <= size &&
			       v.span.data + v.span.size == heads.pos);
		if (v.type == KP_MP_ARRAY || v.type == KP_MP_MAP)
			assert(v.num <= size);
	}
	skipped = kp_mp_skip(&whole);
	assert(skipped == !whole.fault && kp_mp_offset(&whole) <= size);
	assert(kp_mp_fail(&whole, "fuzz", &why) == KPACK_ERROR_MSGPACK_PARSE_FAILED);
	return 0;
}
