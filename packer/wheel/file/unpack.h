/* SPDX-License-Identifier: MIT */
/*
 * A wheel into a directory, every member compared with RECORD on the way, whether it is
 * written or not.
 */
#ifndef PACKER_WHEEL_FILE_UNPACK_H
#define PACKER_WHEEL_FILE_UNPACK_H

#include "packer/wheel/metadata/record.h"
#include "in.h"

struct wheel_unpack {
	const char *dir;  /* exists; what is in it is never followed or replaced */
	unsigned threads; /* 0: as many as there are processors */
	/* Is the member to be written?  NULL: all are.  From any thread. */
	bool (*wanted)(void *arg, const struct wheel_member *member);
	/* Called with bytes that were decoded; one call at a time.  NULL is fine. */
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
	/*
	 * 32 bytes for each member by its number, filled with SHA-256s, also of members whose
	 * RECORD has another hash and of those that are not written; NULL: not wanted.
	 */
	uint8_t (*digests)[32];
};

/*
 * Unpack W, whose RECORD was read by record_check.  Files get their permission bits, without
 * setuid and the like; directories are 0777 less umask.  Nothing is flushed, and what a
 * failure leaves in DIR is the caller's to remove.
 * INVALID_FORMAT: a member is damaged or RECORD lies.  IO_ERROR.
 */
kpack_error_t wheel_unpack(const struct wheel_in *w, const struct record *record,
			   const struct wheel_unpack *how, struct kpackx_error *why);

#endif
