/* SPDX-License-Identifier: MIT */
/* The four forms of --help, and --version, as LLVM's tools print them. */
#ifndef PACKER_OFFLOAD_LLVM_HELP_H
#define PACKER_OFFLOAD_LLVM_HELP_H

#include "options.h"

enum llvm_generic {
	LLVM_HELP,
	LLVM_HELP_HIDDEN,
	LLVM_HELP_LIST,
	LLVM_HELP_LIST_HIDDEN,
	/* LLVM's offloading tools accept these two options and print nothing for them. */
	LLVM_PRINT_ALL_OPTIONS,
	LLVM_PRINT_OPTIONS,
	LLVM_VERSION,
	LLVM_GENERICS,
};

/* Option NUMBER of those that every tool has; NULL behind the last. */
const struct llvm_option *llvm_generic_option(size_t number);

/* "-" for a NAME of one letter, else "--". */
const char *llvm_dashes(const char *name);

/* Print one of the four helps, or the version, on stdout. */
void llvm_help_print(const struct llvm_tool *tool, enum llvm_generic which);
void llvm_version_print(const struct llvm_tool *tool);

#endif
