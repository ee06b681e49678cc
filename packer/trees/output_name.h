/* SPDX-License-Identifier: MIT */
/* Name an output tree after its architecture or family. */
#ifndef PACKER_SPLIT_OUTPUT_NAME_H
#define PACKER_SPLIT_OUTPUT_NAME_H

#include "packer/gpu/families.h"
#include "packer/library/library.h"
#include "core/target/target.h"

/*
 * The output tree's name for FAMILY: a different name for AOTriton's families, else
 * FAMILY.  Static, or FAMILY itself.
 */
const char *output_name_known(const char *family);

/*
 * The name of the output tree for code of ARCH, which may also be the name of a family.
 * FAMILIES comes from --family.  Borrowed from the arguments, or static.
 */
const char *output_name_of_code(const struct families *families, const char *arch);

/* Architecture I of O without features; unchanged if it is not a target ID. */
void output_name_base(const struct library_object *o, size_t i,
		      char out[KP_TARGET_TEXT_MAX]);

/* The --family that contains all architectures of O, or their bases; or NULL. */
const struct family *output_name_family(const struct families *families,
					const struct library_object *o);

/*
 * True if all architectures of O have the same base, and it is that of one GPU.  Sets
 * OUT.
 */
bool output_name_common(const struct library_object *o, char out[KP_TARGET_TEXT_MAX]);

#endif
