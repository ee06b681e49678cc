/* SPDX-License-Identifier: MIT */
/* kpack pack: fat binaries in, archives and converted binaries out. */
#include <stdlib.h>
#include "packer/command.h"
#include "packer/pack/mount_command.h"
#include "packer/pack/report.h"
#include "packer/pack/run.h"
#include "packer/trees/shard.h"
#include "packer/cli/report.h"

/* Find the command that makes packed files visible, on the heap. */
static kpack_error_t find_mount(const struct packing *p, char **out,
				struct kpackx_error *why)
{
	const struct mount_tree tree = {
		.root = p->args.output,
		.archives = p->archives,
		.group = p->args.group,
		.prefix = p->args.prefix,
		.scan = &p->scan,
	};

	return mount_line(&tree, out, why);
}

/* Print the report; the mount command comes last. */
static int print_report(const struct packing *p, bool done)
{
	struct pack_result result = {
		.scan = &p->scan, .set = p->set, .archives = p->archives, .done = done};
	struct kpackx_error why = {0};
	char *mount = NULL;
	int status;

	if (p->args.mode != PACK_ARCHIVES) {
		if (!p->args.shard.count && find_mount(p, &mount, &why)) {
			report_why(NULL, &why);
			return EXIT_FAULT;
		}
		result.mount = mount;
		result.dispositions = &p->dispositions;
		if (!done)
			pack_report_dispositions(&p->scan, &p->dispositions,
						 p->args.quiet);
	}
	status = pack_report(&p->args, &result);
	free(mount);
	return status;
}

int cmd_pack(int argc, char **argv)
{
	struct packing p = {0};
	struct bundle_sizes sizes = {0};
	bool finished = false; /* the part was there already */
	int status = pack_args_parse(&p.args, argc, argv);

	/* for the report */
	if (!p.args.quiet && !p.args.json)
		p.args.how.sizes = &sizes;
	if (!status)
		status = p.args.shard.count ? shard_pack(&p, &finished) : packing_run(&p);
	if (!status)
		status = print_report(&p, finished);
	if (!status && scan_damaged(&p.scan))
		status = EXIT_FAULT;
	packing_close(&p);
	return report_finish(status < 0 ? EXIT_OK : status);
}
