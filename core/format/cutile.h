/* SPDX-License-Identifier: MIT */
/*
 * Names of cuTile kernels: NAME_KtN(_PARAMETER)*, where N is the calling convention.  A
 * name encodes a signature, struct kpackx_signature of kpackx.h.
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
 *   Cn_, Cs_ string, Ce_ string string string, Cd_ dtype   more constants
 *
 * int is decimal, with '_' for the minus sign.  In a string, [A-Za-z0-9] except K stand
 * for themselves, "__" for '_', "_k" for K; any other character is "_" and 2, "_u" and 4,
 * or "_w" and 8 hexadecimal digits.  "_z" ends the string.  So the "_K" before the
 * convention is the last one in the name.
 *
 * A signature has exactly one name: numbers have no leading zeros, equal predicates share
 * a group, defaults are not written.  cutile_mangle.c knows these rules; the reader in
 * cutile_demangle.c accepts more, writes what it read, and compares.
 */
#ifndef KP_CORE_FORMAT_CUTILE_H
#define KP_CORE_FORMAT_CUTILE_H

#include "core/base/errors.h"
#include "core/base/text.h"

/* The newest calling convention. */
#define KP_CUTILE_CONVENTION_MAX 3

/* A data type; every value of kpackx_dtype_t except NONE has a row. */
struct kp_cutile_dtype {
	const char *code;   /* in names: "f32" */
	const char *python; /* "float32" */
	const char *c;      /* "float" */
	const char *c_pointer;
	uint32_t size; /* bytes */
};
#define KP_CUTILE_DTYPES (KPACKX_DTYPE_FLOAT8_E8M0FNU + 1)
extern const struct kp_cutile_dtype kp_cutile_dtypes[KP_CUTILE_DTYPES];

/*
 * How a kind of constraint is written: its code, then its parts, one letter for each:
 * d dtype, a array, l list, i count and items, c module and qualname, t text, b bool,
 * n integer, f the bits of a double.
 */
struct kp_cutile_kind {
	const char *code;
	uint32_t convention; /* the first one with this kind */
	const char *parts;
};
#define KP_CUTILE_KINDS (KPACKX_CONST_DTYPE + 1)
extern const struct kp_cutile_kind kp_cutile_kinds[KP_CUTILE_KINDS];

/*
 * What A says for the predicate LETTER of the grammar above; false: nothing, or the
 * default, or what a constant implies.
 */
bool kp_cutile_predicate(const struct kpackx_axis *a, char letter, int64_t *value);

/* True if cuTile can have made NAME: the last "_K" in it begins "_Kt" and a digit. */
bool kp_cutile_named(struct kp_span name);

/* As kpackx_demangle, for a name that need not end with a NUL; a NUL in it is an error. */
kpack_error_t kp_cutile_demangle(struct kp_span name, struct kpackx_signature **out,
				 struct kpackx_error *why);

/*
 * Append S's name to NAME, and set *ARGUMENTS to the number of its launch arguments.
 * INVALID_ARGUMENT and UNSUPPORTED_VERSION as kpackx_mangle; NAME then has what precedes
 * the fault.
 */
kpack_error_t kp_cutile_mangle(const struct kpackx_signature *s, struct kp_compose *name,
			       size_t *arguments, struct kpackx_error *why);

/*
 * Read the first character of S, return its bytes; write a character, return its bytes.
 * As UTF-8, but as in Python surrogates are characters: U+D800 is ED A0 80.
 */
size_t kp_python_char(struct kp_span s, uint32_t *out); /* 0: not valid */
size_t kp_python_put(uint32_t character, uint8_t out[4]);

#endif
