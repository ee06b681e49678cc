/* SPDX-License-Identifier: MIT */
/*
 * kpack split-wheel: a fat wheel becomes a host wheel, whose libraries have no device code any
 * more, and a device wheel for each architecture.
 *
 *	source.c	unpack an input, choose its overlay, and pack the device code there
 *	devices.c	which device wheels there are, and which of them need each other
 *	items.c		which file goes into which wheel; several inputs become one list
 *	texts.c		METADATA, WHEEL and variant.json of the wheels
 *	split.c		all of it in order: writing the wheels, their names, and the report
 */
#ifndef PACKER_WHEEL_SPLIT_H
#define PACKER_WHEEL_SPLIT_H

#include "core/target/target.h"
#include "packer/files/staging.h"
#include "packer/gpu/names.h"
#include "packer/trees/partition.h"
#include "wheel.h"

#define WHEEL_LEVEL_DEFAULT 6 /* of deflate */

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
	bool directory, force, quiet, json, drop_signature;
	const char *host_label; /* of a variant of the host wheel; NULL: none */
};

/*
 * Do a whole run.  Returns the exit status, after reporting what went wrong; on failure no
 * wheel is output.
 */
int wheel_split_run(const struct wheel_split_args *args);

/* --- source.c -------------------------------------------------------------------------- */

struct wheel_source {
	const struct wheel_split_args *args;
	const char *path; /* as given */
	bool unpacked;    /* PATH is a directory */
	char *file;       /* the wheel to read: PATH, or made from the directory PATH */
	struct wheel_name name;
	struct wheel_in *in;
	struct record record;
	struct dist_info info;
	uint8_t (*digests)[32]; /* SHA-256 of each member */
	char *dir;              /* its work directory */
	char *tree;             /* into which it is unpacked */
	char *overlay;          /* relative to the wheel's root; "": the root itself */
	char *root;             /* the overlay on disk */
	struct packing packing;
	struct partition partition;
};

/*
 * Open PATH, and read the wheel's .dist-info.  If PATH is a directory, it is first made
 * into a wheel in DIR.  OUT takes DIR, and makes the directory.  The caller calls
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

/* --- devices.c ------------------------------------------------------------------------- */

enum device_wheel_kind {
	DEVICE_WHEEL_TARGET,
	DEVICE_WHEEL_GROUP,  /* of a kernel database: gfx11, gfx110x */
	DEVICE_WHEEL_FAMILY, /* of the user: gfx110X=gfx1100,gfx1101 */
};

struct device_wheel {
	enum device_wheel_kind kind;
	char name[KP_TARGET_TEXT_MAX];   /* "gfx90a:sramecc+", "gfx11", "gfx110X" */
	char suffix[WHEEL_NAME_MAX + 1]; /* NAME as in distributions and extras */
	char dist[WHEEL_NAME_MAX + 1];   /* "amd-torch-device-gfx942" */
	char file[WHEEL_NAME_MAX + 1];   /* "amd_torch_device_gfx942" */
	/* The targets of its code or database files, without xnack and stepping, sorted. */
	char (*arches)[KP_TARGET_TEXT_MAX];
	size_t n_arches;
	struct device_wheel *
		*needs; /* device wheels, by name; see device_wheels_finish */
	size_t n_needs;
};

struct device_wheels {
	struct families families;    /* the user's */
	const char *host;            /* the host's distribution; borrowed */
	const char *prefix;          /* of device distributions; NULL: amd-HOST-device */
	struct device_wheel **items; /* sorted by kind and name once finished */
	size_t count;
};

void device_wheels_fini(struct device_wheels *devices); /* accepts a zeroed one */

/*
 * Find the device wheel for TREE of a partition, or add it.  INVALID_ARGUMENT: its name cannot
 * be part of a distribution's name.
 */
kpack_error_t device_wheels_find(struct device_wheels *devices,
				 const struct output_tree *tree,
				 const struct device_wheel **out,
				 struct kpackx_error *why);
/*
 * Call it after the last device wheel is added.  Sorts them and finds the other device
 * wheels that each one needs, because their code also runs on its GPUs: those of its
 * families, of its processor with fewer stated features, and of generic targets.
 * INVALID_ARGUMENT: two device wheels have the same distribution name.
 */
kpack_error_t device_wheels_finish(struct device_wheels *devices,
				   struct kpackx_error *why);

/* Whether DEVICE has code that GPU can load; unstated features of GPU may be on or off. */
bool device_wheel_serves(const struct device_wheel *device, const char *gpu);
/* Spell NAME as in distributions and extras: "gfx90a-sramecc-on".  False: impossible. */
bool device_wheel_suffix(const char *name, char out[WHEEL_NAME_MAX + 1]);

/* --- items.c --------------------------------------------------------------------------- */

