/* SPDX-License-Identifier: MIT */
#include "msgpack_names.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "core/base/msgpack_read.h"

struct reader {
	struct kp_mp m;
	const char *key;
	struct msgpack_names *out;
};

static void add_name(struct msgpack_names *x, struct kp_span name)
{
	xgrow(&x->items, x->count, &x->cap, sizeof(*x->items));
	x->items[x->count++] = name;
}

/* Walk a value.  WANTED: if it is a string, it is a name. */
static bool walk_value(struct reader *r, bool wanted, unsigned depth)
{
	enum kp_mp_type type = kp_mp_peek(&r->m);
	struct kp_mp_value v;
	struct kp_span name;

	if (type == KP_MP_STR && wanted) {
		if (!kp_mp_str(&r->m, &name))
			return false;
		add_name(r->out, name);
		return true;
	}
	if (type != KP_MP_MAP && type != KP_MP_ARRAY)
		return kp_mp_skip(&r->m);
	if (depth == KP_MSGPACK_DEPTH_MAX)
		return kp_mp_fault(&r->m, "nested too deeply");
	kp_mp_next(&r->m, &v);
	for (uint64_t i = 0; i < v.num && !r->m.fault; i++) {
		bool mine = !r->key;

		if (type == KP_MP_MAP && kp_mp_peek(&r->m) == KP_MP_STR) {
			if (!kp_mp_str(&r->m, &name))
				return false;
			mine = mine || kp_span_is(name, r->key);
		} else if (type == KP_MP_MAP) {
			kp_mp_skip(&r->m);
		}
		walk_value(r, mine, depth + 1);
	}
	return !r->m.fault;
}

kpack_error_t msgpack_names_read(struct kp_span bytes, const char *key,
				 struct msgpack_names *out, struct kpackx_error *why)
{
	struct reader r = {.m = kp_mp_over(bytes), .key = key, .out = out};

	*out = (struct msgpack_names){0};
	if (kp_mp_peek(&r.m) != KP_MP_MAP)
		kp_mp_fault(&r.m, "not a map");
	walk_value(&r, false, 0);
	return r.m.fault ? kp_mp_fail(&r.m, key ? key : "the map", why) : KPACK_SUCCESS;
}

void msgpack_names_fini(struct msgpack_names *names)
{
	free(names->items);
	*names = (struct msgpack_names){0};
}
