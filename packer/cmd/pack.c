/* SPDX-License-Identifier: MIT */
/*
 * kpack pack: fat binaries in, archives and converted binaries out.  packer/pack/run.h does the
 * work; here it is begun, as a whole or as one shard of several, and reported.
 */
#include <stdlib.h>
#include "packer/command.h"
#include "packer/pack/mount_command.h"
#include "packer/pack/report.h"
#include "packer/pack/run.h"
#include "packer/trees/shard_run.h"
#include "packer/cli/report.h"

/* Print the report; the mount command comes last. */
static int print_report(const struct packing *p, bool done)
{
	struct pack_result result = {
		.scan = &p->scan, .set = p->set, .archives = p->archives, .done = done};
	struct kpackx_error why = {0};
	char *mount = NULL;
	int status;

	if (p->args.mode != PACK_ARCHIVES) {
		const struct mount_tree tree = {.root = p->args.output,
						.archives = p->archives,
						.group = p->args.group,
						.prefix = p->args.prefix,
						.scan = &p->scan};

		if (!p->args.shard.count && mount_line(&tree, &mount, &why)) {
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
	struct shard_run shard = {0};
	int status = pack_args_parse(&p.args, argc, argv);

	/* for the report */
	if (!p.args.quiet && !p.args.json)
		p.args.how.sizes = &sizes;
	if (!status)
		status = p.args.shard.count ? shard_run(&shard, &p) : packing_run(&p);
	if (!status)
		status = print_report(&p, shard.finished_before);
	if (!status && scan_damaged(&p.scan))
		status = EXIT_FAULT;
	packing_close(&p);
	shard_run_fini(&shard);
	return report_finish(status < 0 ? EXIT_OK : status);
}
