/* SPDX-License-Identifier: MIT */
/*
 * Writing compressed bundles (ccob.c reads them): the same encoder gives the same bytes.
 */
#ifndef KP_CORE_FORMAT_LLVM_CCOB_H
#define KP_CORE_FORMAT_LLVM_CCOB_H

#include "format.h"

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

/* The search for the compressor of one file's containers; begins as KP_CCOB_SEARCH. */
struct kp_ccob_search {
	struct kp_ccob_form like; /* the last form that gave the same bytes; or level 0 */
	uint64_t budget;          /* bytes of payloads that may be compressed whole */
	unsigned searches;        /* times that all levels may be tried */
	unsigned failures; /* containers without a fitting level, one after another */
};
#define KP_CCOB_SEARCH                                                                   \
	{                                                                                \
		.budget = UINT64_C(64) << 20, .searches = 16                             \
	}

/* After so many failures nothing is tried any more: one file comes from one compiler. */
#define KP_CCOB_FAILURES_MAX 3

/*
 * Find the level that compresses PAYLOAD to the bytes of container C of SRC, and set it
 * in FORM.  If there is none, because another zstd compressed it, FORM gets the
 * likeliest one.  The level is 0 only if the method is not built in.
 */
kpack_error_t kp_ccob_find_level(const struct kp_source *src,
				 const struct kp_container *c, struct kp_payload *payload,
				 struct kp_ccob_search *state, struct kp_ccob_form *form,
				 struct kpackx_error *why);

/*
 * Compress PAYLOAD (at most KP_CCOB_MAX bytes) as FORM says; level 0 means the compilers'
 * default.  The caller frees *OUT.
 * NOT_IMPLEMENTED: built without the method, or the version's header cannot state the
 * size.
 */
kpack_error_t kp_ccob_encode(const struct kp_ccob_form *form, struct kp_span payload,
			     uint8_t **out, size_t *size, struct kpackx_error *why);

/*
 * Compress PAYLOAD, calling the libraries as LLVM does, into a block whose first ROOM bytes
 * stay free; *SIZE counts them.  The caller frees *OUT.
 * NOT_IMPLEMENTED: built without METHOD.  INVALID_ARGUMENT: zlib has no such level.
 */
kpack_error_t kp_llvm_compress(unsigned method, int level, bool long_range,
			       struct kp_span payload, size_t room, uint8_t **out,
			       size_t *size, struct kpackx_error *why);

/*
 * Decode the zlib stream at the beginning of SRC, which must have SIZE bytes.
 * NOT_IMPLEMENTED: built without zlib.
 */
kpack_error_t kp_zlib_decode(const struct kp_source *src, uint8_t *out, size_t size,
			     struct kpackx_error *why);

#endif
