/* SPDX-License-Identifier: MIT */
/* State while a module of TileIR bytecode is read. */
#ifndef KP_CORE_FORMAT_CUDA_TILEIR_H
#define KP_CORE_FORMAT_CUDA_TILEIR_H

#include "core/base/strbuf.h"
#include "object.h"

/* Section numbers. */
enum {
	KP_TILEIR_STRINGS = 1,
	KP_TILEIR_FUNCTIONS = 2,
	KP_TILEIR_DEBUG = 3,
	KP_TILEIR_CONSTANTS = 4,
	KP_TILEIR_TYPES = 5,
	KP_TILEIR_GLOBALS = 6,
	KP_TILEIR_SECTIONS,
};

/* The next byte to read, and the end of the range. */
struct kp_tileir_cursor {
	uint64_t pos, end;
};

/* Items at increasing offsets; the last item ends with the section. */
struct kp_tileir_table {
	uint64_t count, offsets; /* OFFSETS: where the array of item offsets begins */
	uint64_t data, data_size;
	unsigned width; /* bytes of an offset */
};

struct kp_tileir {
	struct kp_window window;
	uint8_t version[2];
	uint16_t tag;
	struct kp_tileir_cursor sections[KP_TILEIR_SECTIONS]; /* end 0: absent */
	struct kp_tileir_table strings, types, constants;
	uint8_t *named; /* one bit per string: set if it is the name of a function */
	uint64_t size;
	struct kp_object *out;
	struct kp_compose hints; /* of one function */
	size_t hints_left;       /* bytes of hints that may still be kept */
	bool many_targets;
	struct kpackx_error *why;
};

/* Names of the sections in error messages. */
extern const char *const kp_tileir_sections[KP_TILEIR_SECTIONS];

/* Fail with INVALID_FORMAT and a message. */
#define KP_TILEIR_INVALID(m, ...)                                                        \
	kp_fail((m)->why, KPACK_ERROR_INVALID_FORMAT, __VA_ARGS__)

/* Get the next N bytes; they stay valid until the next call. */
kpack_error_t kp_tileir_get(struct kp_tileir *m, struct kp_tileir_cursor *c, size_t n,
			    const uint8_t **bytes);
kpack_error_t kp_tileir_get_byte(struct kp_tileir *m, struct kp_tileir_cursor *c,
				 uint8_t *out);
kpack_error_t kp_tileir_get_varint(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   uint64_t *out);
/* Read the index of a WHAT; INVALID_FORMAT unless it is less than COUNT. */
kpack_error_t kp_tileir_get_index(struct kp_tileir *m, struct kp_tileir_cursor *c,
				  uint64_t count, const char *what, uint64_t *out);
/* Read a string's index, then that string, as kp_tileir_read_string. */
kpack_error_t kp_tileir_get_string(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   size_t max, char **out);
/*
 * Read string INDEX, which exists, of at most MAX bytes.  The caller sets *OUT to NULL
 * before and frees it after, on failure too.
 */
kpack_error_t kp_tileir_read_string(struct kp_tileir *m, uint64_t index, size_t max,
				    char **out);

/* Read the functions section and the globals section into m->out. */
kpack_error_t kp_tileir_functions(struct kp_tileir *m);
kpack_error_t kp_tileir_globals(struct kp_tileir *m);

#endif
