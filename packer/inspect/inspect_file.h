/* SPDX-License-Identifier: MIT */
/*
 * A file that kpack inspect explains: its containers as a tree, in rows; numbers for the
 * containers that hold images; and the containers that the wrappers of a host binary lead
 * to.
 */
#ifndef PACKER_INSPECT_INSPECT_FILE_H
#define PACKER_INSPECT_INSPECT_FILE_H

#include "core/elf/elf_file.h"
#include "core/format/format.h"

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
	struct kp_source
		src; /* the leaf's bytes, or the bytes that contain the container */
	size_t container, image; /* one of the two is KP_NOWHERE */
	size_t end_row;          /* after this job the rows before END_ROW are complete */
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

	struct kp_elf elf;         /* if the file is a host binary */
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

/* Set OUT to the bytes of IMAGE in its container's PAYLOAD; false: they pass the end. */
bool inspect_image_source(const struct kp_image *image, const struct kp_source *payload,
			  struct kp_source *out);

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

/*
 * Report what is wrong with IMAGE (KP_NOWHERE: the file), with the names of all that
 * encloses it.  Equal messages are reported once.
 */
void inspect_fault(struct inspect_file *file, size_t image, const char *text);

#endif
