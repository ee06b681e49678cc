/* SPDX-License-Identifier: MIT */
/* What stands under the names of a run's output: an earlier run's wheels, or others. */
#ifndef PACKER_WHEEL_SPLIT_EARLIER_H
#define PACKER_WHEEL_SPLIT_EARLIER_H

#include "split_write.h"

/*
 * Check that OLD, a file or an unpacked wheel, is what an earlier run wrote under the name
 * of a file of KIND: it is marked so, and has no member that the wheel NOW has not.  NOW is
 * the path of this run's; NULL: it is not written yet, and only the mark is looked at.
 * INVALID_ARGUMENT: it is not; the error names OLD and what is wrong.
 */
kpack_error_t wheel_earlier_check(const char *old, enum wheel_file_kind kind,
				  const char *now, struct kpackx_error *why);

/*
 * Report the device wheels in DIR for the host wheel of W that are not among FILES: an
 * earlier run's, for targets that this run has not.
 */
void wheel_earlier_report(const char *dir, const struct wheel_write *w,
			  const struct wheel_files *files);

#endif
