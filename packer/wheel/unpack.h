/* SPDX-License-Identifier: MIT */
/*
 * Unpack a wheel into a directory, and compare every member with RECORD, even those that
 * are not written.
 */
#ifndef PACKER_WHEEL_FILE_UNPACK_H
#define PACKER_WHEEL_FILE_UNPACK_H

#include "record.h"
#include "wheel_in.h"

struct wheel_unpack {
	const char *dir;  /* exists; its contents are never followed or replaced */
	unsigned threads; /* 0: one per processor */
	/*
	 * True if the member shall be written; called from any thread.  NULL: write all.
	 */
	bool (*wanted)(void *arg, const struct wheel_member *member);
	/* Called with the number of decoded bytes, one call at a time.  May be NULL. */
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
	/*
	 * Gets the SHA-256 of each member by index, also of members for which RECORD has
	 * another kind of hash and of those that are not written.  May be NULL.
	 */
	uint8_t (*digests)[32];
};

/*
 * Unpack W, whose RECORD record_check has read.  Files get their permission bits, without
 * setuid and the like; directories are 0777 less umask.  Nothing is flushed.  After a
 * failure the caller removes the contents of DIR.
 * INVALID_FORMAT: a member is damaged or does not match RECORD.  IO_ERROR.
 */
kpack_error_t wheel_unpack(const struct wheel_in *w, const struct record *record,
			   const struct wheel_unpack *how, struct kpackx_error *why);

#endif
