/* SPDX-License-Identifier: MIT */
#include "runtimes.h"
#include "core/base/text.h"
#include "packer/cli/report.h"

bool runtimes_judge(struct hip_runtimes *list, const char *input, bool refuse)
{
	char path[4096];

	if (!list->count)
		runtimes_add_system(list);
	if (!list->count || runtimes_one_takes(list))
		return true;
	kp_text_escape(kp_span_str(list->items[0].path), path, sizeof(path));
	if (refuse)
		report_error(
			input,
			"not converted, because the HIP runtime %s refuses converted "
			"binaries: with --runtime any they are converted, and need "
			"libkpack_hip(7) or 'kpack run' to have GPU code; 'kpack "
			"thin' saves space without converting them",
			path);
	else
		report_error(
			input,
			"warning: the HIP runtime %s refuses converted binaries: they "
			"need libkpack_hip(7) or 'kpack run' to have GPU code",
			path);
	return false;
}
