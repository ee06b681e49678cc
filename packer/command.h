/* SPDX-License-Identifier: MIT */
/*
 * The subcommands.  Each is a function, which gets its own name as argv[0] and returns
 * the exit status, and a description for its options and help.
 */
#ifndef PACKER_COMMAND_H
#define PACKER_COMMAND_H

#include "packer/cli/options.h"
#include "packer/cli/rows.h"
#include "packer/cli/xalloc.h"

command_run cmd_pack, cmd_mark, cmd_ls, cmd_cat, cmd_extract, cmd_info, cmd_verify,
	cmd_inspect, cmd_split, cmd_merge, cmd_split_wheel, cmd_detect, cmd_thin,
	cmd_prune, cmd_apply, cmd_status, cmd_report, cmd_run, cmd_runtime;
/* Replacements for clang's tools, and for a program of AMD's. */
command_run cmd_offload_bundler, cmd_offload_packager, cmd_bulk_unbundle;

extern const struct command_help cmd_pack_help, cmd_mark_help, cmd_ls_help, cmd_cat_help,
	cmd_extract_help, cmd_info_help, cmd_verify_help, cmd_inspect_help,
	cmd_split_help, cmd_merge_help, cmd_split_wheel_help, cmd_detect_help,
	cmd_thin_help, cmd_prune_help, cmd_apply_help, cmd_status_help, cmd_report_help,
	cmd_run_help, cmd_runtime_help, cmd_offload_bundler_help,
	cmd_offload_packager_help, cmd_bulk_unbundle_help;

/*
 * For kpack apply: leave files alone that SKIP knows; NULL: look at all.  Returns EXIT_LEFT if all
 * is done but for damaged files, which were reported.
 */
struct scan_skip;
enum { EXIT_LEFT = 3 };
int cmd_thin_changed(int argc, char **argv, const struct scan_skip *skip);
int cmd_pack_changed(int argc, char **argv, const struct scan_skip *skip);

#endif
