/* SPDX-License-Identifier: MIT */
/* The global symbols that an object defines, for the index of an archive. */
#ifndef KP_CORE_FORMAT_SYMBOLS_H
#define KP_CORE_FORMAT_SYMBOLS_H

#include "core/base/errors.h"
#include "core/base/file.h"

/* Names of several objects, each followed by a NUL. */
struct kp_symbols {
	char *names;
	size_t size, cap; /* bytes */
	size_t count;
	bool object; /* true if at least one was an object, even one without names */
};

/*
 * Append the names that SRC, a little-endian ELF64 or LLVM bitcode, defines, in the order
 * of its symbol table.  For other objects, and for unreadable ones, nothing is appended.
 * OUT_OF_MEMORY, IO_ERROR; INVALID_ARGUMENT: more than KP_INDEX_MAX bytes of names.
 */
kpack_error_t kp_symbols_add(const struct kp_source *src, struct kp_symbols *out,
			     struct kpackx_error *why);
void kp_symbols_fini(struct kp_symbols *symbols);

/* For readers of symbol tables: append NAME. */
kpack_error_t kp_symbols_put(struct kp_symbols *out, struct kp_span name,
			     struct kpackx_error *why);

/* As kp_symbols_add, for bitcode only; INVALID_FORMAT: SRC cannot be read. */
kpack_error_t kp_bitcode_symbols(const struct kp_source *src, struct kp_symbols *out,
				 struct kpackx_error *why);

#endif
