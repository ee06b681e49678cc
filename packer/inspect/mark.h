/* SPDX-License-Identifier: MIT */
/*
 * The subcommands of `kpack mark`, as in command.h: each gets its name as argv[0] and
 * returns the exit status.
 *
 *	mark_show.c     show, set
 *	mark_check.c    check
 *	mark_convert.c  convert, restore, strip-safe: other files from converted ones, and back
 */
#ifndef PACKER_INSPECT_MARK_H
#define PACKER_INSPECT_MARK_H

#include "packer/cli/options.h"

int mark_show(int argc, char **argv);
int mark_convert(int argc, char **argv);
int mark_set(int argc, char **argv);
int mark_check(int argc, char **argv);
int mark_restore(int argc, char **argv);
int mark_strip_safe(int argc, char **argv);

extern const struct command_help mark_show_help;
extern const struct command_help mark_convert_help;
extern const struct command_help mark_set_help;
extern const struct command_help mark_check_help;
extern const struct command_help mark_restore_help;
extern const struct command_help mark_strip_safe_help;

/* Options (OPTION_TAKE) whose argument is a name or a path; SLOT is the marker. */
int mark_take_name(const struct options *o, const struct option_help *row, void *slot);
int mark_take_path(const struct options *o, const struct option_help *row, void *slot);

#endif
