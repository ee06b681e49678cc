/* SPDX-License-Identifier: MIT */
/*
 * A name of a cuTile kernel while it is read, from left to right without going back.  What
 * is allocated is for what was read already, so that a short name cannot ask for much.
 */
#ifndef KP_CORE_CUTILE_READER_H
#define KP_CORE_CUTILE_READER_H

#include "cutile.h"

struct kp_cutile_reader {
	struct kp_span name;
	size_t pos;
	uint32_t convention;
	struct kp_arena *arena;
	struct kpackx_constraint *stack; /* read, and not in its parent yet */
	size_t n_stack, stack_cap;
	uint32_t *ids; /* alias groups of one constraint */
	size_t n_ids, ids_cap;
	uint8_t *scratch; /* for strings, which are never longer than the name */
	uint32_t groups;  /* alias groups so far */
	size_t arguments; /* of the launch, so far */
	unsigned depth;
	struct kpackx_error *why;
};

/* INVALID_FORMAT, with the offset AT before the text. */
kpack_error_t kp_cutile_fail(struct kp_cutile_reader *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same: WHAT is expected at AT, and what stands there. */
kpack_error_t kp_cutile_unexpected(struct kp_cutile_reader *p, size_t at,
				   const char *what);
kpack_error_t kp_cutile_no_memory(struct kp_cutile_reader *p);

/* The byte AHEAD of the next; -1 behind the end. */
int kp_cutile_peek(const struct kp_cutile_reader *p, size_t ahead);
/* Step over the next byte if it is C. */
bool kp_cutile_take(struct kp_cutile_reader *p, char c);
bool kp_cutile_is_digit(int c);
bool kp_cutile_is_hex(int c); /* in lower case */

/* Digits of a KIND, at least one, without leading zeros. */
kpack_error_t kp_cutile_read_digits(struct kp_cutile_reader *p, bool (*kind)(int),
				    const char *what, struct kp_span *digits);
/* A number of at most MAX. */
kpack_error_t kp_cutile_read_number(struct kp_cutile_reader *p, unsigned base,
				    uint64_t max, const char *what, uint64_t *out);
kpack_error_t kp_cutile_read_int64(struct kp_cutile_reader *p, const char *what,
				   int64_t *out);
/* 2 or more. */
kpack_error_t kp_cutile_read_divisor(struct kp_cutile_reader *p, const char *what,
				     int64_t *out);
/* N hexadecimal digits. */
kpack_error_t kp_cutile_read_hex(struct kp_cutile_reader *p, unsigned n, uint64_t *out);
kpack_error_t kp_cutile_read_dtype(struct kp_cutile_reader *p, kpackx_dtype_t *out);
kpack_error_t kp_cutile_read_string(struct kp_cutile_reader *p,
				    struct kpackx_string *out);

/* What follows the letter of an array; the alias groups that stand here, if any. */
kpack_error_t kp_cutile_read_array(struct kp_cutile_reader *p,
				   struct kpackx_constraint *c);
kpack_error_t kp_cutile_read_groups(struct kp_cutile_reader *p,
				    struct kpackx_constraint *c);

#endif
