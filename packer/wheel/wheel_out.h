/* SPDX-License-Identifier: MIT */
/*
 * Write a wheel: members in the order in which they are added, RECORD last.  The output
 * is reproducible regardless of the number of threads: times are fixed, attributes are
 * the given ones, and the only extra fields are those of zip64.
 *
 * Members are compressed in pieces on several threads before the wheel is assembled; the
 * compressed bytes wait in an unnamed temporary file in the wheel's directory.  No member
 * is ever held in memory as a whole.
 */
#ifndef PACKER_WHEEL_FILE_OUT_H
#define PACKER_WHEEL_FILE_OUT_H

#include "core/base/errors.h"
#include "core/base/span.h"
#include "wheel_in.h"

struct wheel_out;

struct wheel_out_options {
	const char *dir;  /* the directory of the wheel; it exists */
	const char *name; /* its file name */
	unsigned threads; /* 0: one per processor */
	int level;        /* of deflate, 0 to 9; 0: store everything */
	/*
	 * Called with the number of processed bytes, from any thread, one call at a time.
	 */
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
};

#define WHEEL_LEVEL_DEFAULT 6

/*
 * Begin a wheel.  The strings of OPTIONS are copied; ARG is not.  The time of its members
 * is SOURCE_DATE_EPOCH, or the earliest that zip can express, 1980-01-01.
 * INVALID_ARGUMENT: SOURCE_DATE_EPOCH is not a number of seconds.
 */
kpack_error_t wheel_out_new(const struct wheel_out_options *options,
			    struct wheel_out **out, struct kpackx_error *why);
/* Free O; a wheel that was not published leaves no file.  Accepts NULL. */
void wheel_out_close(struct wheel_out *o);

/*
 * Add a member PATH with permission bits MODE.  Members with a suffix of compressed
 * formats (.kpack, .zip, .png, ...) are stored.
 * INVALID_ARGUMENT: PATH is not kp_path_ok, or was already added.
 */
kpack_error_t wheel_out_add_bytes(struct wheel_out *o, const char *path, unsigned mode,
				  struct kp_span bytes, /* copied */
				  struct kpackx_error *why);
/*
 * The same with the bytes of FILE, which is read by wheel_out_finish and must not change.
 */
kpack_error_t wheel_out_add_file(struct wheel_out *o, const char *path, unsigned mode,
				 const char *file, struct kpackx_error *why);
/*
 * Add a copy of MEMBER of the wheel W, with its compressed bytes and its mode; DIGEST is
 * its SHA-256, which the caller has checked.  W must outlive wheel_out_finish.
 */
kpack_error_t wheel_out_add_copy(struct wheel_out *o, const char *path,
				 const struct wheel_in *w, size_t member,
				 const uint8_t digest[32], struct kpackx_error *why);

/* The decoded size of all added members: the total that progress reaches. */
uint64_t wheel_out_size(const struct wheel_out *o);

/*
 * Write all members, then RECORD as DIST_INFO/RECORD, and flush.  The wheel has no name
 * yet; nothing can be added any more.  IO_ERROR; FILE_NOT_FOUND; INVALID_ARGUMENT: a file
 * has changed.
 */
kpack_error_t wheel_out_finish(struct wheel_out *o, const char *dist_info,
			       struct kpackx_error *why);
/* Give the finished wheel its name, replacing an existing file. */
kpack_error_t wheel_out_publish(struct wheel_out *o, struct kpackx_error *why);

#endif
