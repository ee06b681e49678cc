/* SPDX-License-Identifier: MIT */
/* Functions of TileIR bytecode: the kernels' names, and their optimisation hints. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "tileir.h"

enum { FUNCTION_PRIVATE = 1, FUNCTION_ENTRY = 2, FUNCTION_HINTS = 4 };
enum { TAG_INTEGER = 0x01, TAG_BOOL = 0x03, TAG_DICTIONARY = 0x0a, TAG_HINTS = 0x0b };

/* ---- hints ---- */

static kpack_error_t get_tag(struct kp_tileir *m, struct kp_tileir_cursor *c,
			     uint8_t want)
{
	const uint64_t begin = c->pos;
	uint8_t tag;

	KP_TRY(kp_tileir_get_byte(m, c, &tag));
	if (tag != want)
		return KP_TILEIR_INVALID(
			m, "offset %" PRIu64 ": attribute 0x%02x is no %s", begin, tag,
			want == TAG_HINTS ? "hints" : "dictionary");
	return KPACK_SUCCESS;
}

static kpack_error_t get_value(struct kp_tileir *m, struct kp_tileir_cursor *c,
			       uint64_t *value)
{
	const uint64_t begin = c->pos;
	uint8_t tag, byte;

	KP_TRY(kp_tileir_get_byte(m, c, &tag));
	if (tag == TAG_INTEGER) {
		KP_TRY(kp_tileir_get_index(m, c, m->types.count, "type", value));
		return kp_tileir_get_varint(m, c, value);
	}
	if (tag != TAG_BOOL)
		return KP_TILEIR_INVALID(m,
					 "offset %" PRIu64
					 ": attribute 0x%02x is no integer and "
					 "no bool",
					 begin, tag);
	KP_TRY(kp_tileir_get_byte(m, c, &byte));
	*value = byte;
	return KPACK_SUCCESS;
}

static kpack_error_t read_hint(struct kp_tileir *m, struct kp_tileir_cursor *c)
{
	char *key = NULL;
	uint64_t value;
	kpack_error_t err = kp_tileir_get_string(m, c, KP_TILEIR_HINT_MAX, &key);

	if (!err)
		err = get_value(m, c, &value);
	if (!err)
		kp_compose_print(&m->hints, " %s=%" PRIu64, key, value);
	free(key);
	return err;
}

/* Set the object's arch to TARGET; m->many_targets says whether there were several. */
static void note_target(struct kp_tileir *m, const char *target)
{
	char *arch = m->out->arch;

	if (strncmp(target, "sm_", 3) != 0 || !target[3] ||
	    strlen(target) >= sizeof(m->out->arch) || strcmp(target, arch) == 0)
		return;
	m->many_targets |= arch[0] != '\0';
	strcpy(arch, target);
}

/* Drop hints that exceed the limit, and all hints after them. */
static void trim_hints(struct kp_tileir *m)
{
	if (m->hints.size <= m->hints_left)
		return;
	kp_compose_cut(&m->hints, 0);
	m->hints_left = 0;
}

