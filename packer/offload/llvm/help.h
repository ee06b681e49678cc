/* SPDX-License-Identifier: MIT */
/* What a tool of LLVM's says of itself: --help in its four forms, and --version. */
#ifndef PACKER_OFFLOAD_LLVM_HELP_H
#define PACKER_OFFLOAD_LLVM_HELP_H

#include "options.h"

enum llvm_generic {
	LLVM_HELP,
	LLVM_HELP_HIDDEN,
	LLVM_HELP_LIST,
	LLVM_HELP_LIST_HIDDEN,
	/* LLVM's tools of offloading take these two, and print nothing for them. */
	LLVM_PRINT_ALL_OPTIONS,
	LLVM_PRINT_OPTIONS,
	LLVM_VERSION,
	LLVM_GENERICS,
};

/* The option of every tool of that number; NULL behind the last. */
const struct llvm_option *llvm_generic_option(size_t number);

/* "-" before a name of one letter, else "--". */
const char *llvm_dashes(const char *name);

/* On stdout: one of the four helps; the version. */
void llvm_help_print(const struct llvm_tool *tool, enum llvm_generic which);
void llvm_version_print(const struct llvm_tool *tool);

#endif
