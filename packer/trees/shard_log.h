/* SPDX-License-Identifier: MIT */
/*
 * The log that a shard keeps while it packs, so that all shards together can be replayed
 * as one run; see record.h for the file it becomes.  One thread at a time.
 */
#ifndef PACKER_SHARD_LOG_H
#define PACKER_SHARD_LOG_H

#include "packer/pack/args.h"
#include "shard_record.h"

struct shard_log;

struct shard_log *shard_log_new(void);
void shard_log_free(struct shard_log *log); /* NULL is fine */

/* Log that binary NUMBER of the whole plan begins, in the volume that it has now. */
void shard_log_binary(struct shard_log *log, uint32_t number,
		      const struct plan_binary *binary);
/* Log that an object of that binary was stored, or is already stored. */
void shard_log_object(struct shard_log *log, const struct archive_object *object);
/* Log an entry for that object. */
void shard_log_entry(struct shard_log *log, const char *arch, struct kp_span key,
		     const struct kp_writer_entry *entry);
/* Log an item that is in the part, or is absent from it. */
void shard_log_item(struct shard_log *log, const struct shard_item *item);
/* Log that binary NUMBER, at PATH, was converted. */
void shard_log_converted(struct shard_log *log, uint32_t number, const char *path);

/* Returns the options that a part depends on, as text on the heap. */
char *shard_log_options(const struct pack_args *args);
/*
 * Write the versions of this program and of the library that compresses its frames to
 * OUT, which is returned.
 */
#define SHARD_VERSION_SIZE 64
const char *shard_log_version(char out[SHARD_VERSION_SIZE]);

/*
 * Write the record into DIR, at once and for good.  Call it after everything else is
 * written.
 */
kpack_error_t shard_log_write(struct shard_log *log, const struct pack_args *args,
			      const uint8_t plan[16], const char *dir,
			      struct kpackx_error *why);

#endif
