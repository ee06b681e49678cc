/* SPDX-License-Identifier: MIT */
#include "triton_facts.h"
#include <stdlib.h>
#include "packer/library/json_members.h"
#include "core/base/text.h"

/* Limit of bytes read of a file: Triton's files have some kilobytes. */
enum { JSON_MAX = 64 << 10 };

/* Facts are small: limits of text bytes, of a kernel's parameters, of name bytes. */
enum { TEXT_MAX = 200, PARAMS_MAX = 24, NAME_MAX_BYTES = 32 };

static bool is_short(struct kp_span s, size_t max)
{
	return s.size && s.size <= max && kp_text_ok(s);
}

static bool is_one_of(struct kp_span name, const char *const *names)
{
	while (*names && !kp_span_is(name, *names))
		names++;
	return *names;
}

static const char *keep_name(struct kp_span name, char out[NAME_MAX_BYTES + 1])
{
	memcpy(out, name.data, name.size);
	out[name.size] = '\0';
	return out;
}

/* --- versions --------------------------------------------------------------------------- */

static void add_versions(struct kp_span json, struct facts *out)
{
	static const char *const names[] = {"AOTRITON_GIT_SHA1", "AOTRITON_GIT_TREESHA1",
					    "DB_SHA256", "TRITON_VERSION", NULL};
	struct json_member m;

	while (member_next(&json, &m)) {
		char name[NAME_MAX_BYTES + 1];

		if (m.kind == MEMBER_TEXT && is_one_of(m.name, names) &&
		    is_short(m.value, TEXT_MAX) &&
		    !facts_has(out, keep_name(m.name, name)))
			facts_text(out, name, m.value);
	}
}

/* --- kernels ---------------------------------------------------------------------------- */

static void add_param(const struct json_member *m, struct facts *params)
{
	char name[NAME_MAX_BYTES + 1];
	int64_t number;

	if (params->count >= PARAMS_MAX || !is_short(m->name, NAME_MAX_BYTES) ||
	    facts_has(params, keep_name(m->name, name)))
		return;
	if (m->kind == MEMBER_NUMBER && member_integer(m->value, &number))
		facts_signed(params, name, number);
	else if (m->kind == MEMBER_TEXT && is_short(m->value, NAME_MAX_BYTES))
		facts_text(params, name, m->value);
	else if (kp_span_is(m->value, "true") || kp_span_is(m->value, "false"))
		facts_flag(params, name, kp_span_is(m->value, "true"));
}

static void add_params(struct kp_span object, struct facts *params)
{
	struct json_member m;

	while (member_next(&object, &m))
		add_param(&m, params);
}

/* Triton's own signature is an object that maps each argument's name to its type. */
static void add_signature(const struct json_member *m, struct facts *out)
{
	struct kp_span rest = m->value;
	char text[TEXT_MAX];
	struct json_member arg;
	size_t n = 0;

	if (m->kind == MEMBER_TEXT && is_short(m->value, TEXT_MAX))
		facts_text(out, "signature", m->value);
	if (m->kind != MEMBER_OBJECT)
		return;
	while (member_next(&rest, &arg)) {
		if (arg.kind != MEMBER_TEXT || !is_short(arg.value, TEXT_MAX) ||
		    arg.value.size + 1 > sizeof(text) - n)
			return;
		if (n)
			text[n++] = ',';
		memcpy(text + n, arg.value.data, arg.value.size);
		n += arg.value.size;
	}
	if (n)
		facts_text(out, "signature", (struct kp_span){(uint8_t *)text, n});
}

static bool is_param(struct kp_span name)
{
	static const char *const names[] = {
		"num_warps",    "num_stages",           "num_ctas", "shared", "kpack",
		"waves_per_eu", "matrix_instr_nonkdim", NULL};

	return is_one_of(name, names) ||
	       (name.size > 6 && strncasecmp((const char *)name.data, "block_", 6) == 0);
}

void triton_kernel_facts(struct kp_span json, struct facts *out)
{
	static const char *const maps[] = {"tuning_params", "constants", "kwargs", NULL};
	struct facts params = {0};
	struct json_member m;

	while (member_next(&json, &m)) {
		if (kp_span_is(m.name, "signature") && !facts_has(out, "signature"))
			add_signature(&m, out);
		else if (m.kind == MEMBER_OBJECT && is_one_of(m.name, maps))
			add_params(m.value, &params);
		else if (is_param(m.name))
			add_param(&m, &params);
	}
	if (params.count || params.no_memory)
		facts_map(out, "tuning_params", &params);
	facts_fini(&params);
}

/* --- files ------------------------------------------------------------------------------ */

static kpack_error_t with_text(const struct kp_source *source, struct facts *out,
			       void (*add)(struct kp_span json, struct facts *out),
			       struct kpackx_error *why)
{
	size_t n = source->size < JSON_MAX ? (size_t)source->size : JSON_MAX;
	uint8_t *text = malloc(n + 1);
	kpack_error_t err;

	if (!text)
		return kp_fail_memory(why, n, "a JSON file");
	err = kp_source_read(source, 0, text, n, why);
	if (!err)
		add((struct kp_span){text, n}, out);
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
	static const char ending[] = ".json";
	const char *dot = strrchr(q->path, '.');
	size_t stem = dot ? (size_t)(dot - q->path) : strlen(q->path);
	uint8_t *path = malloc(stem + sizeof(ending));
	bool found;

	if (!path)
		return false;
	memcpy(path, q->path, stem);
	memcpy(path + stem, ending, sizeof(ending));
	found = file_tree_find(q->tree, (struct kp_span){path, stem + sizeof(ending) - 1},
			       file);
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
	err = with_text(&bytes.source, out, triton_kernel_facts, why);
	file_bytes_close(&bytes);
	return err;
}
