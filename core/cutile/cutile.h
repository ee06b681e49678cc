/* SPDX-License-Identifier: MIT */
/*
 * Names of cuTile's kernels: NAME_KtN(_PARAMETER)*, where N is the calling convention.  The
 * signature they stand for is struct kpackx_signature of kpackx.h.
 *
 *   S dtype                               scalar
 *   A ndim dtype (_ mask predicates)* (_ extras)?    array
 *       mask: hexadecimal, bit k is dimension k; groups ascend by mask
 *       predicates: s int, shape constant; i int, shape divisor; t int, stride constant;
 *           v int, stride divisor; l int, lower bound of the stride; in this order
 *       extras: p int, base address divisor; g hex, alias group; i, aliases itself;
 *           u or w, 32-bit unsigned or 64-bit index; in this order
 *   L (g hex)* i? array                   list; i: its elements alias
 *   T count item*                         tuple
 *   D string string count field*          dataclass: module, qualname
 *   B 0|1, I int, F 16 hex digits         constants
 *   Cn_, Cs_ string, Ce_ string string string, Cd_ dtype   more of them
 *
 * int is decimal, with '_' for the sign.  A string is [A-Za-z0-9] but K as they are, "__"
 * for '_', "_k" for K, "_" and 2, "_u" and 4, "_w" and 8 hexadecimal digits for the rest,
 * and "_z" behind it.  So no "_K" follows the one before the convention.
 *
 * One signature has one name: numbers have no leading zeros, equal predicates share a group,
 * what is the default is not written.
 */
#ifndef KP_CORE_CUTILE_CUTILE_H
#define KP_CORE_CUTILE_CUTILE_H

#include "arena.h"
#include "core/base/strbuf.h"
#include "core/base/errors.h"

/* The newest calling convention. */
#define KP_CUTILE_CONVENTION_MAX 3

/* A data type; of its numbers there are none without a row. */
struct kp_cutile_dtype {
	kpackx_dtype_t dtype;
	const char *code;   /* in names: "f32" */
	const char *python; /* "float32" */
	const char *c;      /* "float" */
	const char *c_pointer;
	uint32_t size; /* bytes */
};

/* NULL: there is none. */
const struct kp_cutile_dtype *kp_cutile_dtype(kpackx_dtype_t dtype);
const struct kp_cutile_dtype *kp_cutile_dtype_of(struct kp_span code);

/* Is NAME one that cuTile could have made: is "_Kt" with a digit the last "_K" in it? */
bool kp_cutile_named(struct kp_span name);

/* kpackx_demangle of a name that need not end with a NUL; NULs in it are an error. */
kpack_error_t kp_cutile_demangle(struct kp_span name, struct kpackx_signature **out,
				 struct kpackx_error *why);

/* The parameters in NAME, all of them allocated in ARENA; arguments are left out. */
kpack_error_t kp_cutile_parse(struct kp_span name, struct kp_arena *arena,
			      struct kpackx_signature *out, struct kpackx_error *why);

/* Append the name; INVALID_ARGUMENT and UNSUPPORTED_VERSION as kpackx_mangle. */
kpack_error_t kp_cutile_mangle(const struct kpackx_signature *s, struct kp_compose *name,
			       struct kpackx_error *why);

/* Fill the launch arguments of S, a signature that was parsed. */
kpack_error_t kp_cutile_arguments(struct kpackx_signature *s, struct kp_arena *arena,
				  struct kpackx_error *why);
/* How many C launch arguments a constraint has, its items left out. */
size_t kp_cutile_argument_count(const struct kpackx_constraint *c);

/*
 * S as a Python program states it, KernelSignature([...], CallingConvention....), where
 * cuda.tile is imported as ct and the names of cuda.tile.compilation as they are: in one
 * line; or with MARGIN, each parameter on a line of its own after it and four spaces.
 * Defaults are left out.  S was parsed.  free() frees the text.
 */
kpack_error_t kp_cutile_python(const struct kpackx_signature *s, const char *margin,
			       char **text, struct kpackx_error *why);
/* Strings of Python, where surrogates are characters: U+D800 is ED A0 80. */
size_t kp_python_char(struct kp_span s, uint32_t *out); /* 0: not valid */
size_t kp_python_put(uint32_t character, uint8_t out[4]);

#endif
