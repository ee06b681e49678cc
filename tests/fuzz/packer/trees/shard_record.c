/* SPDX-License-Identifier: MIT */
/* Shard records, with the checksum corrected so that the parser gets past it. */
#include "packer/trees/shard_record.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct shard_record *r)
{
	for (size_t i = 0; i < r->n_binaries; i++) {
		struct kp_mp events = kp_mp_over(r->binaries[i].events);
		struct shard_event e;
		bool object = false;

		while (shard_event_next(&events, &e)) {
			assert(object || !e.is_entry);
			object = true;
		}
		assert(!events.fault && events.pos == events.end);
	}
	for (size_t i = 0; i < r->n_items; i++)
		assert(r->items[i].path[0] != '/' && !strstr(r->items[i].path, "//"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t end[] = {0x92, 0xa1, 'z', 0xc4, 16};
	uint8_t *bytes = malloc(size + sizeof(end) + 16);
	struct kpackx_error why = {0};
	struct kp_hash sum = kp_hash_of(data, size);
	struct shard_record r;

	assert(bytes);
	memcpy(bytes, data, size);
	memcpy(bytes + size, end, sizeof(end));
	memcpy(bytes + size + sizeof(end), sum.bytes, sizeof(sum.bytes));
	if (shard_record_parse((struct kp_span){bytes, size + sizeof(end) + 16}, &r,
			       &why))
		assert(why.text[0]);
	else
		walk(&r);
	shard_record_fini(&r);
	free(bytes);
	return 0;
}
