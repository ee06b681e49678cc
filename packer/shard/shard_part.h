/* SPDX-License-Identifier: MIT */
/* The output of one shard, opened to be joined with the others. */
#ifndef PART_H
#define PART_H

#include "core/archive/archive.h"
#include "record.h"

/* One of its archives. */
struct part_archive {
	char *file; /* name in SHARD_DIR */
	struct kpack_archive *archive;
	uint32_t *entries; /* per ordinal: an entry that has it; UINT32_MAX: none */
};

struct part {
	const char *dir; /* as given */
	char *own;       /* its SHARD_DIR */
	uint8_t *bytes;  /* of the record */
	struct shard_record record;
	struct part_archive *archives; /* those that were asked for */
	size_t n_archives;
};

/*
 * Read the record of the part DIR, which is borrowed.  OUT must be closed in any case.
 * INVALID_FORMAT: DIR is no part, or one without a record: its run was not finished; errors of
 * shard_record_parse.
 */
kpack_error_t part_open(const char *dir, struct part *out, struct kpackx_error *why);
void part_close(struct part *part);

/* Is every file what the record says? */
kpack_error_t part_check(const struct part *part, struct kpackx_error *why);

/*
 * The stored bytes of ORDINAL in the archive of PLACE and VOLUME, in a buffer that is kept from
 * one call to the next.  INVALID_FORMAT: there are none.
 */
struct part_frame {
	uint8_t *bytes;
	size_t cap;
};
kpack_error_t part_read(struct part *part, const char *place, unsigned volume,
			uint32_t ordinal, struct part_frame *frame, struct kp_span *out,
			struct kpackx_error *why);

#endif
