/* SPDX-License-Identifier: MIT */
/*
 * A file that kpack inspect explains: every container in it as a tree, in rows, with numbers
 * for those that hold images, and where the wrappers of a host binary lead.
 */
#ifndef PACKER_INSPECT_FILE_H
#define PACKER_INSPECT_FILE_H

#include "core/binary/elf_file.h"
#include "core/format/nest.h"

enum inspect_row_kind {
	INSPECT_CONTAINER,
	INSPECT_IMAGE, /* a leaf: nothing stands inside it */
	INSPECT_PLACE, /* an image, or a section, with containers in it */
};

/* A line of the tree, in pre-order. */
struct inspect_row {
	enum inspect_row_kind kind;
	unsigned depth;
	size_t container; /* itself, or that of the image */
	size_t image; /* itself; of a container: the one that it fills, or KP_NOWHERE */
};

/* Something to read: a leaf as it stands in the file, or a container to decode with all in it. */
struct inspect_job {
	struct kp_source
		src; /* the leaf's bytes; or what the container's offset refers to */
	size_t container, image; /* one of them is KP_NOWHERE */
	size_t end_row;          /* the rows before it are complete with this job */
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
	bool device;    /* some of them are of device code */
	struct inspect_job *jobs;
	size_t n_jobs, jobs_cap;
	/*
	 * Per container: its number, in the order of rows, in which those in .hip_fatbin come
	 * first; KP_NOWHERE of host ELF and archives that hold no images themselves.
	 */
	size_t *numbers;
	size_t n_numbered, n_leaves;

	struct kp_elf elf;         /* of a host binary */
	bool converted;            /* its wrappers lead to archives */
	ptrdiff_t *wrapper_number; /* per wrapper: number of its container, or -1 */

	char **told; /* faults that were reported */
	size_t n_told, told_cap, faults;
};

/*
 * Open PATH and find everything.  What is damaged is reported; FILE->faults counts it.  A file
 * without device code is a success without containers and wrappers.
 */
kpack_error_t inspect_file_open(struct inspect_file *file, const char *path,
				struct kpackx_error *why);
void inspect_file_close(struct inspect_file *file);

/* The bytes of IMAGE in its container's PAYLOAD; false: they pass the end. */
bool inspect_image_source(const struct kp_image *image, const struct kp_source *payload,
			  struct kp_source *out);

static inline bool inspect_leaf(const struct kp_image *image)
{
	return image->inside == KP_NOWHERE && !image->stream;
}

/*
 * What IMAGE is for: what its container says, else the object itself (SAYS), else what is
 * around it; "": the host's, or nobody says.
 */
const char *inspect_arch(const struct kp_containers *list, const struct kp_image *image,
			 const char *says);

/*
 * Tell of what is wrong with IMAGE (KP_NOWHERE: the file), named by all that it is inside of.
 * What was reported in the same words is reported once.
 */
void inspect_fault(struct inspect_file *file, size_t image, const char *text);

#endif
