/* SPDX-License-Identifier: MIT */
/*
 * A wheel that is written: members in the order they are added, RECORD last.  Equal members
 * give equal bytes, whatever the number of threads: times are fixed, attributes are those
 * given, there are no extra fields but those of zip64.
 *
 * Members are compressed in pieces on several threads before the wheel is put together;
 * what they become waits in a nameless temporary file in the wheel's directory.  No member
 * is ever held in memory.
 */
#ifndef PACKER_WHEEL_FILE_OUT_H
#define PACKER_WHEEL_FILE_OUT_H

#include "core/base/errors.h"
#include "packer/wheel/metadata/record_hash.h"
#include "core/base/span.h"
#include "in.h"

struct wheel_out;

struct wheel_out_options {
	const char *dir;  /* where the wheel is to stand; it exists */
	const char *name; /* its file name */
	unsigned threads; /* 0: as many as there are processors */
	int level;        /* of deflate, 0 to 9; 0: everything is stored */
	/* Called with bytes that were worked on, from any thread, one call at a time. */
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
};

#define WHEEL_LEVEL_DEFAULT 6

/*
 * Begin a wheel; what the options point to is copied, but ARG.  The time of its members is
 * SOURCE_DATE_EPOCH, or the first that zip can state, 1980-01-01.
 * INVALID_ARGUMENT: SOURCE_DATE_EPOCH is no number of seconds.
 */
kpack_error_t wheel_out_new(const struct wheel_out_options *options,
			    struct wheel_out **out, struct kpackx_error *why);
/* Free; what was not published leaves nothing.  NULL is fine. */
void wheel_out_close(struct wheel_out *o);

/*
 * Add a member PATH with permission bits MODE.  Names ending as those of what is compressed
 * already (.kpack, .zip, .png, ...) are stored.
 * INVALID_ARGUMENT: not kp_path_ok, or added before.
 */
kpack_error_t wheel_out_add_bytes(struct wheel_out *o, const char *path, unsigned mode,
				  struct kp_span bytes, /* copied */
				  struct kpackx_error *why);
/* FILE is read when the wheel is written, and may not change until then. */
kpack_error_t wheel_out_add_file(struct wheel_out *o, const char *path, unsigned mode,
				 const char *file, struct kpackx_error *why);
/*
 * A member of another wheel, its compressed bytes as they are, and its mode; DIGEST is its
 * SHA-256, which was checked.  W outlives the writing.
 */
kpack_error_t wheel_out_add_copy(struct wheel_out *o, const char *path,
				 const struct wheel_in *w, size_t member,
				 const uint8_t digest[32], struct kpackx_error *why);

/* Decoded bytes of everything that was added: what progress counts up to. */
uint64_t wheel_out_size(const struct wheel_out *o);

/*
 * Write all, then RECORD as DIST_INFO/RECORD, and flush.  Not visible yet; nothing can be
 * added any more.  IO_ERROR; FILE_NOT_FOUND; INVALID_ARGUMENT: a file has changed.
 */
kpack_error_t wheel_out_finish(struct wheel_out *o, const char *dist_info,
			       struct kpackx_error *why);
/* Give the finished wheel its name, replacing what stood there. */
kpack_error_t wheel_out_publish(struct wheel_out *o, struct kpackx_error *why);

#endif
