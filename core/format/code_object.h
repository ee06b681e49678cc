/* SPDX-License-Identifier: MIT */
/* What AMDGPU code objects record: notes (code_object.c), and kernels (amdgpu_kernels.c). */
#ifndef KP_CORE_FORMAT_CODE_OBJECT_H
#define KP_CORE_FORMAT_CODE_OBJECT_H

#include "format.h"
#include "sections.h"

struct kp_amdgpu_notes {
	/* NT_AMDGPU_METADATA: MessagePack, owned; NULL: none */
	uint8_t *metadata;
	size_t metadata_size;

	uint8_t build_id[32]; /* NT_GNU_BUILD_ID */
	size_t build_id_size; /* 0: none, or longer */

	/* only in code object v2; "" and false for later versions */
	bool has_isa;
	uint32_t isa[3];     /* major, minor, stepping */
	char isa_vendor[16]; /* "AMD" */
	char isa_family[16]; /* "AMDGPU" */
	char isa_name[128];  /* "amdgcn-amd-amdhsa--gfx803" */
};

/*
 * Read the first note of each type in the code object SRC: from its sections or, if it
 * has no sections, from its segments.
 * INVALID_FORMAT: a note passes the end; the metadata is larger than KP_METADATA_MAX.  On
 * failure OUT is empty.
 */
kpack_error_t kp_amdgpu_notes_read(const struct kp_source *src,
				   const struct kp_sections *sections,
				   struct kp_amdgpu_notes *out, struct kpackx_error *why);
void kp_amdgpu_notes_fini(struct kp_amdgpu_notes *notes);

/* The metadata's contents besides the kernels; spans borrow from the metadata. */
struct kp_amdgpu_metadata {
	struct kp_span target; /* "amdgcn-amd-amdhsa--gfx90a:xnack+"; empty: not stated */
	uint64_t version[2];   /* of the metadata, e.g. 1.2 */
};

/*
 * Read METADATA, the MessagePack of the note, and append its kernels to OUT.
 * INVALID_FORMAT: the metadata is damaged, or a kernel has no name.
 */
kpack_error_t kp_amdgpu_metadata_read(struct kp_span metadata,
				      struct kp_amdgpu_metadata *facts,
				      struct kp_object *out, struct kpackx_error *why);

/*
 * Append the kernels that the symbols of the code object SRC name, with the numbers from
 * their descriptors: symbols NAME.kd in code object v3 and later, kernel symbols in v2.
 * A kernel whose descriptor is not in SRC gets its name only.
 * INVALID_FORMAT: the names are not in SRC, or are more bytes than SRC can hold.
 */
kpack_error_t kp_amdgpu_symbols_read(const struct kp_source *src,
				     const struct kp_sections *sections,
				     struct kp_object *out, struct kpackx_error *why);

#endif
