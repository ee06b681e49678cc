/* SPDX-License-Identifier: MIT */
#include "triton_facts.h"
#include <jansson.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/base/text.h"

/* Limit of bytes of a file: Triton's files have some kilobytes. */
enum { JSON_MAX = 64 << 10 };

/* Facts are small: limits of text bytes, of a kernel's parameters, of name bytes. */
enum { TEXT_MAX = 200, PARAMS_MAX = 24, NAME_MAX_BYTES = 32 };

static bool is_short(struct kp_span s, size_t max)
{
	return s.size && s.size <= max && kp_text_ok(s);
}

/* The bytes of a string; empty for another value. */
static struct kp_span text_of(const json_t *value)
{
	return (struct kp_span){(const uint8_t *)json_string_value(value),
				json_string_length(value)};
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names;
}

/* --- versions --------------------------------------------------------------------------- */

static void add_versions(json_t *json, struct facts *out)
{
	static const char *const names[] = {"AOTRITON_GIT_SHA1", "AOTRITON_GIT_TREESHA1",
					    "DB_SHA256", "TRITON_VERSION", NULL};
	const char *name;
	json_t *value;

	json_object_foreach(json, name, value)
	{
		if (is_one_of(name, names) && is_short(text_of(value), TEXT_MAX) &&
		    !facts_has(out, name))
			facts_text(out, name, text_of(value));
	}
}

/* --- kernels ---------------------------------------------------------------------------- */

static void add_param(const char *name, const json_t *value, struct facts *params)
{
	if (params->count >= PARAMS_MAX || !is_short(kp_span_str(name), NAME_MAX_BYTES) ||
	    facts_has(params, name))
		return;
	if (json_is_integer(value))
		facts_signed(params, name, json_integer_value(value));
	else if (is_short(text_of(value), NAME_MAX_BYTES))
		facts_text(params, name, text_of(value));
	else if (json_is_boolean(value))
		facts_flag(params, name, json_is_true(value));
}

/* Triton's own signature is an object that maps each argument's name to its type. */
static void add_signature(json_t *signature, struct facts *out)
{
	char text[TEXT_MAX];
	const char *name;
	json_t *type;
	size_t n = 0;

	if (is_short(text_of(signature), TEXT_MAX))
		facts_text(out, "signature", text_of(signature));
	json_object_foreach(signature, name, type)
	{
		struct kp_span s = text_of(type);

		if (!is_short(s, TEXT_MAX) || s.size + 1 > sizeof(text) - n)
			return;
		if (n)
			text[n++] = ',';
		memcpy(text + n, s.data, s.size);
		n += s.size;
	}
	if (n)
		facts_text(out, "signature", (struct kp_span){(uint8_t *)text, n});
}

static bool is_param(const char *name)
{
	static const char *const names[] = {
		"num_warps",    "num_stages",           "num_ctas", "shared", "kpack",
		"waves_per_eu", "matrix_instr_nonkdim", NULL};

	return is_one_of(name, names) ||
	       (strncasecmp(name, "block_", 6) == 0 && name[6] != '\0');
}

static void add_kernel(json_t *json, struct facts *out)
{
	static const char *const maps[] = {"tuning_params", "constants", "kwargs", NULL};
	struct facts params = {0};
	const char *name, *inner;
	json_t *value, *param;

	json_object_foreach(json, name, value)
	{
		if (strcmp(name, "signature") == 0 && !facts_has(out, "signature"))
			add_signature(value, out);
		else if (json_is_object(value) && is_one_of(name, maps))
			json_object_foreach(value, inner, param)
				add_param(inner, param, &params);
		else if (is_param(name))
			add_param(name, value, &params);
	}
	if (params.count)
		facts_map(out, "tuning_params", &params);
	facts_fini(&params);
}

static void add_facts(struct kp_span text, struct facts *out,
		      void (*add)(json_t *json, struct facts *out))
{
	json_error_t error;
	json_t *json =
		json_loadb((const char *)text.data, text.size, JSON_ALLOW_NUL, &error);

	if (!json && json_error_code(&error) == json_error_out_of_memory)
		xalloc_fail(0);
	add(json, out);
	json_decref(json);
}

void triton_kernel_facts(struct kp_span json, struct facts *out)
{
	add_facts(json, out, add_kernel);
}

/* --- files ------------------------------------------------------------------------------ */

static kpack_error_t with_text(const struct kp_source *source, struct facts *out,
			       void (*add)(json_t *json, struct facts *out),
			       struct kpackx_error *why)
{
	size_t n = source->size <= JSON_MAX ? (size_t)source->size : 0;
	uint8_t *text = xmalloc(n);
	kpack_error_t err = kp_source_read(source, 0, text, n, why);

	if (!err)
		add_facts((struct kp_span){text, n}, out, add);
	free(text);
	return err;
}

kpack_error_t triton_versions(const struct kp_source *source, struct facts *out,
			      struct kpackx_error *why)
{
	return with_text(source, out, add_versions, why);
}

static bool find_json(const struct library_question *q, size_t *file)
{
	const char *dot = strrchr(q->path, '.');
	size_t stem = dot ? (size_t)(dot - q->path) : strlen(q->path);
	char *path = xasprintf("%.*s.json", (int)stem, q->path);
	bool found = file_tree_find(q->tree, kp_span_str(path), file);

	free(path);
	return found;
}

kpack_error_t triton_kernel(const struct library_question *q, struct facts *out,
			    struct kpackx_error *why)
{
	struct file_bytes bytes;
	kpack_error_t err;
	size_t file;

	if (!find_json(q, &file))
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(q->tree, file, &bytes, why));
	err = with_text(&bytes.source, out, add_kernel, why);
	file_bytes_close(&bytes);
	return err;
}
