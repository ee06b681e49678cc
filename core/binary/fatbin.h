/* SPDX-License-Identifier: MIT */
/*
 * A file with device code - a fat host binary, or a bare container - as one
 * thing: its containers, and for every wrapper the container it leads to.
 */
#ifndef KP_CORE_BINARY_FATBIN_H
#define KP_CORE_BINARY_FATBIN_H

#include "elf_file.h"
#include "core/format/format.h"

enum kp_fatbin_kind {
	KP_FATBIN_NONE,      /* no device code in it */
	KP_FATBIN_ELF,       /* host ELF with .hip_fatbin */
	KP_FATBIN_CONVERTED, /* host ELF with HIPK wrappers, with or without .hip_fatbin */
	KP_FATBIN_BARE,      /* a bundle, CCOB or code object as a file */
	KP_FATBIN_NESTED,    /* anything else that has some: kp_fatbin_nest only */
};

struct kp_fatbin {
	enum kp_fatbin_kind kind;
	const char *format;      /* "elf", else of the first container; NULL for NONE */
	struct kp_source source; /* where the containers are: section or file */
	/* kp_fatbin_nest: in other sections of a linked binary is code that is not here */
	bool other_sections;
	struct kp_elf elf; /* of any host ELF; type 0: it is none */
	struct kp_containers containers;
	ptrdiff_t *
		wrapper_container; /* per wrapper: container index, or -1; NULL for NONE */
	ptrdiff_t
		*loose; /* per container: position among those without a wrapper, or -1 */
};

/*
 * Look at the file open at FD.  A file of another kind is a success with kind NONE.  The
 * descriptor is borrowed for the life of OUT.  A wrapper that leads to no
 * container's start is INVALID_FORMAT, unless it is already HIPK, or was found by
 * scanning (elf.wrappers_scanned): then it only looked like one and is left out.
 */
kpack_error_t kp_fatbin_open(int fd, uint64_t size, struct kp_fatbin *out,
			     struct kpackx_error *why);
void kp_fatbin_fini(struct kp_fatbin *fat);

/*
 * The same of any file: containers and objects of every format, and what is in them in turn
 * (nest.h).  Kind NESTED: its source is the file.  Also in kind BARE containers can be
 * nested then; of compressed bundles whose entries are all for HIP, which takes them as code
 * objects, none is looked for.
 * A linked host binary is what kp_fatbin_open says; with SECTIONS, what else is in it -
 * .nv_fatbin and the like - follows its containers, which are the file's then, not the
 * section's, and of kind NESTED when there was none.
 */
kpack_error_t kp_fatbin_nest(int fd, uint64_t size, bool sections, struct kp_fatbin *out,
			     struct kpackx_error *why);

/* Does HEAD (20 bytes or more) begin a linked host binary: an ELF, but no object? */
bool kp_fatbin_is_linked(struct kp_span head);

/*
 * Number the containers without a wrapper: those that COUNT says, NULL: all.  The others get
 * no index.
 */
kpack_error_t kp_fatbin_number(struct kp_fatbin *fat, const bool *count,
			       struct kpackx_error *why);

/*
 * Where code objects are stored: every index (the n of KEY#n) and the container whose objects it
 * has, indices ascending.  A wrapper's index is its number, its container the one it
 * points at; the containers no wrapper leads to follow, in file order.
 */
void kp_fatbin_places(const struct kp_fatbin *fat,
		      void (*fn)(uint32_t index, size_t container, void *arg), void *arg);

#endif
