/* SPDX-License-Identifier: MIT */
/*
 * A file with device code - a fat host binary, or a bare container - as one
 * thing: its containers, and for every wrapper the container it leads to.
 */
#ifndef KP_FATBIN_H
#define KP_FATBIN_H

#include "elf.h"
#include "format/format.h"

enum kp_fatbin_kind {
	KP_FATBIN_NONE,      /* no device code in it */
	KP_FATBIN_ELF,       /* host ELF with .hip_fatbin */
	KP_FATBIN_CONVERTED, /* host ELF whose wrappers are HIPK, with or without it */
	KP_FATBIN_BARE,      /* a bundle, CCOB or code object as a file */
};

struct kp_fatbin {
	enum kp_fatbin_kind kind;
	const char *format; /* "elf", "bundle", "ccob", "code-object"; NULL for NONE */
	struct kp_source source; /* where the containers are: section or file */
	struct kp_elf elf;       /* of any host ELF; type 0: it is none */
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
 * Where code objects are stored: every index (the n of KEY#n) and the container whose objects it
 * has, indices ascending.  A wrapper's index is its number, its container the one it
 * points at; the containers no wrapper leads to follow, in file order.
 */
void kp_fatbin_places(const struct kp_fatbin *fat,
		      void (*fn)(uint32_t index, size_t container, void *arg), void *arg);

#endif
