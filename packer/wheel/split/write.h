/* SPDX-License-Identifier: MIT */
/* The wheels that a wheel is split into, written under the names they will have. */
#ifndef PACKER_WHEEL_SPLIT_WRITE_H
#define PACKER_WHEEL_SPLIT_WRITE_H

#include "packer/wheel/metadata/variant.h"
#include "items.h"
#include "metadata.h"

enum wheel_file_kind {
	WHEEL_FILE_DEVICE,
	WHEEL_FILE_VARIANT,
	WHEEL_FILE_INDEX, /* {name}-{version}-variants.json */
	WHEEL_FILE_HOST,
};

/* One of them. */
struct wheel_file {
	enum wheel_file_kind kind;
	char name[WHEEL_NAME_MAX + 1];
	const struct wheel_part *part; /* NULL: the host, or the index of variants */
	char label[VARIANT_TEXT_MAX];  /* of a variant */
	uint64_t size;                 /* once written */
};

struct wheel_files {
	struct wheel_file *items; /* the host's last */
	size_t count;
};

/* What they are made of; borrowed. */
struct wheel_write {
	const struct wheel_split_args *args;
	const struct wheel_source *host; /* the wheel whose names and texts count */
	const struct wheel_parts *parts; /* finished */
	const struct wheel_items *items; /* sorted, no path twice */
	struct wheel_metadata metadata;
	const char *dir; /* where they are written */
};

/* What will be written.  INVALID_ARGUMENT: a name that cannot be had. */
kpack_error_t wheel_files_list(const struct wheel_write *w, struct wheel_files *out,
			       struct kpackx_error *why);
void wheel_files_fini(struct wheel_files *files);

/* Write all, flushed. */
kpack_error_t wheel_files_write(const struct wheel_write *w, struct wheel_files *files,
				struct kpackx_error *why);

#endif
