/* SPDX-License-Identifier: MIT */
#include "pack_check.h"
#include "closure.h"
#include "command.h"
#include "report.h"
#include "whole_tree.h"

static void tell(void *arg, const char *path, const char *text)
{
	(void)arg;
	report_error(path, "%s", text);
}

/* What an earlier run has packed in place has left the tree, but it is there. */
static kpack_error_t check_in_place(const struct pack_args *args, size_t *faults,
				    struct kpackx_error *why)
{
	char *paths[] = {(char *)args->input};
	struct whole_tree tree;
	kpack_error_t err = whole_tree_open(1, paths, &args->libraries, &tree, why);

	if (!err)
		err = closure_check(&tree.found, tell, NULL, faults, why);
	*faults += tree.n_faults;
	whole_tree_close(&tree);
	return err;
}

int pack_check(const struct pack_args *args, const struct scan *scan)
{
	bool whole = args->mode == PACK_IN_PLACE && !args->force && !args->prefix[0];
	struct kpackx_error why = {0};
	size_t faults = 0;
	kpack_error_t err;

	if (!args->check || !scan->found.objects)
		return EXIT_OK;
	err = whole ? check_in_place(args, &faults, &why)
		    : closure_check(&scan->found, tell, NULL, &faults, &why);
	if (err)
		report_why(args->input, &why);
	if (err == KPACK_ERROR_NOT_IMPLEMENTED && !faults)
		return EXIT_USAGE;
	if (faults)
		report_error(args->input,
			     "%zu fault%s of kernel databases: nothing is packed", faults,
			     faults == 1 ? "" : "s");
	return err || faults ? EXIT_FAULT : EXIT_OK;
}
