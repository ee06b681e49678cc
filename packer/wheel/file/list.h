/* SPDX-License-Identifier: MIT */
/* The members of a wheel that is read, and all that is asked of them before one is decoded. */
#ifndef PACKER_WHEEL_FILE_LIST_H
#define PACKER_WHEEL_FILE_LIST_H

#include <zip.h>
#include "packer/wheel/zip/central.h"
#include "in.h"

struct wheel_list {
	struct wheel_member *members;
	size_t count;
	uint32_t *by_path; /* numbers of members, sorted bytewise by path */
};

/*
 * Read the members of ZIP, whose file has SIZE bytes and the directory CENTRAL.  See
 * wheel_in.h for what is refused.
 */
kpack_error_t wheel_list_read(struct wheel_list *list, zip_t *zip,
			      const struct central *central, uint64_t size,
			      struct kpackx_error *why);
void wheel_list_fini(struct wheel_list *list);

bool wheel_list_find(const struct wheel_list *list, struct kp_span path, size_t *member);
bool wheel_list_case_clash(const struct wheel_list *list, size_t *a, size_t *b);

/* For what copies members: libzip's own handle of a reader. */
struct zip *wheel_reader_zip(struct wheel_reader *r);

#endif
