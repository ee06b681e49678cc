/* SPDX-License-Identifier: MIT */
#include "pack_check.h"
#include "closure.h"
#include "command.h"
#include "report.h"

static void tell(void *arg, const char *path, const char *text)
{
	(void)arg;
	report_error(path, "%s", text);
}

int pack_check(const struct pack_args *args, const struct scan *scan)
{
	struct kpackx_error why = {0};
	size_t faults = 0;
	kpack_error_t err;

	if (!args->check || !scan->found.objects)
		return EXIT_OK;
	err = closure_check(&scan->found, tell, NULL, &faults, &why);
	if (err)
		report_why(args->input, &why);
	if (err == KPACK_ERROR_NOT_IMPLEMENTED && !faults)
		return EXIT_USAGE;
	if (faults)
		report_error(args->input, "%zu faults of kernel databases: nothing is packed",
			     faults);
	return err || faults ? EXIT_FAULT : EXIT_OK;
}
