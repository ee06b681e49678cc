/* SPDX-License-Identifier: MIT */
/* Whether an archive has code for a GPU. */
#include "archive.h"

bool kp_archive_serves(const struct kpack_archive *a, const struct kp_target *gpu)
{
	const uint8_t *last =
		NULL; /* equal archs share one text, and are often adjacent */
	size_t n = kp_archive_entry_count(a);

	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;
		struct kp_target code;

		kp_archive_entry(a, i, &info);
		if (info.arch.data == last)
			continue;
		last = info.arch.data;
		if (!kp_target_parse(info.arch, &code, NULL) &&
		    !kp_target_neutral(&code) && kp_target_loadable(gpu, &code))
			return true;
	}
	return false;
}
