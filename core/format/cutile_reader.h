/* SPDX-License-Identifier: MIT */
/*
 * Reading the name of a cuTile kernel, from left to right without going back.  Memory is
 * allocated only for parts that were read, so that a short name cannot request much.
 */
#ifndef KP_CORE_CUTILE_READER_H
#define KP_CORE_CUTILE_READER_H

#include "cutile.h"

struct kp_cutile_reader {
	struct kp_span name;
	size_t pos;
	uint32_t convention;
	struct kp_arena *arena;
	struct kpackx_constraint *stack; /* read, but not yet moved to the parent */
	size_t n_stack, stack_cap;
	uint32_t *ids; /* alias groups of one constraint */
	size_t n_ids, ids_cap;
	uint8_t *scratch; /* for a string, which is never longer than the name */
	uint32_t groups;  /* alias groups so far */
	size_t arguments; /* launch arguments so far */
	unsigned depth;
	struct kpackx_error *why;
};

/* Fail with INVALID_FORMAT; the offset AT precedes the message. */
kpack_error_t kp_cutile_fail(struct kp_cutile_reader *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As kp_cutile_fail, with the message that WHAT is expected at AT. */
kpack_error_t kp_cutile_unexpected(struct kp_cutile_reader *p, size_t at,
				   const char *what);
kpack_error_t kp_cutile_no_memory(struct kp_cutile_reader *p);

/* Return the byte at distance AHEAD from the next one; -1 after the end. */
int kp_cutile_peek(const struct kp_cutile_reader *p, size_t ahead);
/* Skip the next byte if it is C; true if it was. */
bool kp_cutile_take(struct kp_cutile_reader *p, char c);
bool kp_cutile_is_digit(int c);
bool kp_cutile_is_hex(int c); /* in lower case */

/* Read at least one digit of a KIND, without leading zeros. */
kpack_error_t kp_cutile_read_digits(struct kp_cutile_reader *p, bool (*kind)(int),
				    const char *what, struct kp_span *digits);
/* Read a number of at most MAX. */
kpack_error_t kp_cutile_read_number(struct kp_cutile_reader *p, unsigned base,
				    uint64_t max, const char *what, uint64_t *out);
kpack_error_t kp_cutile_read_int64(struct kp_cutile_reader *p, const char *what,
				   int64_t *out);
/* Read a number of 2 or more. */
kpack_error_t kp_cutile_read_divisor(struct kp_cutile_reader *p, const char *what,
				     int64_t *out);
/* Read N hexadecimal digits. */
kpack_error_t kp_cutile_read_hex(struct kp_cutile_reader *p, unsigned n, uint64_t *out);
kpack_error_t kp_cutile_read_dtype(struct kp_cutile_reader *p, kpackx_dtype_t *out);
kpack_error_t kp_cutile_read_string(struct kp_cutile_reader *p,
				    struct kpackx_string *out);

/* Read an array after its letter; read the alias groups at the cursor, if any. */
kpack_error_t kp_cutile_read_array(struct kp_cutile_reader *p,
				   struct kpackx_constraint *c);
kpack_error_t kp_cutile_read_groups(struct kp_cutile_reader *p,
				    struct kpackx_constraint *c);

#endif
