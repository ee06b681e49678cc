/* SPDX-License-Identifier: MIT */
#include "cutile.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/text.h"

static const struct kp_cutile_dtype dtypes[] = {
	{KPACKX_DTYPE_BOOL, "b8", "bool_", "bool", "bool *", 1},
	{KPACKX_DTYPE_UINT8, "u8", "uint8", "uint8_t", "uint8_t *", 1},
	{KPACKX_DTYPE_UINT16, "u16", "uint16", "uint16_t", "uint16_t *", 2},
	{KPACKX_DTYPE_UINT32, "u32", "uint32", "uint32_t", "uint32_t *", 4},
	{KPACKX_DTYPE_UINT64, "u64", "uint64", "uint64_t", "uint64_t *", 8},
	{KPACKX_DTYPE_INT8, "i8", "int8", "int8_t", "int8_t *", 1},
	{KPACKX_DTYPE_INT16, "i16", "int16", "int16_t", "int16_t *", 2},
	{KPACKX_DTYPE_INT32, "i32", "int32", "int32_t", "int32_t *", 4},
	{KPACKX_DTYPE_INT64, "i64", "int64", "int64_t", "int64_t *", 8},
	{KPACKX_DTYPE_FLOAT16, "f16", "float16", "__half", "__half *", 2},
	{KPACKX_DTYPE_FLOAT32, "f32", "float32", "float", "float *", 4},
	{KPACKX_DTYPE_FLOAT64, "f64", "float64", "double", "double *", 8},
	{KPACKX_DTYPE_BFLOAT16, "bf16", "bfloat16", "__nv_bfloat16", "__nv_bfloat16 *",
	 2},
	{KPACKX_DTYPE_TFLOAT32, "tf32", "tfloat32", "float", "float *", 4},
	{KPACKX_DTYPE_FLOAT8_E4M3FN, "f8m3fn", "float8_e4m3fn", "__nv_fp8_e4m3",
	 "__nv_fp8_e4m3 *", 1},
	{KPACKX_DTYPE_FLOAT8_E5M2, "f8m2", "float8_e5m2", "__nv_fp8_e5m2",
	 "__nv_fp8_e5m2 *", 1},
	{KPACKX_DTYPE_FLOAT8_E8M0FNU, "f8m0fnu", "float8_e8m0fnu", "__nv_fp8_e8m0",
	 "__nv_fp8_e8m0 *", 1},
};

#define N_DTYPES KP_COUNT(dtypes)

/* Callers of kpackx_demangle have a pointer to the first member. */
struct held_signature {
	struct kpackx_signature signature;
	struct kp_arena arena;
};

const struct kp_cutile_dtype *kp_cutile_dtype(kpackx_dtype_t dtype)
{
	for (size_t i = 0; i < N_DTYPES; i++)
		if (dtypes[i].dtype == dtype)
			return &dtypes[i];
	return NULL;
}

const struct kp_cutile_dtype *kp_cutile_dtype_of(struct kp_span code)
{
	for (size_t i = 0; i < N_DTYPES; i++)
		if (kp_span_is(code, dtypes[i].code))
			return &dtypes[i];
	return NULL;
}

bool kp_cutile_named(struct kp_span name)
{
	for (size_t i = name.size; i-- > 1;) {
		if (name.data[i] == 'K' && name.data[i - 1] == '_')
			return name.size - i > 2 && name.data[i + 1] == 't' &&
			       name.data[i + 2] >= '0' && name.data[i + 2] <= '9';
	}
	return false;
}

/* True if S begins with a surrogate, encoded like UTF-8. */
static bool is_surrogate(struct kp_span s)
{
	return s.size >= 3 && s.data[0] == 0xed && (s.data[1] & 0xe0) == 0xa0 &&
	       (s.data[2] & 0xc0) == 0x80;
}

size_t kp_python_char(struct kp_span s, uint32_t *out)
{
	if (!is_surrogate(s))
		return kp_text_char(s, out);
	*out = 0xd000 | (uint32_t)(s.data[1] & 0x3f) << 6 | (s.data[2] & 0x3f);
	return 3;
}

size_t kp_python_put(uint32_t character, uint8_t out[4])
{
	static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = character < 0x80      ? 1
		   : character < 0x800   ? 2
		   : character < 0x10000 ? 3
					 : 4;

	for (size_t i = n; i-- > 1; character >>= 6)
		out[i] = (uint8_t)(0x80 | (character & 0x3f));
	out[0] = (uint8_t)(leads[n] | character);
	return n;
}

/* Check that NAME is the name of SIGNATURE, or report where the two first differ. */
static kpack_error_t check_canonical(struct kp_span name,
				     const struct kpackx_signature *signature,
				     struct kpackx_error *why)
{
	struct kp_compose again = {0};
	struct kp_span all;
	char rest[64];
	size_t at = 0;
	kpack_error_t err = kp_cutile_mangle(signature, &again, why);

	all = (struct kp_span){(const uint8_t *)again.text, again.size};
	if (!err && !kp_span_eq(all, name)) {
		while (at < name.size && at < all.size && all.data[at] == name.data[at])
			at++;
		kp_text_escape(kp_span_tail(all, at), rest, 40);
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "offset %zu: cuTile gives this signature another name, "
			      "which continues here with \"%s\"",
			      at, rest);
	}
	kp_compose_fini(&again);
	return err;
}

static kpack_error_t fill_signature(struct kp_span name, struct held_signature *held,
				    struct kpackx_error *why)
{
	KP_TRY(kp_cutile_parse(name, &held->arena, &held->signature, why));
	KP_TRY(check_canonical(name, &held->signature, why));
	return kp_cutile_arguments(&held->signature, &held->arena, why);
}

kpack_error_t kp_cutile_demangle(struct kp_span name, struct kpackx_signature **out,
				 struct kpackx_error *why)
{
	struct held_signature *held = calloc(1, sizeof(*held));
	kpack_error_t err;

	if (!held)
		return kp_fail_memory(why, sizeof(*held), "a signature");
	err = fill_signature(name, held, why);
	if (err)
		kpackx_signature_free(&held->signature);
	else
		*out = &held->signature;
	return err;
}

kpack_error_t kpackx_demangle(const char *symbol, struct kpackx_signature **signature,
			      struct kpackx_error *why)
{
	if (!symbol || !signature)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s is NULL",
			       symbol ? "signature" : "symbol");
	return kp_cutile_demangle(kp_span_str(symbol), signature, why);
}

void kpackx_signature_free(struct kpackx_signature *signature)
{
	struct held_signature *held = (struct held_signature *)(void *)signature;

	if (held)
		kp_arena_fini(&held->arena);
	free(held);
}

kpack_error_t kpackx_mangle(const struct kpackx_signature *signature, char **symbol,
			    struct kpackx_error *why)
{
	struct kp_compose name = {0};
	kpack_error_t err;

	if (!signature || !symbol)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s is NULL",
			       signature ? "symbol" : "signature");
	err = kp_cutile_mangle(signature, &name, why);
	if (!err)
		return kp_compose_take(&name, symbol, why);
	kp_compose_fini(&name);
	return err;
}

void kpackx_symbol_free(char *symbol)
{
	free(symbol);
}
