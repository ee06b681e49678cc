/* SPDX-License-Identifier: MIT */
/* Find the images of all offload binaries in a file, wherever in the file they are. */
#ifndef PACKER_OFFLOAD_PACKAGER_INPUT_H
#define PACKER_OFFLOAD_PACKAGER_INPUT_H

#include "files.h"
#include "core/format/offload_binary.h"

/* Bytes with containers in them: the file, or data embedded in bitcode. */
struct packager_unit {
	struct kp_source src;
	uint8_t *heap; /* owned; NULL: the unit is the file */
	struct kp_containers list;
	size_t host; /* the image of unit 0 that is the bitcode */
};

struct packager_image {
	size_t unit, number;
};

struct packager_input {
	struct bundler_input in;
	struct packager_unit *units;
	size_t n_units;
	/* Images of the outermost binaries, in the order of the file. */
	struct packager_image *images;
	size_t n_images;
};

/*
 * Open PATH, or "-", and find the images: in the file itself, in an ELF file's sections
 * of the offload type, embedded in bitcode, and in all of these as members of a static
 * library, thin or not.  A file of any other kind is a success without images; damage in
 * other parts of a file is ignored.
 * On failure IN is closed.
 */
kpack_error_t packager_input_open(struct packager_input *in, const char *path,
				  struct kpackx_error *why);
void packager_input_close(struct packager_input *in);

static inline const struct kp_image *packager_image(const struct packager_input *in,
						    struct packager_image ref)
{
	return &in->units[ref.unit].list.images[ref.number];
}

/*
 * The name of the static library's member that has image REF; NULL: REF is in no library.
 */
const char *packager_image_member(const struct packager_input *in,
				  struct packager_image ref);

#endif