static kpack_error_t read_target_hints(struct kp_tileir *m, struct kp_tileir_cursor *c)
{
	char *target = NULL;
	uint64_t count;
	kpack_error_t err = kp_tileir_get_string(m, c, KP_TILEIR_HINT_MAX, &target);

	if (!err) {
		note_target(m, target);
		kp_compose_print(&m->hints, "%s%s", m->hints.size ? "; " : "", target);
	}
	free(target);
	KP_TRY(err);
	KP_TRY(get_tag(m, c, TAG_DICTIONARY));
	KP_TRY(kp_tileir_get_varint(m, c, &count));
	for (uint64_t i = 0; i < count; i++) {
		KP_TRY(read_hint(m, c));
		trim_hints(m);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_hints(struct kp_tileir *m, struct kp_tileir_cursor *c)
{
	uint64_t count;

	KP_TRY(get_tag(m, c, TAG_HINTS));
	KP_TRY(kp_tileir_get_varint(m, c, &count));
	for (uint64_t i = 0; i < count; i++) {
		KP_TRY(read_target_hints(m, c));
		trim_hints(m);
	}
	return KPACK_SUCCESS;
}

/* "hints my_kernel": "sm_100 occupancy=4; default" */
static kpack_error_t add_hints(struct kp_tileir *m, const char *kernel)
{
	struct kp_span hints = {(const uint8_t *)m->hints.text, m->hints.size};
	struct kp_compose name = {0};
	kpack_error_t err;

	if (m->hints.no_memory)
		return kp_fail_memory(m->why, m->hints.size, "hints");
	if (hints.size == 0)
		return KPACK_SUCCESS;
	m->hints_left -= hints.size;
	kp_compose_print(&name, "hints %s", kernel);
	err = name.no_memory ? kp_fail_memory(m->why, name.size, "hints")
			     : kp_pairs_add(&m->out->facts, kp_span_str(name.text), hints,
					    m->why);
	kp_compose_fini(&name);
	return err;
}

/* ---- functions ---- */

/*
 * Mark string INDEX as a function's name.  Two functions of one name would be two symbols
 * of one name.
 */
static kpack_error_t claim_name(struct kp_tileir *m, uint64_t index)
{
	uint8_t *byte = &m->named[index / 8], bit = (uint8_t)(1 << index % 8);

	if (*byte & bit)
		return KP_TILEIR_INVALID(
			m, "two functions have the name in string %" PRIu64, index);
	*byte |= bit;
	return KPACK_SUCCESS;
}

static kpack_error_t add_kernel(struct kp_tileir *m, uint64_t name)
{
	struct kp_kernel *kernel;
	char *text = NULL;
	kpack_error_t err = kp_tileir_read_string(m, name, KP_CUTILE_NAME_MAX, &text);

	if (!err)
		err = kp_object_add_kernel(m->out, kp_span_str(text), &kernel, m->why);
	if (!err)
		err = add_hints(m, text);
	free(text);
	return err;
}

static kpack_error_t read_flags(struct kp_tileir *m, struct kp_tileir_cursor *c,
				uint8_t *flags)
{
	const uint64_t begin = c->pos;

	KP_TRY(kp_tileir_get_byte(m, c, flags));
	if (*flags & ~(FUNCTION_PRIVATE | FUNCTION_ENTRY | FUNCTION_HINTS))
		return KP_TILEIR_INVALID(m, "offset %" PRIu64 ": function flags 0x%02x",
					 begin, *flags);
	return KPACK_SUCCESS;
}

static kpack_error_t read_function(struct kp_tileir *m, struct kp_tileir_cursor *c)
{
	uint64_t name, ignored, body;
	uint8_t flags;

	KP_TRY(kp_tileir_get_index(m, c, m->strings.count, "string", &name));
	KP_TRY(claim_name(m, name));
	KP_TRY(kp_tileir_get_index(m, c, m->types.count, "type", &ignored));
	KP_TRY(read_flags(m, c, &flags));
	KP_TRY(kp_tileir_get_varint(m, c, &ignored)); /* debug attribute */
	kp_compose_cut(&m->hints, 0);
	if (flags & FUNCTION_HINTS)
		KP_TRY(read_hints(m, c));
	KP_TRY(kp_tileir_get_varint(m, c, &body));
	if (!kp_range_ok(c->end, c->pos, body))
		return KP_TILEIR_INVALID(m,
					 "offset %" PRIu64 ": a body of %" PRIu64
					 " bytes passes the end at %" PRIu64,
					 c->pos, body, c->end);
	c->pos += body;
	return flags & FUNCTION_ENTRY ? add_kernel(m, name) : KPACK_SUCCESS;
}

static kpack_error_t check_end(struct kp_tileir *m, const struct kp_tileir_cursor *c,
			       int section)
{
	if (c->pos != c->end)
		return KP_TILEIR_INVALID(
			m, "%" PRIu64 " bytes follow the last of the %s section",
			c->end - c->pos, kp_tileir_sections[section]);
	return KPACK_SUCCESS;
}

kpack_error_t kp_tileir_functions(struct kp_tileir *m)
{
	struct kp_tileir_cursor c = m->sections[KP_TILEIR_FUNCTIONS];
	uint64_t count;
	kpack_error_t err = KPACK_SUCCESS;

	KP_TRY(kp_tileir_get_varint(m, &c, &count));
	KP_TRY(kp_pairs_print(&m->out->facts, m->why, "functions", "%" PRIu64, count));
	for (uint64_t i = 0; i < count && !err; i++) {
		err = read_function(m, &c);
		if (err)
			kp_fail_prefix(m->why, err, "function %" PRIu64, i);
	}
	KP_TRY(err);
	return check_end(m, &c, KP_TILEIR_FUNCTIONS);
}

kpack_error_t kp_tileir_globals(struct kp_tileir *m)
{
	struct kp_tileir_cursor c = m->sections[KP_TILEIR_GLOBALS];
	uint64_t count, ignored;
	uint8_t visibility;

	if (!c.end)
		return KPACK_SUCCESS;
	KP_TRY(kp_tileir_get_varint(m, &c, &count));
	for (uint64_t i = 0; i < count; i++) {
		KP_TRY(kp_tileir_get_index(m, &c, m->strings.count, "string", &ignored));
		KP_TRY(kp_tileir_get_index(m, &c, m->types.count, "type", &ignored));
		KP_TRY(kp_tileir_get_index(m, &c, m->constants.count, "constant",
					   &ignored));
		KP_TRY(kp_tileir_get_varint(m, &c, &ignored)); /* alignment */
		if (m->version[1] < 3)
			continue;
		KP_TRY(kp_tileir_get_byte(m, &c, &visibility));
		KP_TRY(kp_tileir_get_varint(m, &c, &ignored)); /* is it constant */
	}
	KP_TRY(kp_pairs_print(&m->out->facts, m->why, "globals", "%" PRIu64, count));
	return check_end(m, &c, KP_TILEIR_GLOBALS);
}
