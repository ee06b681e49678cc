/* SPDX-License-Identifier: MIT */
/* Compressed bundles (ccob.c) made again: the same bytes, given the same encoder. */
#ifndef KP_CORE_FORMAT_LLVM_CCOB_H
#define KP_CORE_FORMAT_LLVM_CCOB_H

#include "core/format/format.h"

#define KP_CCOB_HEADER_MAX 32
#define KP_CCOB_ZLIB 0
#define KP_CCOB_ZSTD 1

/* Bytes of the header; 0: no such version. */
static inline uint64_t kp_ccob_header_size(unsigned version)
{
	static const uint8_t sizes[] = {0, 20, 24, 32};

	return version < sizeof(sizes) ? sizes[version] : 0;
}

/* How a compressed bundle is written, but for its sizes. */
struct kp_ccob_form {
	unsigned version, method;
	uint64_t hash;
	int level;       /* of zstd or zlib; 0: not known */
	bool long_range; /* zstd's long-distance matching */
};

/*
 * Fill C - format, offset, size, payload_size - with the CCOB that begins at OFF of SRC, of
 * whatever payload; no image is listed.  For kp_container_load.
 */
kpack_error_t kp_ccob_measure(const struct kp_source *src, uint64_t off,
			      struct kp_container *c, struct kpackx_error *why);

/* Read version, method and hash of container C of SRC; the level becomes 0. */
kpack_error_t kp_ccob_form_read(const struct kp_source *src, const struct kp_container *c,
				struct kp_ccob_form *out, struct kpackx_error *why);

/* May FORM be written: known version, method and level (0 too)? */
bool kp_ccob_form_ok(const struct kp_ccob_form *form);

/* Hash of a header whose payload is PAYLOAD. */
uint64_t kp_ccob_hash(struct kp_span payload);

/*
 * How container NUMBER of LIST, a CCOB wherever in the scanned SRC it is, is written, and
 * does its hash FIT its decoded PAYLOAD?  One that does not is no failure: readers, LLVM's
 * too, take such files.
 */
kpack_error_t kp_ccob_check(const struct kp_source *src, const struct kp_containers *list,
			    size_t number, const struct kp_payload *payload,
			    struct kp_ccob_form *form, bool *fits,
			    struct kpackx_error *why);

/*
 * Bytes of payloads over which all levels of the containers of one file may be tried: what
 * compresses well is looked at to its end by each of them.
 */
#define KP_CCOB_SEARCH_MAX (UINT64_C(512) << 20)

/*
 * Find the level that makes container C of SRC out of its PAYLOAD, and set it in FORM;
 * where there is none, FORM's level becomes 0 and the answer is a success.  LIKE (or
 * NULL) is tried first, then what compilers do by default, and all others as long as
 * *SEARCH, which begins as KP_CCOB_SEARCH_MAX, has the bytes for it.  After a search in
 * vain it is 0: one file has one compiler.
 */
kpack_error_t kp_ccob_find_level(const struct kp_source *src,
				 const struct kp_container *c, struct kp_span payload,
				 const struct kp_ccob_form *like, uint64_t *search,
				 struct kp_ccob_form *form, struct kpackx_error *why);

/*
 * Write PAYLOAD (at most KP_CCOB_MAX bytes) as FORM says, a level of 0 as compilers do.
 * The caller frees *OUT.
 * NOT_IMPLEMENTED: built without the method; more bytes than the version can state.
 */
kpack_error_t kp_ccob_encode(const struct kp_ccob_form *form, struct kp_span payload,
			     uint8_t **out, size_t *size, struct kpackx_error *why);

#endif
