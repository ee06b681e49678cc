/* SPDX-License-Identifier: MIT */
#include "drop.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

enum { GONE = UINT32_MAX };

/* Move the keys of an object after the N keys that stay; MAP says where each key goes. */
static void move_keys(struct plan *plan, struct plan_object *o, uint32_t number,
		      uint32_t *map, size_t *n)
{
	uint32_t first = o->first_key;

	o->first_key = (uint32_t)*n;
	for (uint32_t k = first; k < first + o->n_keys; k++) {
		plan->keys[*n] = plan->keys[k];
		plan->keys[*n].object = number;
		map[k] = (uint32_t)(*n)++;
	}
}

static void move_objects(struct plan *plan, const bool *drop, uint32_t *map)
{
	size_t objects = 0, keys = 0;

	for (size_t i = 0; i < plan->n_objects; i++) {
		struct plan_object o = plan->objects[i];

		if (drop[i]) {
			plan->bytes -= o.input->images[o.image].size;
			continue;
		}
		move_keys(plan, &o, (uint32_t)objects, map, &keys);
		plan->objects[objects++] = o;
	}
	plan->n_objects = objects;
}

/* Keep the order of the keys that stay. */
static void renumber_keys(struct plan *plan, const uint32_t *map)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_keys; i++)
		if (map[plan->by_key[i]] != GONE)
			plan->by_key[n++] = map[plan->by_key[i]];
	plan->n_keys = n;
}

void plan_drop(struct plan *plan, const bool *drop)
{
	uint32_t *map = xmalloc(plan->n_keys * sizeof(*map));

	for (size_t i = 0; i < plan->n_keys; i++)
		map[i] = GONE;
	move_objects(plan, drop, map);
	renumber_keys(plan, map);
	free(map);
}
