/* SPDX-License-Identifier: MIT */
/*
 * The subcommands.  Each is a function, which gets its own name as argv[0] and returns
 * the exit status, and a description for its options and help.
 */
#ifndef PACKER_COMMAND_H
#define PACKER_COMMAND_H

#include "packer/cli/exit.h"
#include "packer/cli/options.h"

int cmd_pack(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_extract(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_split(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_split_wheel(int argc, char **argv);
int cmd_detect(int argc, char **argv);
int cmd_thin(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_runtime(int argc, char **argv);
/*
 * For kpack apply: leave files alone that SKIP knows; NULL: look at all.  Returns EXIT_LEFT if all
 * is done but for damaged files, which were reported.
 */
struct scan_skip;
enum { EXIT_LEFT = 3 };
int cmd_thin_changed(int argc, char **argv, const struct scan_skip *skip);
int cmd_pack_changed(int argc, char **argv, const struct scan_skip *skip);

/* Replacements for clang's tools, with their options, messages and exit codes. */
int cmd_offload_bundler(int argc, char **argv);
int cmd_offload_packager(int argc, char **argv);
/* A replacement for AMD's program of that name. */
int cmd_bulk_unbundle(int argc, char **argv);

extern const struct command_help cmd_pack_help;
extern const struct command_help cmd_mark_help;
extern const struct command_help cmd_ls_help;
extern const struct command_help cmd_cat_help;
extern const struct command_help cmd_extract_help;
extern const struct command_help cmd_info_help;
extern const struct command_help cmd_verify_help;
extern const struct command_help cmd_inspect_help;
extern const struct command_help cmd_split_help;
extern const struct command_help cmd_merge_help;
extern const struct command_help cmd_split_wheel_help;
extern const struct command_help cmd_detect_help;
extern const struct command_help cmd_thin_help;
extern const struct command_help cmd_prune_help;
extern const struct command_help cmd_apply_help;
extern const struct command_help cmd_status_help;
extern const struct command_help cmd_report_help;
extern const struct command_help cmd_run_help;
extern const struct command_help cmd_runtime_help;
extern const struct command_help cmd_offload_bundler_help;
extern const struct command_help cmd_offload_packager_help;
extern const struct command_help cmd_bulk_unbundle_help;

#endif
