/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "packer/library/closure.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"

static void report_fault(void *arg, const char *path, const char *text)
{
	(void)arg;
	report_error(path, "%s", text);
}

/*
 * Also sees what INPUT's archives hold and what links lead to.  The scan has already
 * reported the faults of single files.
 */
static kpack_error_t check_whole(const struct pack_args *args, size_t *faults,
				 struct kpackx_error *why)
{
	char *paths[] = {(char *)args->input};
	const struct install_tree_of of = {.n_paths = 1,
					   .paths = paths,
					   .prefix = args->prefix,
					   .libraries = &args->libraries,
					   .packing = true};
	struct install_tree tree;
	kpack_error_t err = install_tree_open(&of, &tree, why);

	if (!err)
		err = closure_check(&tree.found, &(struct kp_choice){0}, report_fault,
				    NULL, faults, why);
	*faults += tree.n_faults;
	install_tree_close(&tree);
	return err;
}

int pack_check(const struct pack_args *args, const struct scan *scan)
{
	struct kpackx_error why = {0};
	size_t faults = 0;
	kpack_error_t err;

	if (!args->check || !scan->found.objects)
		return EXIT_OK;
	err = check_whole(args, &faults, &why);
	if (err)
		report_why(args->input, &why);
	if (faults)
		report_error(args->input,
			     "%zu fault%s of kernel databases: nothing is packed", faults,
			     faults == 1 ? "" : "s");
	return err || faults ? EXIT_FAULT : EXIT_OK;
}
