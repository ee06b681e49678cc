/* SPDX-License-Identifier: MIT */
/*
 * What a shard writes down while it packs, so that all shards together can be replayed as one
 * run: see shard_record.h for what becomes of it.  A fault of memory is kept and reported at the
 * end.  One thread at a time.
 */
#ifndef PACKER_SHARD_LOG_H
#define PACKER_SHARD_LOG_H

#include "packer/pack/args.h"
#include "record.h"

struct shard_log;

kpack_error_t shard_log_new(struct shard_log **out, struct kpackx_error *why);
void shard_log_free(struct shard_log *log); /* NULL is fine */

/* Binary NUMBER of the whole plan begins, in the volume that it has now. */
void shard_log_binary(struct shard_log *log, uint32_t number,
		      const struct plan_binary *binary);
/* An object of it was stored, or was stored before. */
void shard_log_object(struct shard_log *log, const struct archive_object *object);
/* An entry of that object. */
void shard_log_entry(struct shard_log *log, const char *arch, struct kp_span key,
		     const struct kp_writer_entry *entry);
/* Something stands in the part, or does not stand in it. */
void shard_log_item(struct shard_log *log, const struct shard_item *item);
/* The binary that stands at PATH was converted. */
void shard_log_converted(struct shard_log *log, uint32_t number, const char *path);

/* Everything that a part depends on besides its input, on the heap. */
kpack_error_t shard_log_options(const struct pack_args *args, char **out,
				struct kpackx_error *why);
/* This program, and the library whose frames it writes, into OUT, which is returned. */
#define SHARD_VERSION_SIZE 64
const char *shard_log_version(char out[SHARD_VERSION_SIZE]);

/* Write the record into DIR, at once and for good, and after everything else. */
kpack_error_t shard_log_write(struct shard_log *log, const struct pack_args *args,
			      const uint8_t plan[16], const char *dir,
			      struct kpackx_error *why);

#endif
