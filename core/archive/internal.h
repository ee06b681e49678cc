/* SPDX-License-Identifier: MIT */
/* An open archive, for the two files that know what is in it: archive.c and entry.c. */
#ifndef KP_CORE_ARCHIVE_INTERNAL_H
#define KP_CORE_ARCHIVE_INTERNAL_H

#include "archive.h"
#include "shared.h"
#include "toc.h"

struct kpack_archive {
	char *path;
	int fd;
	struct stat st;
	struct kp_toc toc;
	uint32_t version;

	/*
	 * scheme zstd-per-kernel: see kp_frame_at; borrowed from the table, or `walked`
	 */
	const uint8_t *frames;
	uint8_t *walked;
	uint32_t n_frames;

	struct kp_shared *shared; /* scheme zstd-shared; else NULL */

	/* the objects that have hashes, in order, and where these are in piece_hashes */
	struct kp_hashed {
		uint32_t ordinal, at;
	} * hashed;
	size_t n_hashed;
	_Atomic uint8_t *checked; /* a bit for each entry: see kp_entry_has_parts */

	void *attached; /* see kp_archive_attach */
	void (*free_attached)(void *attached);
};

/* The place of an object's bytes; in a shared archive they have no place of their own. */
struct kp_toc_blob kp_stored_place(const struct kpack_archive *a, uint32_t ordinal);

#endif
