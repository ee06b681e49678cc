/* SPDX-License-Identifier: MIT */
#include "kernel.h"

static const struct number {
	const char *label, *key;
	size_t at; /* offset in struct kp_kernel */
} numbers[] = {
	{"VGPRs", "vgprs", offsetof(struct kp_kernel, vgprs)},
	{"AGPRs", "agprs", offsetof(struct kp_kernel, agprs)},
	{"SGPRs", "sgprs", offsetof(struct kp_kernel, sgprs)},
	{"LDS", "lds", offsetof(struct kp_kernel, lds)},
	{"scratch", "scratch", offsetof(struct kp_kernel, scratch)},
	{"kernarg", "kernarg", offsetof(struct kp_kernel, kernarg)},
	{"wavefront", "wavefront", offsetof(struct kp_kernel, wavefront)},
	{"threads", "threads", offsetof(struct kp_kernel, threads)},
};

const size_t inspect_kernel_numbers = KP_COUNT(numbers);

int64_t inspect_kernel_number(const struct kp_kernel *kernel, size_t i)
{
	int64_t value;

	memcpy(&value, (const char *)kernel + numbers[i].at, sizeof(value));
	return value;
}

const char *inspect_kernel_label(size_t i)
{
	return numbers[i].label;
}

const char *inspect_kernel_key(size_t i)
{
	return numbers[i].key;
}
