/* SPDX-License-Identifier: MIT */
/*
 * Write the output wheels, under their final names but in the directory of struct
 * wheel_write.
 */
#ifndef PACKER_WHEEL_SPLIT_WRITE_H
#define PACKER_WHEEL_SPLIT_WRITE_H

#include "variant.h"
#include "split_items.h"
#include "split_metadata.h"

enum wheel_file_kind {
	WHEEL_FILE_DEVICE,
	WHEEL_FILE_HOST_VARIANT, /* the host wheel with other texts */
	WHEEL_FILE_HOST,
};

/* One output wheel. */
struct wheel_file {
	enum wheel_file_kind kind;
	char name[WHEEL_NAME_MAX + 1];
	const struct device_wheel *device; /* NULL: a host wheel */
	uint64_t size;                     /* set by wheel_files_write */
};

struct wheel_files {
	struct wheel_file *items; /* the host wheel is the last one */
	size_t count;
};

/* The input of writing; borrowed. */
struct wheel_write {
	const struct wheel_split_args *args;
	const struct wheel_source *host; /* the source whose names and texts are used */
	const struct device_wheels *devices; /* finished */
	const struct wheel_items *items;     /* sorted, no path twice */
	struct wheel_metadata metadata;
	const char *dir; /* the directory to write to */
};

/*
 * List the files to write.  INVALID_ARGUMENT: a file's name would be invalid or too long.
 */
kpack_error_t wheel_files_list(const struct wheel_write *w, struct wheel_files *out,
			       struct kpackx_error *why);
void wheel_files_fini(struct wheel_files *files);

/* Write and flush all FILES, and set their sizes. */
kpack_error_t wheel_files_write(const struct wheel_write *w, struct wheel_files *files,
				struct kpackx_error *why);

#endif
