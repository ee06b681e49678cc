/* SPDX-License-Identifier: MIT */
/* Reads arrays and alias groups in the names of cuTile kernels. */
#include "cutile_reader.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"

static kpack_error_t read_group(struct kp_cutile_reader *p)
{
	size_t at = p->pos;
	uint64_t id;

	KP_TRY(kp_cutile_read_number(p, 16, UINT32_MAX - 1, "an alias group", &id));
	if (id > p->groups)
		return kp_cutile_fail(p, at, "alias group %llu is used before group %u",
				      (unsigned long long)id, p->groups);
	if (p->n_ids && id <= p->ids[p->n_ids - 1])
		return kp_cutile_fail(p, at, "alias group %llu does not follow group %u",
				      (unsigned long long)id, p->ids[p->n_ids - 1]);
	if (!kp_grow(&p->ids, p->n_ids, &p->ids_cap, sizeof(*p->ids)))
		return kp_cutile_no_memory(p);
	p->ids[p->n_ids++] = (uint32_t)id;
	p->groups += id == p->groups;
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_groups(struct kp_cutile_reader *p,
				    struct kpackx_constraint *c)
{
	uint32_t *groups;

	p->n_ids = 0;
	while (kp_cutile_take(p, 'g'))
		KP_TRY(read_group(p));
	if (p->n_ids == 0)
		return KPACK_SUCCESS;
	groups = kp_arena_alloc(p->arena, p->n_ids * sizeof(*groups));
	if (!groups)
		return kp_cutile_no_memory(p);
	memcpy(groups, p->ids, p->n_ids * sizeof(*groups));
	c->alias_groups = groups;
	c->n_alias_groups = p->n_ids;
	return KPACK_SUCCESS;
}

/* The predicates that one group states, and its offset. */
struct group {
	size_t at;
	struct kpackx_axis axis;
};

static kpack_error_t read_group_shape(struct kp_cutile_reader *p,
				      struct kpackx_axis *axis)
{
	size_t at = p->pos;

	if (kp_cutile_take(p, 's')) {
		if (p->convention < 2)
			return kp_cutile_fail(p, at,
					      "static shapes need calling convention 2");
		axis->has_shape_constant = true;
		KP_TRY(kp_cutile_read_int64(p, "a shape", &axis->shape_constant));
		if (axis->shape_constant < 0)
			return kp_cutile_fail(p, at + 1, "a shape is %lld, below 0",
					      (long long)axis->shape_constant);
	}
	if (kp_cutile_take(p, 'i'))
		KP_TRY(kp_cutile_read_divisor(p, "a shape's divisor",
					      &axis->shape_divisible_by));
	return KPACK_SUCCESS;
}

static kpack_error_t read_group_stride(struct kp_cutile_reader *p,
				       struct kpackx_axis *axis)
{
	if (kp_cutile_take(p, 't')) {
		axis->has_stride_constant = true;
		KP_TRY(kp_cutile_read_int64(p, "a stride", &axis->stride_constant));
	}
	if (kp_cutile_take(p, 'v'))
		KP_TRY(kp_cutile_read_divisor(p, "a stride's divisor",
					      &axis->stride_divisible_by));
	if (kp_cutile_take(p, 'l')) {
		axis->has_stride_lower_bound = true;
		KP_TRY(kp_cutile_read_int64(p, "a stride's lower bound",
					    &axis->stride_lower_bound));
	}
	return KPACK_SUCCESS;
}

/* Add GROUP's predicates to dimension I. */
static kpack_error_t apply_group(struct kp_cutile_reader *p, const struct group *group,
				 unsigned i, struct kpackx_axis *axis)
{
	const struct kpackx_axis *g = &group->axis;

	if ((g->has_shape_constant && axis->has_shape_constant) ||
	    (g->shape_divisible_by && axis->shape_divisible_by) ||
	    (g->has_stride_constant && axis->has_stride_constant) ||
	    (g->stride_divisible_by && axis->stride_divisible_by) ||
	    (g->has_stride_lower_bound && axis->has_stride_lower_bound))
		return kp_cutile_fail(p, group->at,
				      "dimension %u has such a predicate already", i);
	axis->has_shape_constant |= g->has_shape_constant;
	axis->has_stride_constant |= g->has_stride_constant;
	axis->has_stride_lower_bound |= g->has_stride_lower_bound;
	/* at most one of the two states a predicate; the other one has 0 */
	axis->shape_constant += g->shape_constant;
	axis->shape_divisible_by += g->shape_divisible_by;
	axis->stride_constant += g->stride_constant;
	axis->stride_divisible_by += g->stride_divisible_by;
	axis->stride_lower_bound += g->stride_lower_bound;
	if (axis->has_shape_constant && axis->shape_divisible_by)
		return kp_cutile_fail(
			p, group->at,
			"dimension %u has a constant shape and a divisor of it", i);
	if (axis->has_stride_constant &&
	    (axis->stride_divisible_by || axis->has_stride_lower_bound))
		return kp_cutile_fail(
			p, group->at,
			"dimension %u has a constant stride and a predicate of it", i);
	return KPACK_SUCCESS;
}

static kpack_error_t read_mask(struct kp_cutile_reader *p, uint32_t ndim, uint64_t *mask)
{
	size_t at = p->pos;
	uint64_t before = *mask;

	KP_TRY(kp_cutile_read_number(p, 16, UINT64_MAX, "a mask", mask));
	if (*mask == 0)
		return kp_cutile_fail(p, at, "a mask of no dimension");
	if (ndim < 64 && *mask >> ndim)
		return kp_cutile_fail(p, at, "mask %llx has dimensions, and the array %u",
				      (unsigned long long)*mask, ndim);
	if (*mask <= before)
		return kp_cutile_fail(p, at, "mask %llx does not follow %llx",
				      (unsigned long long)*mask,
				      (unsigned long long)before);
	return KPACK_SUCCESS;
}

static kpack_error_t read_predicates(struct kp_cutile_reader *p, uint32_t ndim,
				     struct kpackx_axis *axes)
{
	uint64_t mask = 0;

	while (kp_cutile_peek(p, 0) == '_' && kp_cutile_is_hex(kp_cutile_peek(p, 1))) {
		struct group group = {.at = ++p->pos};
		size_t begin;

		KP_TRY(read_mask(p, ndim, &mask));
		begin = p->pos;
		KP_TRY(read_group_shape(p, &group.axis));
		KP_TRY(read_group_stride(p, &group.axis));
		if (p->pos == begin)
			return kp_cutile_unexpected(p, begin, "a predicate (s i t v l)");
		for (unsigned i = 0; i < ndim; i++)
			if (mask >> i & 1)
				KP_TRY(apply_group(p, &group, i, &axes[i]));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_extras(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	size_t begin;

	c->index_dtype = KPACKX_DTYPE_INT32;
	if (kp_cutile_peek(p, 0) != '_' || kp_cutile_peek(p, 1) < 'a' ||
	    kp_cutile_peek(p, 1) > 'z')
		return KPACK_SUCCESS;
	begin = ++p->pos;
	if (kp_cutile_take(p, 'p'))
		KP_TRY(kp_cutile_read_divisor(p, "a base address's divisor",
					      &c->base_addr_divisible_by));
	KP_TRY(kp_cutile_read_groups(p, c));
	c->may_alias = kp_cutile_take(p, 'i');
	if (kp_cutile_take(p, 'u'))
		c->index_dtype = KPACKX_DTYPE_UINT32;
	else if (kp_cutile_take(p, 'w'))
		c->index_dtype = KPACKX_DTYPE_INT64;
	if (p->pos == begin)
		return kp_cutile_unexpected(p, begin, "an array's property (p g i u w)");
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_array(struct kp_cutile_reader *p,
				   struct kpackx_constraint *c)
{
	struct kpackx_axis *axes;
	uint64_t ndim;

	KP_TRY(kp_cutile_read_number(p, 10, KP_CUTILE_NDIM_MAX,
				     "the number of dimensions", &ndim));
	KP_TRY(kp_cutile_read_dtype(p, &c->dtype));
	c->ndim = (uint32_t)ndim;
	axes = kp_arena_alloc(p->arena, (size_t)ndim * sizeof(*axes));
	if (!axes)
		return kp_cutile_no_memory(p);
	c->axes = axes;
	KP_TRY(read_predicates(p, c->ndim, axes));
	return read_extras(p, c);
}
