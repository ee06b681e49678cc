/* SPDX-License-Identifier: MIT */
/*
 * MIOpen: everything below miopen/db, and its Composable Kernel libraries for one GPU,
 * anywhere in the tree.
 *
 * MIOpen looks for the file with its GPU and number of compute units in the name; if
 * there is none, it searches the whole directory for the nearest number.  Its models are for
 * the GPU in their name, but for those of gfx908.
 */
#include "arch_name.h"
#include "ck_library.h"
#include "miopen_name.h"
#include "sqlite.h"

static const char DB[] = "miopen/db";

/* Smallest size of a kernel database: MIOpen ignores smaller ones. */
enum { KDB_MIN = 512 };

static bool probe_file(const struct library *self, const struct library_question *q)
{
	struct ck_library_name ck;
	struct kp_span rest;

	(void)self;
	return path_below(q->path, DB, &rest) || ck_library_name(path_name(q->path), &ck);
}

static bool is_database(const struct miopen_name *name, struct kp_span text)
{
	return strcmp(name->role, "kernels") == 0 ||
	       (text.size > 3 && memcmp(text.data + text.size - 3, ".db", 3) == 0);
}

static kpack_error_t check_database(const struct library_question *q,
				    const struct miopen_name *name,
				    struct kpackx_error *why)
{
	if (strcmp(name->role, "kernels") == 0 && q->source->size < KDB_MIN)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "kernel database: %llu bytes, MIOpen reads none below %d: "
			       "cut short, or remove it",
			       (unsigned long long)q->source->size, KDB_MIN);
	return sqlite_header_check(q->source, q->head, q->head_size, why);
}

/* MIOpen chooses solvers by these files on each GPU that has no model of its own. */
static bool is_default_model(struct kp_span text)
{
	return kp_span_is(text, "gfx908.tn.model") ||
	       kp_span_is(text, "gfx908_metadata.tn.model");
}

static kpack_error_t decide_arch(const struct library_question *q, struct kp_span rest,
				 const struct miopen_name *name,
				 struct library_object *out, struct kpackx_error *why)
{
	char named[KP_TARGET_TEXT_MAX] = "";
	bool known = *name->arch || arch_of_name(path_name(q->path), named);

	if (is_default_model(path_name(q->path)))
		return arch_decide(q, "", out, why);
	if (*name->arch)
		memcpy(named, name->arch, sizeof(named));
	if (!known && path_depth(rest) > 1)
		known = arch_of_directory(path_component(rest, 0), named, NULL);
	KP_TRY(arch_decide(q, known ? named : "", out, why));
	if (!known && arch_in_path((const char *)path_name(q->path).data))
		library_warn(out,
			     "no GPU that is known is in its name: packed for every GPU");
	return KPACK_SUCCESS;
}

static void add_facts(const struct miopen_name *name, struct library_object *out)
{
	if (name->variant.size)
		facts_text(&out->facts, "variant", name->variant);
	if (name->db_id.size)
		facts_text(&out->facts, "db_id", name->db_id);
	if (name->cu_count)
		facts_number(&out->facts, "cu_count", name->cu_count);
	if (strcmp(name->role, "file") != 0)
		facts_string(&out->facts, "kind", name->role);
	if (name->backend)
		facts_string(&out->facts, "backend", name->backend);
}

static kpack_error_t take_file(const struct library_question *q, struct kp_span rest,
			       struct library_object *out, struct kpackx_error *why)
{
	struct kp_span text = path_name(q->path);
	struct miopen_name name = miopen_name(text);

	out->role = name.role;
	if (is_database(&name, text)) {
		if (!q->plain)
			KP_TRY(check_database(q, &name, why));
		out->at_random = true;
	}
	KP_TRY(decide_arch(q, rest, &name, out, why));
	add_facts(&name, out);
	return KPACK_SUCCESS;
}

static kpack_error_t check_file(const struct library *self,
				const struct library_question *q, bool *mine,
				struct library_object *out, struct kpackx_error *why)
{
	struct ck_library_name ck;
	struct kp_span rest;

	(void)self;
	if (ck_library_name(path_name(q->path), &ck))
		return ck_library_check(q, &ck, mine, out, why);
	if (!path_below(q->path, DB, &rest) ||
	    strcmp(content_container(q), "host-elf") == 0)
		return KPACK_SUCCESS;
	*mine = true;
	return take_file(q, rest, out, why);
}

const struct library library_miopen = {
	.name = "miopen", .probe = probe_file, .check = check_file};
