/* SPDX-License-Identifier: MIT */
/*
 * A file with device code, which is a fat host binary or a bare container: its
 * containers, and for every wrapper the container it points to.
 */
#ifndef KP_CORE_HOST_FATBIN_H
#define KP_CORE_HOST_FATBIN_H

#include "host_file.h"
#include "core/format/format.h"

enum kp_fatbin_kind {
	KP_FATBIN_NONE,      /* no device code in it */
	KP_FATBIN_HOST,      /* host binary with .hip_fatbin */
	KP_FATBIN_CONVERTED, /* host binary with HIPK wrappers; may lack .hip_fatbin */
	KP_FATBIN_BARE,      /* a bundle, CCOB or code object as a file */
	KP_FATBIN_NESTED,    /* any other file with device code: kp_fatbin_nest only */
};

struct kp_fatbin {
	enum kp_fatbin_kind kind;
	const char
		*format; /* "elf", "pe", else that of the first container; NONE: NULL */
	struct kp_source source; /* the section or file that has the containers */
	/*
	 * kp_fatbin_nest: why code of a linked binary can only be copied, and is not listed;
	 * static; NULL: all is listed
	 */
	const char *unlisted;
	struct kp_host host; /* of any host binary; type 0: it is none */
	struct kp_containers containers;
	ptrdiff_t *wrapper_container; /* per wrapper: container, or -1; NONE: NULL */
	ptrdiff_t *loose; /* per container: number among those without a wrapper, or -1 */
};

/*
 * Read the file open at FD (SIZE bytes).  A file without device code is a success with
 * kind NONE.  OUT borrows the descriptor until kp_fatbin_fini.  A wrapper that does not
 * point to the start of a container is INVALID_FORMAT, unless it already is HIPK, or was
 * found by scanning (host.wrappers_scanned): then it is not a wrapper and is ignored.
 */
kpack_error_t kp_fatbin_open(int fd, uint64_t size, struct kp_fatbin *out,
			     struct kpackx_error *why);
void kp_fatbin_fini(struct kp_fatbin *fat);

/*
 * Check that the wrappers of FAT, a converted file, lead to its marker, host.marker; its recipe is
 * host.layout, and it has device code (--keep-device-code) unless host.fatbin_nobits.
 * NOT_IMPLEMENTED: FAT is not converted.  INVALID_FORMAT: wrappers are HIPK but the marker is
 * missing, or a wrapper does not point to it.
 */
kpack_error_t kp_fatbin_check_marker(const struct kp_fatbin *fat,
				     struct kpackx_error *why);

/*
 * As kp_fatbin_open, for any file: finds containers and objects of every format, and the
 * containers nested in them (core/format/format.h).  Kind NESTED: the source is the file.
 * Kind BARE can also have nested containers; they are not searched for in a compressed
 * bundle whose entries are all for HIP, because HIP treats the entries as code objects.
 * A linked host binary gives the result of kp_fatbin_open, which is kind NONE for those that
 * are no 64-bit little-endian ELF, or are without section names.  With SECTIONS, the
 * containers of other sections - .nv_fatbin and the like - are appended, and those of such
 * binaries; then the source is the file, not the section, and kind NONE becomes NESTED if a
 * container was found.
 */
kpack_error_t kp_fatbin_nest(int fd, uint64_t size, bool sections, struct kp_fatbin *out,
			     struct kpackx_error *why);

/* Whether wrappers of a host binary of FORMAT lead into its section NAME. */
bool kp_fatbin_is_section(const struct kp_format *format, const char *name);

/* The `unlisted` of a binary with CUDA code. */
extern const char kp_fatbin_cuda[];

/*
 * Whether HEAD (KP_HEAD_SIZE bytes are enough) begins a linked host binary: an ELF of any
 * class, but no object; or a PE.
 */
bool kp_fatbin_is_linked(struct kp_span head);

/*
 * Whether the file open at FD, which kp_fatbin_nest refuses, has device code: as far as it
 * can be read, it has a container of it, or a section for some, or wrappers.
 */
bool kp_fatbin_has_code(int fd, uint64_t size);

/*
 * Number the containers without a wrapper for which COUNT is true (NULL: all).
 * Containers for which COUNT is false get no index.
 */
kpack_error_t kp_fatbin_number(struct kp_fatbin *fat, const bool *count,
			       struct kpackx_error *why);

/*
 * Call FN with every index (the n of KEY#n) and the container whose objects have this
 * index, in ascending order.  A wrapper's index is its number, and its container the one
 * that it points to.  Containers without a wrapper follow, in file order.
 */
void kp_fatbin_places(const struct kp_fatbin *fat,
		      void (*fn)(uint32_t index, size_t container, void *arg), void *arg);

#endif