enum wheel_item_kind {
	WHEEL_ITEM_MEMBER,  /* of a source, unchanged */
	WHEEL_ITEM_BINARY,  /* of a source, converted */
	WHEEL_ITEM_ARCHIVE, /* with device code */
};

/* A member of an output wheel, but for those that texts.c makes. */
struct wheel_item {
	enum wheel_item_kind kind;
	char *path; /* in the output wheel */
	struct wheel_source *source;
	size_t member; /* its index in SOURCE; unused for an archive */
	char *disk;    /* file with the bytes; NULL: they are in the source */
	unsigned mode;
	bool database;
	bool last; /* in .dist-info, which wheels have at the end */
	const struct device_wheel *device; /* the output wheel; NULL: the host wheel */
};

struct wheel_items {
	struct wheel_item *items;
	size_t count, cap;
};

/*
 * Check that the N sources are builds of one wheel: with the same distribution, version and
 * tags and, unless PREFER is one of them, the same METADATA.  INVALID_ARGUMENT.
 */
kpack_error_t wheel_items_check(const struct wheel_source *sources, size_t n,
				const struct wheel_source *prefer,
				struct kpackx_error *why);
/*
 * Add the members of SOURCE, which has been packed, and its archives; add the device wheels
 * that they need to DEVICES.  Leaves out METADATA, RECORD, its signatures, and files whose
 * bytes are now in archives only.  IO_ERROR: a file would be in no wheel.
 */
kpack_error_t wheel_items_add(struct wheel_items *list, struct wheel_source *source,
			      struct device_wheels *devices, struct kpackx_error *why);
/*
 * Sort LIST, which has the items of the N SOURCES, as wheels have them, and join items with
 * equal paths into one.  A file for the host must be in each source; a file for GPUs or of a
 * kernel database may be in only some.  Files with the same path must be equal; binaries must
 * have the same host code, and archives are merged.  New files are written into DIR.  PREFER,
 * one of SOURCES or NULL, provides the file where bytes differ.
 * INVALID_ARGUMENT: sources do not match; the error names both.
 */
kpack_error_t wheel_items_join(struct wheel_items *list,
			       const struct wheel_source *sources, size_t n,
			       const struct wheel_source *prefer, const char *dir,
			       struct kpackx_error *why);
void wheel_items_fini(struct wheel_items *list);

/* --- a run ----------------------------------------------------------------------------- */

enum wheel_output_kind {
	WHEEL_OUTPUT_DEVICE,
	WHEEL_OUTPUT_VARIANT, /* the host wheel with other texts */
	WHEEL_OUTPUT_HOST,
};

struct wheel_output {
	enum wheel_output_kind kind;
	char name[WHEEL_NAME_MAX + 1];     /* of the wheel */
	char final[WHEEL_NAME_MAX + 1];    /* without suffix, if it is unpacked */
	const struct device_wheel *device; /* NULL: a host wheel */
	uint64_t size;
};

struct split {
	const struct wheel_split_args *args;
	bool made;              /* this run made the output directory */
	struct dirent **before; /* what was in it when the run began */
	int n_before;
	struct temp_dir staging; /* in the output directory */
	struct temp_dir work;    /* in --tmp-dir, if given */
	char *dir;               /* of output wheels before they get their names */
	struct wheel_source *sources;
	size_t n_sources;
	const struct wheel_source *prefer; /* or NULL */
	const struct wheel_source *host;   /* whose names and texts are used */
	struct device_wheels devices;
	struct wheel_items items;
	struct wheel_output *outputs; /* the host wheel is the last one */
	size_t n_outputs;
};

/* --- texts.c --------------------------------------------------------------------------- */

/*
 * An extra of the host wheel, and the device wheels that it installs: DEVICE and those that
 * it needs; or those that GPU can load; or all.
 */
struct wheel_extra {
	char name[WHEEL_NAME_MAX + 1];
	const struct device_wheel *device; /* NULL: see GPU */
	char gpu[KP_TARGET_TEXT_MAX];      /* "": all */
};

struct wheel_extras {
	struct wheel_extra *items; /* sorted by name */
	size_t count, cap;
};

/*
 * Fill LIST, which is zeroed; the caller finishes it even after an error.  INVALID_ARGUMENT: two
 * have one name.
 */
kpack_error_t wheel_extras_list(const struct split *s, struct wheel_extras *list,
				struct kpackx_error *why);
void wheel_extras_fini(struct wheel_extras *extras);

/*
 * Add the texts of the .dist-info DIR of OUTPUT to OUT.  INVALID_ARGUMENT: the host already has
 * an extra of that name.
 */
kpack_error_t wheel_texts_add(const struct split *s, const struct wheel_output *output,
			      const char *dir, struct wheel_out *out,
			      struct kpackx_error *why);

#endif
