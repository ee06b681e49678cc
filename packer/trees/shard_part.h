/* SPDX-License-Identifier: MIT */
/* The part that one shard wrote, opened to be joined with the others. */
#ifndef PACKER_SHARD_SHARD_PART_H
#define PACKER_SHARD_SHARD_PART_H

#include "core/archive/archive.h"
#include "shard_record.h"

/* An archive of a part. */
struct shard_archive {
	char *file; /* name in SHARD_DIR */
	struct kpack_archive *archive;
	uint32_t *entries; /* per ordinal: an entry that names it; UINT32_MAX: none */
};

struct shard_part {
	const char *dir; /* as given */
	char *own;       /* its SHARD_DIR */
	uint8_t *bytes;  /* of the record */
	uid_t owner;     /* of the record */
	struct shard_record record;
	struct shard_archive *archives; /* those that part_read has opened */
	size_t n_archives;
};

/*
 * Read the record of the part DIR, which is borrowed.  The caller must close OUT in any
 * case.
 * INVALID_FORMAT: DIR is no part, or has no record because its run was not finished.
 * Errors of shard_record_parse.
 */
kpack_error_t shard_part_open(const char *dir, struct shard_part *out,
			      struct kpackx_error *why);
void shard_part_close(struct shard_part *part);

/*
 * Check that every file is what the record says.  For root, a record that belongs to
 * another user may name only files of that user.
 */
kpack_error_t shard_part_check(struct shard_part *part, struct kpackx_error *why);

/*
 * Read the bytes of ORDINAL in the archive of PLACE and VOLUME, as archive_set_store takes
 * them, into FRAME, a buffer that is reused from one call to the next.
 * INVALID_FORMAT: no entry names that ordinal.
 */
struct shard_frame {
	uint8_t *bytes;
	size_t cap;
};
kpack_error_t part_read(struct shard_part *part, const char *place, unsigned volume,
			uint32_t ordinal, struct shard_frame *frame, struct kp_span *out,
			struct kpackx_error *why);

#endif
