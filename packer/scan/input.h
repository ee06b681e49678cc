/* SPDX-License-Identifier: MIT */
/*
 * A file to be packed: what the scan found in it, and, while it is being packed, its
 * descriptor and the decoded payloads that several threads share.
 */
#ifndef PACKER_SCAN_INPUT_H
#define PACKER_SCAN_INPUT_H

#include <pthread.h>
#include <sys/stat.h>
#include "core/host/host_fatbin.h"
#include "packer/library/library.h"

struct input_payload;

enum input_kind {
	INPUT_HOST,     /* a host binary, which is converted when its code is packed */
	INPUT_BARE,     /* any other file with device code, which stays as it is */
	INPUT_DATABASE, /* a file of a kernel database: `objects` are stored of it */
};

struct input {
	char *path;        /* to open it */
	char *key;         /* path relative to the root, as keys have it */
	const char *shown; /* its name in errors: `path`, or the file it is a part of */
	size_t entry;      /* the number of its entry in the scan */
	struct stat st;
	enum input_kind kind;
	struct kp_fatbin fat; /* empty in a database */
	/* of a database, per image, or for all (scan_add_code); borrowed */
	const struct library_object *objects;

	/*
	 * What can be stored of it: those of `fat`, or in a database an image for each
	 * object, in no container (KP_NOWHERE).
	 */
	struct kp_image *images;
	size_t n_images;
	bool *packed; /* per image: whether it is stored; in a database all are */

	/*
	 * Per image: XXH3-128 of its bytes, canonical, once it is packed, which `known`
	 * says.
	 */
	uint8_t (*xxh3)[16];
	bool *known;

	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t loaded;
	int fd;                         /* -1: closed */
	unsigned users;                 /* images to be read, and holds; closed at zero */
	struct input_payload *payloads; /* per container */
};

/* How to look for device code in a file. */
struct input_look {
	bool in_tree;  /* do not take what only seems to be code, nor follow a link */
	bool guarded;  /* no other user can exchange it: see tree_list.h */
	bool sections; /* look at all sections of a host binary (kp_fatbin_nest) */
};

/*
 * Look for device code in the file PATH.  PATH and KEY are copied.  Without an image to
 * pack it succeeds, with kind NONE.
 */
kpack_error_t input_open(const char *path, const char *key, const struct input_look *look,
			 struct input *out, struct kpackx_error *why);
/* Open a file of a kernel database.  The N OBJECTS that are stored of it are borrowed. */
kpack_error_t input_open_database(const char *path, const char *key,
				  const struct library_object *objects, size_t n,
				  struct input *out, struct kpackx_error *why);
void input_fini(struct input *in);

/*
 * Open an image: OUT is where its bytes are until it is closed, which is due only when opening
 * succeeded.  The first use of a compressed container decodes it; the last close of its images
 * frees it.  Every image must be opened and closed exactly once.
 * IO_ERROR: the file changed since it was scanned.
 */
kpack_error_t input_open_image(struct input *in, size_t image, struct kp_source *out,
			       struct kpackx_error *why);
void input_close_image(struct input *in, size_t image);
/* Whether the bytes of an open image are in a temporary file, which nobody can change. */
bool input_image_spilled(const struct input *in, size_t image);

/*
 * Before any image is read: read at most SIZE bytes from the middle of an image; *OUT is
 * how many.  Its container stays decoded until input_end_peek, which is due after a
 * failure, too.
 */
kpack_error_t input_peek(struct input *in, size_t image, void *buf, size_t size,
			 size_t *out, struct kpackx_error *why);
/* Free what a peek at IMAGE kept, except what one at the image NEXT needs; KP_NOWHERE: none. */
void input_end_peek(struct input *in, size_t image, size_t next);

/*
 * Keep the file open until it is released, for using FD and reading the containers of
 * `fat`.
 * IO_ERROR: the file changed since it was scanned.
 */
kpack_error_t input_hold(struct input *in, int *fd, struct kpackx_error *why);
void input_release(struct input *in);

/* Returns the bytes of memory that reading IMAGE makes the input hold. */
uint64_t input_cost(const struct input *in, size_t image);

/*
 * Announce how many images of CONTAINER (of a database: KP_NOWHERE) will be read, so that
 * its payload can be freed after the last one.
 */
void input_expect(struct input *in, size_t container, unsigned images);

/*
 * Decide which images of FAT are device code to pack, and for which architecture: set PACKED, a
 * flag per image, and the architecture of each packed image: the one
 * that its container states, else the one that it states itself, else that of the
 * image around it, else, for target-neutral code, KP_ARCH_GENERIC.  PTX is "compute_NN"
 * whatever its container calls it.
 * The host's entries, images that hold containers, and members and sections that are no
 * device code are not packed.  Containers of kind NESTED without an image to pack get no
 * index.
 * NAME is the file's name.  IN_TREE: only images that surely are code are packed, as
 * device_code.c describes.
 * NOT_IMPLEMENTED: nothing states the architecture of an image, or it gives no file name.
 */
kpack_error_t device_code_settle(struct kp_fatbin *fat, const char *name, bool in_tree,
				 bool *packed, struct kpackx_error *why);

#endif
