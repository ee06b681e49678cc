/* SPDX-License-Identifier: MIT */
/* List the members of a wheel, and check them before any of them is decoded. */
#ifndef PACKER_WHEEL_FILE_LIST_H
#define PACKER_WHEEL_FILE_LIST_H

#include "zip_central.h"
#include "wheel_in.h"

struct wheel_list {
	struct wheel_member *members;
	size_t count;
	uint32_t *by_path; /* indices of members, sorted bytewise by path */
};

/*
 * List the members of CENTRAL, the directory of a file of SIZE bytes.  file/in.h says
 * what is refused.
 */
kpack_error_t wheel_list_read(struct wheel_list *list, const struct central *central,
			      uint64_t size, struct kpackx_error *why);
void wheel_list_fini(struct wheel_list *list);

bool wheel_list_find(const struct wheel_list *list, struct kp_span path, size_t *member);

#endif
