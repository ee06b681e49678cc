/* SPDX-License-Identifier: MIT */
/*
 * A wheel that is split: checked, unpacked, and its device code packed where it was unpacked.
 */
#ifndef PACKER_WHEEL_SPLIT_SOURCE_H
#define PACKER_WHEEL_SPLIT_SOURCE_H

#include "packer/split/partition.h"
#include "packer/wheel/file/dist_info.h"
#include "packer/wheel/metadata/record.h"
#include "packer/wheel/file/temp.h"

/* How wheels are taken apart; all borrowed. */
struct wheel_split_args {
	char **inputs; /* wheels, or unpacked ones */
	size_t n_inputs;
	const char *output;    /* directory of the wheels that are written */
	const char *tmp_dir;   /* where wheels are unpacked; NULL: in OUTPUT */
	const char *group;     /* of archives; NULL: from the distribution's name */
	const char *overlay;   /* directory that gets the archives; NULL: found */
	const char *prefix;    /* of device distributions; NULL: amd-DIST-device */
	const char **families; /* NAME=ARCH,... */
	size_t n_families;
	const char **requires;
	size_t n_requires;
	const char *libraries; /* libraries whose databases are looked for; NULL: all */
	const char *prefer;    /* the one of INPUTS that counts where files differ */
	enum pack_databases databases; /* PLAIN or PACKED */
	kpack_compression_t scheme;
	int level, zip_level;
	unsigned jobs;
	bool variants, directory, force, quiet, json;
};

struct wheel_source {
	const struct wheel_split_args *args;
	const char *path; /* as given */
	bool unpacked;    /* PATH is a directory */
	char *file; /* the wheel that is read: PATH, or one made from that directory */
	struct wheel_name name;
	struct wheel_in *in;
	struct wheel_reader *reader;
	struct record record;
	struct dist_info info;
	uint8_t (*digests)[32]; /* SHA-256 of each member */
	char *dir;              /* in which it is worked on */
	char *overlay;          /* below the wheel's root; "": the root itself */
	char *root;             /* where the overlay is on the disk */
	char *rest;             /* where the wheel's root is */
	struct packing packing;
	struct partition partition;
};

/*
 * Look at PATH, and read what the wheel says of itself.  A directory is made a wheel in DIR
 * first, which exists, and is the source's.  Closed by wheel_source_close in any case.
 * INVALID_FORMAT: it is none, or lies.
 */
kpack_error_t wheel_source_open(const struct wheel_split_args *args, const char *path,
				char *dir, struct wheel_source *out,
				struct kpackx_error *why);

/*
 * Unpack it, choose the overlay, and pack what is in that as GROUP.  Exit status, after
 * telling what is wrong.
 */
int wheel_source_pack(struct wheel_source *s, const char *group);
void wheel_source_close(struct wheel_source *s); /* a zeroed one is fine */

/* PATH as it is below the overlay; NULL: it is not in it. */
const char *wheel_source_inside(const struct wheel_source *s, const char *path);

/* The number of what is there in the scan; false: it is not. */
bool wheel_source_entry(const struct wheel_source *s, const char *inside, size_t *entry);

/* Put the families of ARGS into OUT; INVALID_ARGUMENT. */
kpack_error_t wheel_source_families(const struct wheel_split_args *args,
				    struct families *out, struct kpackx_error *why);

#endif
