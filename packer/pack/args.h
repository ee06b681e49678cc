/* SPDX-License-Identifier: MIT */
/* The command line of kpack pack. */
#ifndef PACKER_PACK_ARGS_H
#define PACKER_PACK_ARGS_H

#include "packer/archives/operands.h"
#include "packer/gpu/families.h"
#include "packer/library/library.h"
#include "store.h"
#include "shard_number.h"

/* What becomes of the binaries. */
enum pack_mode {
	PACK_TREE,     /* they go to the output, converted, with everything else */
	PACK_IN_PLACE, /* they are converted where they are */
	PACK_ARCHIVES, /* nothing */
};

/* What becomes of the files of kernel databases. */
enum pack_databases {
	DATABASES_PACKED, /* they go into archives and leave the tree */
	DATABASES_PLAIN,  /* they stay what they are */
	DATABASES_BOTH,   /* they go into archives and stay */
};

/* Whose bytes count when a path has others already. */
enum pack_prefer {
	PREFER_NONE, /* it is a fault */
	PREFER_INPUT,
	PREFER_OUTPUT,
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
	struct shard shard; /* count 0: the whole run */
	uint64_t volume_size;
	struct library_set libraries; /* none with DATABASES_PLAIN, unless CHECK */
	enum pack_databases databases;
	enum pack_prefer prefer;
	bool identify; /* with DATABASES_PLAIN: find whose files are, all the same */
	/*
	 * The archives go to packages of their own: code is stored only of binaries that are
	 * converted, and these come out the same whatever FILTER selects, if it is nothing.
	 */
	bool apart;
	/* The archives are only looked at: OUTPUT is where there is room for them. */
	bool unnamed;
	bool check;        /* look for missing files of databases first */
	bool split_rocfft; /* a database for each GPU instead of the one for all */
	bool rows;         /* also an entry for each of its rows */
};

/* What holds when no option says otherwise.  OUT must be finished in any case. */
void pack_args_init(struct pack_args *out);

/*
 * Exit status, after reporting what is wrong; -1: --help was answered.  ARGS must be
 * finished in any case.
 */
int pack_args_parse(struct pack_args *args, int argc, char **argv);
void pack_args_fini(struct pack_args *args);

#endif
