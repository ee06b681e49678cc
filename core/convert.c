/* SPDX-License-Identifier: MIT */
#include "convert.h"

static kpack_error_t not_yet(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "converting is not built yet");
}

kpack_error_t kp_convert_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			       struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat;
	return not_yet(why);
}

kpack_error_t kp_convert(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_convert_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat, (void)options, (void)out;
	return not_yet(why);
}

kpack_error_t kp_converted_find(int fd, uint64_t size, const struct kp_fatbin *fat,
				struct kp_converted *out, struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat, (void)out;
	return not_yet(why);
}

kpack_error_t kp_convert_set(int fd, uint64_t size, const struct kp_fatbin *fat,
			     struct kp_span marker, struct kp_outfile *out,
			     struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat, (void)marker, (void)out;
	return not_yet(why);
}

kpack_error_t kp_convert_normalise(int fd, uint64_t size, const struct kp_fatbin *fat,
				   struct kp_outfile *out, bool *changed,
				   struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat, (void)out, (void)changed;
	return not_yet(why);
}

kpack_error_t kp_restore(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_restore_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	(void)fd, (void)size, (void)fat, (void)options, (void)out;
	return not_yet(why);
}
