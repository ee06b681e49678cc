/* SPDX-License-Identifier: MIT */
#include "unrecognised.h"
#include <stdio.h>
#include "packer/library/arch_name.h"
#include "packer/cli/report.h"

/* The number of files that are reported one by one. */
enum { REPORTED_MAX = 20 };

/* Get the target ID in the file's name, else in the name of the nearest directory. */
static void name_arch(const char *path, char out[KP_TARGET_TEXT_MAX])
{
	size_t end = strlen(path);

	while (end > 0) {
		const char *slash = memrchr(path, '/', end);
		size_t begin = slash ? (size_t)(slash + 1 - path) : 0;

		if (arch_of_name(
			    (struct kp_span){(const uint8_t *)path + begin, end - begin},
			    out))
			return;
		end = begin ? begin - 1 : 0;
	}
	snprintf(out, KP_TARGET_TEXT_MAX, "one GPU");
}

bool unrecognised(const struct scan *scan, size_t entry, char out[KP_TARGET_TEXT_MAX])
{
	const struct scan_entry *e = &scan->entries[entry];

	if (!scan->found.objects || !S_ISREG(e->mode) || e->input || e->note ||
	    e->converted || e->faulty || e->leftover || e->archive ||
	    scan->entries[e->first].input || !arch_in_path(e->relative))
		return false;
	name_arch(e->relative, out);
	return true;
}

void unrecognised_report(const struct scan *scan)
{
	char arch[KP_TARGET_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < scan->n_entries; i++)
		if (unrecognised(scan, i, arch) && ++n <= REPORTED_MAX)
			report_error(scan->entries[i].path,
				     "note: looks like a file for %s, no library is "
				     "known for it; it stays as it is",
				     arch);
	if (n > REPORTED_MAX)
		report_error(NULL,
			     "note: and %zu files more look like that; --json lists all",
			     n - REPORTED_MAX);
}
