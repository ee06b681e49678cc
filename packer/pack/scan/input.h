/* SPDX-License-Identifier: MIT */
/*
 * A file to be packed: what the scan found in it, and, while it is being packed, its
 * descriptor and the decoded payloads that several threads share.
 */
#ifndef PACKER_PACK_SCAN_INPUT_H
#define PACKER_PACK_SCAN_INPUT_H

#include <pthread.h>
#include <sys/stat.h>
#include "core/binary/fatbin.h"
#include "packer/library/library.h"

struct input_payload;

struct input {
	char *path;        /* to open it */
	char *key;         /* path relative to the root, as it stands in keys */
	const char *shown; /* its name in errors: PATH, or of what file it is a part */
	size_t entry;      /* its number in the scan */
	struct stat st;
	struct kp_fatbin fat;
	/*
	 * What is stored of a file of a kernel database. FAT then has kind NONE and an
	 * image for each in one container. NULL: a binary.
	 */
	const struct library_object *objects;

	bool *packed; /* per image: is it stored?  Of a database: all */

	/* Per image: XXH3-128 of its bytes, canonical, once it was packed. */
	uint8_t (*xxh3)[16];
	bool *known;

	pthread_mutex_t lock;
	pthread_cond_t loaded;
	int fd;                         /* -1: closed */
	unsigned users;                 /* images to come, and holds; closed at zero */
	struct input_payload *payloads; /* per container */
};

/* How a file is looked into. */
struct input_look {
	bool in_tree;  /* what only seems to be code is not taken */
	bool sections; /* of a host binary, not .hip_fatbin alone (kp_fatbin_nest) */
};

/*
 * Look into the file.  PATH and KEY are copied.  Kind NONE, when no image is to be packed, is
 * a success.
 */
kpack_error_t input_open(const char *path, const char *key, const struct input_look *look,
			 struct input *out, struct kpackx_error *why);
/* The file of a kernel database, of which N OBJECTS are stored, which are borrowed. */
kpack_error_t input_open_database(const char *path, const char *key,
				  const struct library_object *objects, size_t n,
				  struct input *out, struct kpackx_error *why);
void input_fini(struct input *in);

/*
 * The archive in which an object of a database goes: of its family, else of its only
 * architecture.
 */
const char *input_place(const struct library_object *object);

/* Is it a host binary, which is converted when its code is packed? */
bool input_is_host(const struct input *in);

/*
 * Bytes of an image.  The first use of a compressed container decodes it; the last
 * release of its images frees it.  Every image must be read exactly once.
 * IO_ERROR: the file changed since it was scanned.
 */
kpack_error_t input_read(struct input *in, size_t image, void *buf,
			 struct kpackx_error *why);

/*
 * The same in pieces: where an image's bytes are, until it is closed, which counts as having
 * read it, and is due only when opening it went well.
 */
kpack_error_t input_open_image(struct input *in, size_t image, struct kp_source *out,
			       struct kpackx_error *why);
void input_close_image(struct input *in, size_t image);

/*
 * Keep the file open, for FD and for reading containers of FAT, until it is released.
 * IO_ERROR: the file changed since it was scanned.
 */
kpack_error_t input_hold(struct input *in, int *fd, struct kpackx_error *why);
void input_release(struct input *in);

/* Bytes that reading this image makes the input hold. */
uint64_t input_cost(const struct input *in, size_t image);

/* How many images of CONTAINER will be read, so that it is known when its payload can go. */
void input_expect(struct input *in, size_t container, unsigned images);

#endif
