/* SPDX-License-Identifier: MIT */
/*
 * Notes of AMDGPU code objects: the target, and the metadata of the kernels.
 * Source: LLVM's AMDGPU usage document (note records).
 */
#ifndef KP_CORE_FORMAT_AMDGPU_NOTES_H
#define KP_CORE_FORMAT_AMDGPU_NOTES_H

#include "sections.h"

struct kp_amdgpu_notes {
	/* NT_AMDGPU_METADATA: MessagePack, owned; NULL: none */
	uint8_t *metadata;
	size_t metadata_size;

	uint8_t build_id[32]; /* NT_GNU_BUILD_ID */
	size_t build_id_size; /* 0: none, or longer */

	/* only in code object v2; "" and false for later versions */
	bool has_version, has_isa;
	uint32_t version[2]; /* major, minor */
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

#endif
