/* SPDX-License-Identifier: MIT */
#include "runtimes.h"
#include <string.h>
#include "core/base/text.h"
#include "packer/cli/exit.h"
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

bool runtimes_judge_compressed(struct hip_runtimes *list)
{
	static const char *const reasons[] = {
		[BUNDLES_REFUSED] =
			"this HIP runtime does not read compressed bundles: leave out "
			"--compress; or add --runtime any and use HIP 7.2 or later",
		[BUNDLES_CONFUSED] =
			"this HIP runtime does not find the kernels of compressed "
			"bundles, "
			"because the cache of libamd_comgr 7.0.2 takes one bundle for "
			"another: leave out --compress; use a later libamd_comgr; or add "
			"--runtime any and run all programs with AMD_COMGR_CACHE=0",
	};
	bool fine = true;

	if (!list->count)
		runtimes_add_system(list);
	for (size_t i = 0; i < list->count; i++) {
		enum runtime_bundles bundles = runtime_bundles(&list->items[i]);

		if (bundles == BUNDLES_READ)
			continue;
		report_error(list->items[i].path, "%s", reasons[bundles]);
		fine = false;
	}
	return fine;
}

int runtime_take_any(const struct options *o, const struct option_help *row, void *slot)
{
	*(bool *)slot = strcmp(o->arg, "any") == 0;
	return *(bool *)slot ? EXIT_OK
			     : options_usage(o->help, "--%s %s: not any", row->long_name,
					     o->arg);
}
