/* SPDX-License-Identifier: MIT */
#include "host_moves.h"
#include <stdlib.h>
#include "host_hash.h"
#include "packer/cli/xalloc.h"

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return KP_ORDER(x, y);
}

static bool has_value(const int64_t *list, size_t n, int64_t value)
{
	return bsearch(&value, list, n, sizeof(*list), by_value) != NULL;
}

static bool add_move(struct host_moves *m, uint64_t a, uint64_t b)
{
	int64_t by = (int64_t)(b - a);

	if (has_value(m->by, m->count, by))
		return true;
	if (m->count == HOST_MOVES_MAX)
		return false;
	m->by[m->count++] = by;
	qsort(m->by, m->count, sizeof(*m->by), by_value);
	return true;
}

static bool add_moves(struct host_moves *m, const struct host_sections *a,
		      const struct host_sections *b)
{
	bool ok = add_move(m, 0, 0) &&
		  add_move(m, a->fatbin_address, b->fatbin_address) &&
		  add_move(m, a->marker_address, b->marker_address);

	for (size_t i = 0; ok && i < a->count; i++)
		if (a->items[i].flags & SHF_ALLOC)
			ok = add_move(m, a->items[i].addr, b->items[i].addr);
	return ok;
}

static void find_between(struct host_moves *m)
{
	m->between = xcalloc(m->count * m->count, sizeof(*m->between));
	for (size_t i = 0; i < m->count; i++)
		for (size_t j = 0; j < m->count; j++)
			m->between[m->n_between++] =
				(int64_t)((uint64_t)m->by[i] - (uint64_t)m->by[j]);
	qsort(m->between, m->n_between, sizeof(*m->between), by_value);
}

bool host_moves_make(const struct host_sections *a, const struct host_sections *b,
		     struct host_moves *out)
{
	*out = (struct host_moves){.machine = a->binary->fat.elf.machine};
	if (!add_moves(out, a, b))
		return false;
	find_between(out);
	return true;
}

void host_moves_fini(struct host_moves *m)
{
	free(m->between);
	*m = (struct host_moves){0};
}

/* --- explanations of a difference -------------------------------------------------------- */

/* Whether the difference is in an aligned 64-bit address of something that moved. */
static bool is_address(const struct host_moves *m, const struct host_bytes *s, size_t at,
		       size_t *end)
{
	size_t back = (size_t)((s->base + at) % 8);
	size_t from = at - back;

	if (back > at || !kp_range_ok(s->a.size, from, 8))
		return false;
	*end = from + 8;
	return has_value(
		m->by, m->count,
		(int64_t)(kp_le64(s->b.data + from) - kp_le64(s->a.data + from)));
}

/*
 * Whether the difference is in a 32-bit distance or address, aligned or not.  The lowest
 * bytes of the change may be zero, so the difference can begin in the middle of the
 * value.
 */
static bool is_distance(const struct host_moves *m, const struct host_bytes *s, size_t at,
			size_t *end)
{
	for (size_t back = 0; back < 4 && back <= at; back++) {
		size_t from = at - back;
		uint32_t by;

		if (!kp_range_ok(s->a.size, from, 4))
			continue;
		by = kp_le32(s->b.data + from) - kp_le32(s->a.data + from);
		*end = from + 4;
		if (has_value(m->between, m->n_between, (int32_t)by))
			return true;
	}
	return false;
}

/* AArch64 instructions with a part of an address as operand, and the operand's bits. */
static const struct {
	uint32_t mask, value, operand;
} aarch64[] = {
	{0x1f000000, 0x10000000, 0x60ffffe0}, /* adr, adrp */
	{0x7f800000, 0x11000000, 0x003ffc00}, /* add, immediate */
	{0x7c000000, 0x14000000, 0x03ffffff}, /* b, bl */
	{0x3b000000, 0x39000000, 0x003ffc00}, /* ldr, str: unsigned offset */
	{0x3b000000, 0x18000000, 0x00ffffe0}, /* ldr: literal */
};

static bool is_instruction(const struct host_bytes *s, size_t at, size_t *end)
{
	size_t back = (size_t)((s->base + at) % 4), from = at - back;
	uint32_t a, b;

	if (back > at || !kp_range_ok(s->a.size, from, 4))
		return false;
	*end = from + 4;
	a = kp_le32(s->a.data + from);
	b = kp_le32(s->b.data + from);
	for (size_t i = 0; i < KP_COUNT(aarch64); i++)
		if ((a & aarch64[i].mask) == aarch64[i].value)
			return ((a ^ b) & ~aarch64[i].operand) == 0;
	return false;
}

static bool is_hash(const struct host_bytes *s, size_t at, size_t *end)
{
	size_t a, b;

	if (!host_hash_covers(s->a, at, &a) || !host_hash_covers(s->b, at, &b) || a != b)
		return false;
	*end = a + HOST_HASH_SIZE;
	return true;
}

bool host_moves_explain(const struct host_moves *m, const struct host_bytes *bytes,
			size_t at, size_t *end)
{
	/* if nothing moved, only a hash may differ */
	if (m->count > 1) {
		if (is_address(m, bytes, at, end) || is_distance(m, bytes, at, end))
			return true;
		if (m->machine == EM_AARCH64 && bytes->code &&
		    is_instruction(bytes, at, end))
			return true;
	}
	return is_hash(bytes, at, end);
}
