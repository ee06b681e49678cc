/* SPDX-License-Identifier: MIT */
/* By which architecture or family a part is called. */
#ifndef PACKER_SPLIT_PART_NAME_H
#define PACKER_SPLIT_PART_NAME_H

#include "packer/gpu/families.h"
#include "packer/library/library.h"
#include "core/target/target.h"

/* What the tree of FAMILY is called: AOTriton's families have other names there.  Static, or FAMILY. */
const char *part_name_known(const char *family);

/*
 * The name of the part that the code of ARCH, or a family's archive, is in: FAMILIES is what
 * --family said.  Borrowed from its arguments, or static.
 */
const char *part_name_of_code(const struct families *families, const char *arch);

/* Architecture I of O without features; as it is where it is no target ID. */
void part_name_base(const struct library_object *o, size_t i,
		    char out[KP_TARGET_TEXT_MAX]);

/* The family that all architectures of O, or their bases, are in; or NULL. */
const struct family *part_name_family(const struct families *families,
				      const struct library_object *o);

/* Have all architectures of O one base, and is that a GPU's? */
bool part_name_common(const struct library_object *o, char out[KP_TARGET_TEXT_MAX]);

#endif
