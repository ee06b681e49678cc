/* SPDX-License-Identifier: MIT */
/* The data of a wheel that an index lists. */
#ifndef PACKER_WHEEL_INDEX_WHEEL_H
#define PACKER_WHEEL_INDEX_WHEEL_H

#include "dist_info.h"
#include "packer/cli/digest.h"
#include "wheel_name.h"

struct index_wheel {
	char *file; /* its name in the directory */
	struct wheel_name name;
	char project[WHEEL_NAME_MAX + 1]; /* as indexes spell it: "amd-torch-device" */
	char *version;                    /* as METADATA spells it */
	char *requires_python;            /* NULL: METADATA has none */
	uint64_t size;
	char sha256[DIGEST_TEXT];         /* of the file */
	char metadata[DIGEST_TEXT];       /* SHA-256 of METADATA */
	char *variant;                    /* variant.json's text, or NULL */
	char tag_fault[WHEEL_TAGS_FAULT]; /* as in struct dist_info */
};

/*
 * Read the wheel FILE in DIR, and write its METADATA next to it, as FILE.metadata.
 * PROGRESS gets the number of bytes of the file that were read.  The caller calls
 * index_wheel_fini even after an error.  Errors of wheel_in_open, dist_info_read and
 * record_check.
 */
kpack_error_t index_wheel_read(const char *dir, const char *file,
			       void (*progress)(void *arg, uint64_t bytes), void *arg,
			       struct index_wheel *out, struct kpackx_error *why);
void index_wheel_fini(struct index_wheel *w);

#endif
