/* SPDX-License-Identifier: MIT */
#include "layout.h"

static kpack_error_t missing(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "layout: not built");
}

kpack_error_t kp_layout_make(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
			     const bool *known, bool compute, struct kp_layout_bytes *out,
			     struct kpackx_error *why)
{
	(void)fat, (void)xxh3, (void)known, (void)compute, (void)out;
	return missing(why);
}

kpack_error_t kp_layout_parse(struct kp_span bytes, struct kp_layout *out,
			      struct kpackx_error *why)
{
	(void)bytes, (void)out;
	return missing(why);
}

void kp_layout_fini(struct kp_layout *layout)
{
	*layout = (struct kp_layout){0};
}

uint32_t kp_layout_index(const struct kp_layout *layout, uint32_t container)
{
	(void)layout;
	return container;
}

kpack_error_t kp_layout_plan(const struct kp_layout *layout,
			     const struct kp_layout_source *source,
			     struct kp_layout_plan *out, struct kpackx_error *why)
{
	(void)layout, (void)source, (void)out;
	return missing(why);
}

void kp_layout_plan_fini(struct kp_layout_plan *plan)
{
	*plan = (struct kp_layout_plan){0};
}

kpack_error_t kp_layout_write(const struct kp_layout *layout,
			      const struct kp_layout_plan *plan,
			      const struct kp_layout_source *source,
			      struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why)
{
	(void)layout, (void)plan, (void)source, (void)out, (void)offset;
	return missing(why);
}
