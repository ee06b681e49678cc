/* SPDX-License-Identifier: MIT */
#include "runtimes.h"
#include <string.h>
#include "core/base/path.h"

void pack_runtimes_add(struct hip_runtimes *list, const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		if (S_ISREG(e->mode) && e->first == i &&
		    runtime_is_name(kp_path_name(e->relative)))
			runtimes_add(list, e->path);
	}
}
