/* SPDX-License-Identifier: MIT */
/* The command line of kpack pack. */
#ifndef PACK_ARGS_H
#define PACK_ARGS_H

#include "archives.h"
#include "family.h"
#include "pack.h"

/* What becomes of the binaries. */
enum pack_mode {
	PACK_TREE,     /* they go to the output, converted, with everything else */
	PACK_IN_PLACE, /* they are converted where they are */
	PACK_ARCHIVES, /* nothing */
};

struct pack_args {
	const char *input;
	const char *output; /* where the archives go, too; in place: input */
	enum pack_mode mode;
	bool keep_device_code, force, json, quiet;
	char *group, *prefix;
	struct arch_filter filter;
	struct families families;
	struct pack_options how;
	uint64_t volume_size;
};

/*
 * Exit status, after telling what is wrong; -1: --help was answered.  ARGS must be
 * finished in any case.
 */
int pack_args_parse(struct pack_args *args, int argc, char **argv);
void pack_args_fini(struct pack_args *args);

#endif
