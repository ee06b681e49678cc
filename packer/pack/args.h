/* SPDX-License-Identifier: MIT */
/* The command line of kpack pack. */
#ifndef PACKER_PACK_ARGS_H
#define PACKER_PACK_ARGS_H

#include "packer/archives/arch_filter.h"
#include "packer/gpu/names.h"
#include "packer/library/library.h"
#include "store.h"

/* How the binaries are treated. */
enum pack_mode {
	PACK_TREE,     /* convert them into the output, along with everything else */
	PACK_IN_PLACE, /* convert them where they are */
	PACK_ARCHIVES, /* leave them alone, and write archives only */
	PACK_UNDO,     /* undo what packing did to the tree */
};

/* How the files of kernel databases are treated. */
enum pack_databases {
	DATABASES_PACKED, /* move them from the tree into archives */
	DATABASES_PLAIN,  /* leave them in the tree */
	DATABASES_BOTH,   /* copy them into archives and leave them in the tree */
	/* leave the files for the chosen GPUs in the tree, and know their owners */
	DATABASES_IDENTIFIED,
};

/* Which side wins when a path already has other bytes. */
enum pack_prefer {
	PREFER_NONE, /* neither: other bytes are a fault */
	PREFER_INPUT,
	PREFER_OUTPUT,
};

/* Which of the machines that share a run this one is. */
struct shard {
	unsigned index; /* from 1 */
	unsigned count; /* 0: the run is not shared */
};
/* As many as the job arrays of any scheduler have. */
#define SHARDS_MAX 65536

struct pack_args {
	const char *input;
	const char *output; /* in place, and to undo: `input` */
	char *archive_dir;  /* the archives', below `output`; NULL: KP_ARCHIVES_DIR */
	enum pack_mode mode;
	bool keep_device_code, keep_containers, drop_signature, force, json, quiet;
	bool any_runtime; /* whether HIP runtimes take converted binaries is not asked */
	char *group, *prefix;
	struct arch_filter filter;
	struct families families;
	struct pack_options how;
	struct shard shard; /* count 0: the run is not shared */
	uint64_t volume_size;
	struct library_set libraries; /* they recognise files of databases */
	enum pack_databases databases;
	enum pack_prefer prefer;
	bool check;         /* first look for files that databases miss */
	bool split_rocfft;  /* store a database per GPU instead of the one for all GPUs */
	bool rows;          /* also store an entry for each row of that database */
	bool allow_missing; /* undo also without objects that are in no archive */
};

/* Whether files of kernel databases go into archives. */
static inline bool pack_args_take_databases(const struct pack_args *args)
{
	return args->databases == DATABASES_PACKED || args->databases == DATABASES_BOTH;
}

/* Set the defaults.  The caller must finish OUT in any case. */
void pack_args_init(struct pack_args *out);

/*
 * Parse the command line.  Returns an exit status, after reporting what is wrong with INPUT
 * or OUTPUT.  The caller must finish ARGS in any case.
 */
int pack_args_parse(struct pack_args *args, int argc, char **argv);
void pack_args_fini(struct pack_args *args);

/* Remove the slashes at the end of DIR.  False: it is no path relative to a tree. */
bool pack_archive_dir_ok(char *dir);

#endif
