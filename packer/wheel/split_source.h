/* SPDX-License-Identifier: MIT */
/*
 * A source wheel: it is checked and unpacked, and its device code is packed in the
 * unpacked tree.
 */
#ifndef PACKER_WHEEL_SPLIT_SOURCE_H
#define PACKER_WHEEL_SPLIT_SOURCE_H

#include "packer/trees/partition.h"
#include "dist_info.h"
#include "record.h"
#include "wheel_temp.h"

/* The arguments of a run; all borrowed. */
struct wheel_split_args {
	char **inputs; /* wheels or directories with unpacked wheels */
	size_t n_inputs;
	const char *output;    /* directory for the output wheels */
	const char *tmp_dir;   /* where wheels are unpacked; NULL: in OUTPUT */
	const char *group;     /* of archives; NULL: from the distribution's name */
	const char *overlay;   /* directory that gets the archives; NULL: detected */
	const char *prefix;    /* of device distributions; NULL: amd-DIST-device */
	const char **families; /* NAME=ARCH,... */
	size_t n_families;
	const char **requires;
	size_t n_requires;
	const char *libraries; /* libraries whose databases are looked for; NULL: all */
	const char *prefer;    /* one of INPUTS, which wins where files differ */
	enum pack_databases databases; /* IDENTIFIED or PACKED */
	kpack_compression_t scheme;
	int level, zip_level;
	unsigned jobs;
	bool directory, force, quiet, json;
	const char *host_label; /* of a variant of the host wheel; NULL: none */
};

struct wheel_source {
	const struct wheel_split_args *args;
	const char *path; /* as given */
	bool unpacked;    /* PATH is a directory */
	char *file;       /* the wheel to read: PATH, or made from the directory PATH */
	struct wheel_name name;
	struct wheel_in *in;
	struct wheel_reader *reader;
	struct record record;
	struct dist_info info;
	uint8_t (*digests)[32]; /* SHA-256 of each member */
	char *dir;              /* its work directory */
	char *overlay;          /* relative to the wheel's root; "": the root itself */
	char *root;             /* the overlay's directory on disk */
	char *rest;             /* the wheel root's directory on disk */
	struct packing packing;
	struct partition partition;
};

/*
 * Open PATH, and read the wheel's .dist-info.  If PATH is a directory, it is first made
 * into a wheel in DIR.  OUT takes DIR, an existing directory.  The caller calls
 * wheel_source_close even after an error.
 * INVALID_FORMAT: PATH is not a valid wheel.
 */
kpack_error_t wheel_source_open(const struct wheel_split_args *args, const char *path,
				char *dir, struct wheel_source *out,
				struct kpackx_error *why);

/*
 * Unpack it, choose the overlay, and pack the overlay's device code as GROUP.  Returns
 * the exit status, after reporting what is wrong.
 */
int wheel_source_pack(struct wheel_source *s, const char *group);
void wheel_source_close(struct wheel_source *s); /* accepts a zeroed one */

/* PATH relative to the overlay; NULL: it is not inside it. */
const char *wheel_source_inside(const struct wheel_source *s, const char *path);

/* Add the families of ARGS to OUT.  INVALID_ARGUMENT. */
kpack_error_t wheel_source_families(const struct wheel_split_args *args,
				    struct families *out, struct kpackx_error *why);

#endif
