/* SPDX-License-Identifier: MIT */
/*
 * Writing compressed bundles (ccob.c reads them): the same encoder gives the same bytes.
 */
#ifndef KP_CORE_FORMAT_LLVM_CCOB_H
#define KP_CORE_FORMAT_LLVM_CCOB_H

#include "core/format/format.h"

#define KP_CCOB_HEADER_MAX 32
#define KP_CCOB_ZLIB 0
#define KP_CCOB_ZSTD 1

/* Return the bytes of the header; 0: unknown version. */
static inline uint64_t kp_ccob_header_size(unsigned version)
{
	static const uint8_t sizes[] = {0, 20, 24, 32};

	return version < sizeof(sizes) ? sizes[version] : 0;
}

/* All parameters of a compressed bundle except its sizes. */
struct kp_ccob_form {
	unsigned version, method;
	uint64_t hash;
	int level;       /* of zstd or zlib; 0: unknown */
	bool long_range; /* zstd's long-distance matching */
};

/*
 * Fill C (format, offset, size, payload_size) for the CCOB at offset OFF of SRC, so that
 * kp_container_load can decode it.  The payload is not looked at and no image is listed.
 */
kpack_error_t kp_ccob_measure(const struct kp_source *src, uint64_t off,
			      struct kp_container *c, struct kpackx_error *why);

/* Read version, method and hash of container C of SRC; the level becomes 0. */
kpack_error_t kp_ccob_form_read(const struct kp_source *src, const struct kp_container *c,
				struct kp_ccob_form *out, struct kpackx_error *why);

/* True if FORM can be written: known version and method, and a possible level or 0. */
bool kp_ccob_form_ok(const struct kp_ccob_form *form);

/* Return the hash that a header states for PAYLOAD. */
uint64_t kp_ccob_hash(struct kp_span payload);

/*
 * Read FORM of container NUMBER of LIST, a CCOB at any depth of the scanned SRC.  *FITS
 * becomes true if its hash is that of its decoded PAYLOAD.  A wrong hash is no failure,
 * because readers, LLVM's too, accept such files.
 */
kpack_error_t kp_ccob_check(const struct kp_source *src, const struct kp_containers *list,
			    size_t number, const struct kp_payload *payload,
			    struct kp_ccob_form *form, bool *fits,
			    struct kpackx_error *why);

/*
 * Budget for one file: the sum of the payload bytes for which all levels may be tried.
 * Each level reads a payload that compresses well to its end.
 */
#define KP_CCOB_SEARCH_MAX (UINT64_C(512) << 20)

/*
 * Find the level that compresses PAYLOAD to the bytes of container C of SRC, and set it
 * in FORM; if there is none, succeed and set FORM's level to 0.  The level of LIKE (or
 * NULL) is tried first, then the compilers' default, then all other levels as long as the
 * budget *SEARCH, initially KP_CCOB_SEARCH_MAX, suffices.  A search without result sets
 * *SEARCH to 0, because one file comes from one compiler.
 */
kpack_error_t kp_ccob_find_level(const struct kp_source *src,
				 const struct kp_container *c, struct kp_span payload,
				 const struct kp_ccob_form *like, uint64_t *search,
				 struct kp_ccob_form *form, struct kpackx_error *why);

/*
 * Compress PAYLOAD (at most KP_CCOB_MAX bytes) as FORM says; level 0 means the compilers'
 * default.  The caller frees *OUT.
 * NOT_IMPLEMENTED: built without the method, or the version's header cannot state the
 * size.
 */
kpack_error_t kp_ccob_encode(const struct kp_ccob_form *form, struct kp_span payload,
			     uint8_t **out, size_t *size, struct kpackx_error *why);

#endif
