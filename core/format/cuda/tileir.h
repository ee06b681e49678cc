/* SPDX-License-Identifier: MIT */
/* A module of TileIR bytecode while it is read. */
#ifndef KP_CORE_FORMAT_CUDA_TILEIR_H
#define KP_CORE_FORMAT_CUDA_TILEIR_H

#include "core/base/strbuf.h"
#include "core/format/object.h"

/* Sections, by their numbers. */
enum {
	KP_TILEIR_STRINGS = 1,
	KP_TILEIR_FUNCTIONS = 2,
	KP_TILEIR_DEBUG = 3,
	KP_TILEIR_CONSTANTS = 4,
	KP_TILEIR_TYPES = 5,
	KP_TILEIR_GLOBALS = 6,
	KP_TILEIR_SECTIONS,
};

/* A run of bytes being read. */
struct kp_tileir_cursor {
	uint64_t pos, end;
};

/* Items that begin at offsets; the last ends with the section. */
struct kp_tileir_table {
	uint64_t count, offsets; /* where the offsets stand */
	uint64_t data, data_size;
	unsigned width; /* bytes of an offset */
};

struct kp_tileir {
	struct kp_window window;
	uint8_t version[2];
	uint16_t tag;
	struct kp_tileir_cursor sections[KP_TILEIR_SECTIONS]; /* end 0: there is none */
	struct kp_tileir_table strings, types, constants;
	uint8_t *named; /* a bit for each string: a function has it */
	uint64_t size;
	struct kp_object *out;
	struct kp_compose hints; /* of one function */
	size_t hints_left;       /* bytes of hints that may still be kept */
	bool many_targets;
	struct kpackx_error *why;
};

/* What the sections are called in errors. */
extern const char *const kp_tileir_sections[KP_TILEIR_SECTIONS];

/* INVALID_FORMAT with words. */
#define KP_TILEIR_INVALID(m, ...)                                                        \
	kp_fail((m)->why, KPACK_ERROR_INVALID_FORMAT, __VA_ARGS__)

/* The next N bytes; they stay until the next call. */
kpack_error_t kp_tileir_get(struct kp_tileir *m, struct kp_tileir_cursor *c, size_t n,
			    const uint8_t **bytes);
kpack_error_t kp_tileir_get_byte(struct kp_tileir *m, struct kp_tileir_cursor *c,
				 uint8_t *out);
kpack_error_t kp_tileir_get_varint(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   uint64_t *out);
/* The number of a WHAT of which there are COUNT. */
kpack_error_t kp_tileir_get_index(struct kp_tileir *m, struct kp_tileir_cursor *c,
				  uint64_t count, const char *what, uint64_t *out);
/* A string's number, and the string, of at most MAX bytes; free() it, failure or not. */
kpack_error_t kp_tileir_get_string(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   size_t max, char **out);
/* String INDEX, which is there. */
kpack_error_t kp_tileir_read_string(struct kp_tileir *m, uint64_t index, size_t max,
				    char **out);

/* Read the section of functions, and that of global variables, into m->out. */
kpack_error_t kp_tileir_functions(struct kp_tileir *m);
kpack_error_t kp_tileir_globals(struct kp_tileir *m);

#endif
