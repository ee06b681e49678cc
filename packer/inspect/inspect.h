/* SPDX-License-Identifier: MIT */
/*
 * A file that kpack inspect explains: its containers as a tree, in rows; numbers for the
 * containers that hold images; and the containers that the wrappers of a host binary lead
 * to.  Its images are read on several threads, with results in the order of the rows, and are
 * printed or written as files meanwhile.
 *
 *	inspect_file.c   opening it, and reading all of its images once
 *	inspect_print.c  as text, or as JSON
 *	extract.c        as files
 */
#ifndef PACKER_INSPECT_INSPECT_H
#define PACKER_INSPECT_INSPECT_H

#include "core/format/format.h"
#include "core/host/host_file.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/digest.h"

enum inspect_row_kind {
	INSPECT_CONTAINER,
	INSPECT_IMAGE, /* a leaf: no container is inside it */
	INSPECT_PLACE, /* an image, or a section, with containers in it */
};

/* A line of the tree, in pre-order. */
struct inspect_row {
	enum inspect_row_kind kind;
	unsigned depth;
	size_t container; /* the container, or the container of the image */
	size_t image; /* the image; for a container the image it fills, or KP_NOWHERE */
};

/*
 * Something to read: a leaf that is plain in the file, or a container to decode with its
 * images.
 */
struct inspect_job {
	/* the leaf's bytes, or the bytes that contain the container */
	struct kp_source src;
	size_t container, image; /* one of the two is KP_NOWHERE */
	size_t end_row;          /* after this job the rows before END_ROW are complete */
};

/* A container's version, its compression, and whether its content matches its hash. */
struct inspect_packed {
	unsigned version;   /* 0: the format has none, or it was not decoded */
	const char *method; /* NULL: not compressed */
	bool has_hash;
	uint64_t hash;
	bool hash_ok;
};

struct inspect_file {
	const char *path;
	int fd;
	struct kp_source source;
	const char *format; /* of the file: "elf", "bundle" ... */
	struct kp_containers list;
	struct inspect_row *rows;
	size_t n_rows, rows_cap;
	unsigned depth; /* of the deepest row */
	bool device;    /* some rows are device code */
	struct inspect_job *jobs;
	size_t n_jobs, jobs_cap;
	/*
	 * Per container: its number, in the order of rows, where the containers in
	 * .hip_fatbin come first; KP_NOWHERE for host ELF and archives that hold no
	 * images themselves.
	 */
	size_t *numbers;
	size_t n_numbered, n_leaves;
	struct inspect_packed *packed; /* per container, known once it was decoded */

	struct kp_host host;       /* if the file is a host binary */
	bool converted;            /* its wrappers lead to archives */
	ptrdiff_t *wrapper_number; /* per wrapper: number of its container, or -1 */

	char **reported; /* faults that were reported */
	size_t n_reported, reported_cap, faults;
};

/*
 * Open PATH and find its containers, images and wrappers.  Damage is reported and counted
 * in FILE->faults.  A file without device code is a success without containers and
 * wrappers.
 */
kpack_error_t inspect_file_open(struct inspect_file *file, const char *path,
				struct kpackx_error *why);
void inspect_file_close(struct inspect_file *file);

/* Whether IMAGE is a leaf: no container is inside it. */
static inline bool inspect_leaf(const struct kp_image *image)
{
	return image->inside == KP_NOWHERE && !image->stream;
}

/*
 * The architecture of IMAGE: as its container states it, else as the object states it
 * (SAYS), else as an enclosing container states it.  "": it is the host's, or none is
 * stated.
 */
const char *inspect_arch(const struct kp_containers *list, const struct kp_image *image,
			 const char *says);

/* ---- reading ---- */

/* The private state of a thread. */
struct inspect_thread {
	uint8_t *buf;
	size_t cap;
	struct digest hash;
};

struct inspect_walk {
	struct inspect_file *file;
	const char *progress; /* what the bar says; NULL: there is none */
	void *arg;            /* for the functions */

	/*
	 * Process IMAGE, whose bytes are SRC, on any thread.  A failure is reported and
	 * the walk goes on; only OUT_OF_MEMORY ends it.
	 */
	kpack_error_t (*leaf)(void *arg, struct inspect_thread *thread, size_t image,
			      const struct kp_source *src, struct kpackx_error *why);
	/* The rows before END_ROW are complete.  May be NULL. */
	void (*done)(void *arg, size_t end_row);
};

kpack_error_t inspect_walk_run(const struct inspect_walk *walk, struct kpackx_error *why);

/* ---- output ---- */

/* Print a summary by GPU, then all rows; ALL: with every kernel. */
kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why);
/* Print one JSON object. */
kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why);

/*
 * The images of a file as files.  Their names are ARCH.TYPE in container 0 and
 * ARCH#N.TYPE in container N, as a mount names packed objects.  Further images of one
 * name in a container are ARCH~K.TYPE or ARCH~K#N.TYPE.
 */
struct inspect_extract {
	const char *dir; /* created if it does not exist */
	struct arch_filter filter;
	bool force; /* replace files that exist */
	/* The files' names, per image; NULL in it: not written.  NULL: as above. */
	char *const *names;
	size_t written;
};

/*
 * Write every image that has bytes and that the filter selects.  Files that cannot be
 * written are reported; the call fails if any could not.
 */
kpack_error_t inspect_extract_run(struct inspect_extract *x, struct inspect_file *file,
				  struct kpackx_error *why);

/*
 * Names for the files of device code as AMD's bulk_unbundle gives them: the bundle entry
 * ID, and ".hsaco" if that begins with "hip", else ".elf".  If two have one ID, each gets
 * its number among all of them: "ID_0.hsaco".
 */
struct unbundle_names {
	/* per image of the file; NULL: it is no device code in a bundle, or not requested */
	char **items;
	size_t *images; /* numbers of the named images, in the order of the file */
	size_t count;
};

/*
 * Name the device code in FILE's offload bundles: all, or the code for the processor
 * ARCH, whatever its features.  INVALID_ARGUMENT: no code was found.  The caller
 * finishes OUT in any case.
 */
kpack_error_t unbundle_names_make(const struct inspect_file *file, const char *arch,
				  struct unbundle_names *out, struct kpackx_error *why);
void unbundle_names_fini(struct unbundle_names *names, size_t n_images);

#endif
