/* SPDX-License-Identifier: MIT */
#include "kernel_rows.h"
#include <stdio.h>
#include <stdlib.h>
#include "cache_summary.h"
#include "kernel_name.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "core/target/target.h"

/* The columns in the order of the query below. */
enum { NAME, ARCH, HIP_VERSION, GENERATOR_SUM, TIMESTAMP, CODE };

static const char query[] =
	"SELECT kernel_name, arch, hip_version, generator_sum, timestamp, "
	"code FROM main.cache_v1 NOT INDEXED";

struct writer {
	struct kp_outfile *file;
	const char *called;
	uint64_t off;
	struct library_object *objects;
	int64_t *hip_versions; /* per object */
	size_t count, cap, versions_cap;
};

static kpack_error_t fail_row(const struct writer *w, struct kpackx_error *why,
			      const char *what)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "cache_v1: row %zu: %s",
		       w->count + 1, what);
}

static kpack_error_t write_code(struct writer *w, struct kp_span code,
				struct kpackx_error *why)
{
	kpack_error_t err = kp_outfile_pwrite(w->file, w->off, code.data, code.size, why);

	w->off += code.size;
	return err ? kp_fail_prefix(why, err, "%s", w->called) : KPACK_SUCCESS;
}

static void add_facts(const struct sqlite_rows *row, const struct kernel_name *parsed,
		      struct facts *facts)
{
	kernel_name_facts(parsed, facts);
	facts_text(facts, "arch", sqlite_rows_bytes(row, ARCH));
	if (sqlite_rows_type(row, HIP_VERSION) == SQLITE_TYPE_INTEGER)
		facts_signed(facts, "hip_version", sqlite_rows_integer(row, HIP_VERSION));
	if (sqlite_rows_type(row, GENERATOR_SUM) == SQLITE_TYPE_BLOB)
		facts_bytes(facts, "generator_sum",
			    sqlite_rows_bytes(row, GENERATOR_SUM));
	if (sqlite_rows_type(row, TIMESTAMP) == SQLITE_TYPE_INTEGER)
		facts_signed(facts, "timestamp", sqlite_rows_integer(row, TIMESTAMP));
}

static void describe_row(struct library_object *o, const struct sqlite_rows *row)
{
	struct kp_span name = sqlite_rows_bytes(row, NAME);
	char arch[KP_TARGET_TEXT_MAX];
	struct kernel_name parsed;
	char *component = kernel_name_component(name);

	kernel_name_parse(name, &parsed);
	/* the summary has checked the arch of every row */
	if (!cache_arch_ok(sqlite_rows_bytes(row, ARCH), arch))
		strcpy(arch, KP_ARCH_GENERIC);
	add_facts(row, &parsed, &o->facts);
	library_add_key(o, "fft/%s/%s/%s/%s", arch, parsed.length, parsed.precision,
			component);
	free(component);
	library_add_arch(o, arch);
}

static kpack_error_t check_row(const struct writer *w, const struct sqlite_rows *row,
			       struct kpackx_error *why)
{
	struct kp_span name;

	if (w->count == KERNEL_ROWS_MAX)
		return fail_row(w, why, "there are more than an archive can hold");
	if (sqlite_rows_type(row, NAME) != SQLITE_TYPE_TEXT)
		return fail_row(w, why, "kernel_name: no text");
	name = sqlite_rows_bytes(row, NAME);
	if (name.size == 0)
		return fail_row(w, why, "kernel_name: empty");
	/* escaping may triple the name; the rest of the key is short */
	if (name.size > KP_NAME_MAX / 4)
		return fail_row(w, why, "kernel_name: too long for a key");
	if (sqlite_rows_type(row, GENERATOR_SUM) == SQLITE_TYPE_BLOB &&
	    sqlite_rows_bytes(row, GENERATOR_SUM).size > 64)
		return fail_row(w, why, "generator_sum: more than 64 bytes");
	if (sqlite_rows_type(row, CODE) != SQLITE_TYPE_BLOB)
		return fail_row(w, why, "code: no blob");
	return KPACK_SUCCESS;
}

static kpack_error_t add_row(struct writer *w, const struct sqlite_rows *row,
			     struct kpackx_error *why)
{
	struct library_object *o;
	struct kp_span code;

	KP_TRY(check_row(w, row, why));
	xgrow(&w->objects, w->count, &w->cap, sizeof(*o));
	xgrow(&w->hip_versions, w->count, &w->versions_cap, sizeof(int64_t));
	code = sqlite_rows_bytes(row, CODE);
	w->hip_versions[w->count] = sqlite_rows_integer(row, HIP_VERSION);
	o = &w->objects[w->count++];
	*o = (struct library_object){
		.library = library_rocfft.name,
		.role = "kernel",
		.offset = w->off,
		.size = code.size,
	};
	describe_row(o, row);
	return write_code(w, code, why);
}

/* --- all ------------------------------------------------------------------------------ */

static kpack_error_t add_rows(struct writer *w, struct sqlite_rows *rows,
			      struct kpackx_error *why)
{
	bool more = true;

	for (;;) {
		KP_TRY(sqlite_rows_next(rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		KP_TRY(add_row(w, rows, why));
	}
}

kpack_error_t kernel_rows_write(struct sqlite_file *f, const char *called,
				struct cache_file *part, struct kpackx_error *why)
{
	struct writer w = {.file = &part->file, .called = called};
	struct sqlite_rows *rows = NULL;
	kpack_error_t err = sqlite_rows_open(f, query, &rows, why);

	if (!err)
		err = add_rows(&w, rows, why);
	sqlite_rows_close(rows);
	part->objects = w.objects;
	part->hip_versions = w.hip_versions;
	part->n_objects = w.count;
	return err;
}
