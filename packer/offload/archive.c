/* SPDX-License-Identifier: MIT */
/*
 * Split a heterogeneous device archive into an archive for each target.  The target's
 * archive has every entry of every member that serves the target, named by the member and
 * the entry.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include "object.h"
#include "contents.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "core/format/ar_archive.h"

/* Members of the archive for one target. */
struct collection {
	struct kp_ar_input *items;
	size_t n;
};

struct job {
	const struct bundler *b;
	const char *input;
	struct bundler_input in;
	struct kp_ar ar;
	struct collection *collections; /* by target */
	/*
	 * Holds entries that the input does not contain verbatim until they are written.
	 */
	struct kp_outfile spool;
	struct kp_sink spooled;
};

/* A member that is being split into its entries. */
struct member {
	const char *name;
	struct kp_source src;
	struct bundler_contents parts;
};

/* ---- names ---- */

static const char *extension(const struct entry_id *id, const char *dot)
{
	if (id->target.size && memmem(id->target.data, id->target.size, "gfx", 3))
		return ".bc";
	if (id->target.size && memmem(id->target.data, id->target.size, "sm_", 3))
		return ".cubin";
	return dot ? dot : "";
}

/*
 * "func_1.o" -> "func_1-hip-amdgcn-amd-amdhsa--gfx906_xnack+func_1.bc"
 */
static char *member_name(const char *name, const struct entry_id *id)
{
	const char *file = kp_path_name(name), *dot = strrchr(file, '.');
	int stem = (int)(dot ? dot - file : (ptrdiff_t)strlen(file));
	char *out =
		xasprintf("%.*s-%.*s%.*s%s", stem, file, (int)id->text.size,
			  (const char *)id->text.data, stem, file, extension(id, dot));

	for (char *p = out; *p; p++)
		if (*p == ':')
			*p = '_';
	return out;
}

/* ---- collecting ---- */

static int open_spool(struct job *j)
{
	int fd = bundler_nameless();

	j->spool = (struct kp_outfile){.fd = fd, .dir_fd = -1, .shown = "temporary file"};
	j->spooled = (struct kp_sink){.out = &j->spool};
	return fd < 0 ? llvm_error(j->b->tool, "cannot make a temporary file") : 0;
}

/* The bytes spooled since the spool had BEFORE bytes. */
static struct kp_source spooled_since(const struct job *j, uint64_t before)
{
	return kp_source_fd(j->spool.fd, before, j->spooled.size - before);
}

/*
 * Set OUT to bytes of IMAGE that stay valid: those in the archive itself, or spooled
 * ones.
 */
static int fetch_entry(struct job *j, struct member *m, size_t image,
		       struct kp_source *out)
{
	struct kpackx_error why = {0};
	uint64_t before = j->spooled.size;

	if (bundler_contents_is_mark(&m->parts, image)) {
		if (bundler_object_strip(j->b, &m->src, NULL, &j->spooled))
			return 1;
		*out = spooled_since(j, before);
		return 0;
	}
	if (bundler_contents_open(&m->parts, image, out, &why))
		return bundler_fail_file(j->b, m->name, &why);
	/* the archive stays open: bytes in it need not be copied */
	if (out->fd == j->in.fd && out->fd >= 0)
		return 0;
	if (kp_sink_copy(&j->spooled, out, &why))
		return bundler_fail(j->b, &why);
	*out = spooled_since(j, before);
	return 0;
}

static void add_member(struct collection *c, const struct member *m,
		       const struct entry_id *id, const struct kp_source *bytes)
{
	c->items = xrealloc(c->items, (c->n + 1) * sizeof(*c->items));
	c->items[c->n++] = (struct kp_ar_input){
		.name = kp_span_str(member_name(m->name, id)), .bytes = *bytes};
}

static int take_entry(struct job *j, struct member *m, size_t image,
		      const struct entry_id *id)
{
	struct kp_source bytes;
	bool fetched = false;

	for (size_t t = 0; t < j->b->n_targets; t++) {
		if (!entry_serves(bundler_compare(j->b, id, &j->b->targets[t])))
			continue;
		if (!fetched && fetch_entry(j, m, image, &bytes))
			return 1;
		fetched = true;
		add_member(&j->collections[t], m, id, &bytes);
	}
	return 0;
}

static int take_entries(struct job *j, struct member *m)
{
	const struct kp_containers *list = &m->parts.list;
	struct entry_id id;

	for (size_t i = 0; i < list->n_images; i++) {
		if (!list->images[i].id)
			continue;
		if (!entry_id_parse(kp_span_str(list->images[i].id), &id))
			return llvm_error(j->b->tool,
					  "Invalid bundle id read from code object: "
					  "'%s' in %s",
					  list->images[i].id, m->name);
		if (take_entry(j, m, i, &id))
			return 1;
	}
	return 0;
}

/* ---- -check-input-archive ---- */

/* Whether one of the IDs states a feature that the other leaves open. */
static bool ids_conflict(const char *a, const char *b)
{
	struct entry_id x, y;

	return a && b && entry_id_parse(kp_span_str(a), &x) &&
	       entry_id_parse(kp_span_str(b), &y) && entry_ids_akin(&x, &y) &&
	       (entry_id_states_more(&x, &y) || entry_id_states_more(&y, &x));
}

static int check_member(struct job *j, struct member *m)
{
	const struct kp_containers *list = &m->parts.list;

	for (size_t i = 0; i < list->n_images; i++) {
		for (size_t k = 0; k < i; k++) {
			const char *a = list->images[k].id, *b = list->images[i].id;
			bool swap;

			if (!ids_conflict(a, b))
				continue;
			swap = strcmp(a, b) > 0;
			return llvm_error(
				j->b->tool,
				"conflicting TargetIDs [%s, %s] found in %s of %s",
				swap ? b : a, swap ? a : b, m->name, j->input);
		}
	}
	return 0;
}

/* ---- members ---- */

/* Read M's entries.  *SKIP: they cannot be read; a warning has been printed. */
static int open_member(struct job *j, struct member *m, bool *skip)
{
	struct kpackx_error why = {0};
	kpack_error_t err = bundler_contents_read(j->b, &m->src, &m->parts, &why);

	*skip = err == KPACK_ERROR_NOT_IMPLEMENTED && bundler_is_object(&m->src);
	if (*skip)
		llvm_warning(j->b->tool, "'%s': %s", m->name, why.text);
	return err && !*skip
		       ? bundler_fail_parts(j->b, "code object", m->name, &m->src, &why)
		       : 0;
}

static int visit_member(struct job *j, struct member *m,
			int (*visit)(struct job *j, struct member *m))
{
	bool skip;
	int status = open_member(j, m, &skip);

	if (status || skip)
		return status;
	status = visit(j, m);
	bundler_contents_free(&m->parts);
	return status;
}

static int each_member(struct job *j, int (*visit)(struct job *j, struct member *m))
{
	struct kpackx_error why = {0};
	struct bundler_input in;
	struct member m;
	int status = 0;

	for (size_t i = 0; i < j->ar.count && !status; i++) {
		m.name = j->ar.items[i].name;
		if (bundler_member_open(&in, &j->ar, i, &j->in.src, j->input, &why))
			return bundler_fail_file(j->b, m.name, &why);
		m.src = in.src;
		status = visit_member(j, &m, visit);
		bundler_input_close(&in);
	}
	return status;
}

/* ---- writing ---- */

static int write_outputs(struct job *j, struct bundler_outputs *outputs)
{
	struct bundler_output *out;
	struct kpackx_error why = {0};
	const char *failed;

	for (size_t t = 0; t < j->b->n_targets; t++) {
		const struct collection *c = &j->collections[t];

		if (bundler_outputs_add(outputs, j->b->outputs[t], &out, &why))
			return bundler_fail_file(j->b, j->b->outputs[t], &why);
		if (kp_ar_write(c->items, c->n, &out->sink, &why))
			return bundler_fail_file(j->b, j->b->outputs[t], &why);
	}
	return bundler_outputs_publish(outputs, &failed, &why)
		       ? bundler_fail_file(j->b, failed, &why)
		       : 0;
}

static int check_missing(const struct job *j)
{
	for (size_t t = 0; t < j->b->n_targets && !j->b->allow_missing; t++)
		if (j->collections[t].n == 0)
			return llvm_error(j->b->tool,
					  "no compatible code object found for the "
					  "target '%s' in heterogeneous archive "
					  "library: %s",
					  j->b->targets[t].name, j->input);
	return 0;
}

static int write_archives(struct job *j)
{
	struct bundler_outputs outputs;
	int status = check_missing(j);

	if (status)
		return status;
	outputs = bundler_outputs_new(j->b->n_targets);
	status = write_outputs(j, &outputs);
	bundler_outputs_close(&outputs);
	return status;
}

static int unbundle_archive(struct job *j)
{
	struct kpackx_error why = {0};
	int status;

	if (j->in.src.size < 8)
		return llvm_error(j->b->tool, "'%s': too small to be an archive",
				  j->input);
	if (kp_ar_read(&j->in.src, &j->ar, &why))
		return bundler_fail_file(j->b, j->input, &why);
	status = open_spool(j);
	if (!status && j->b->check_archive)
		status = each_member(j, check_member);
	if (!status)
		status = each_member(j, take_entries);
	if (!status)
		status = write_archives(j);
	kp_ar_fini(&j->ar);
	return status;
}

static void free_collections(struct job *j)
{
	for (size_t t = 0; t < j->b->n_targets; t++) {
		for (size_t i = 0; i < j->collections[t].n; i++)
			free((void *)j->collections[t].items[i].name.data);
		free(j->collections[t].items);
	}
	free(j->collections);
}

int bundler_unbundle_archive(const struct bundler *b)
{
	struct job j = {.b = b, .input = b->inputs[0], .spool = {.fd = -1, .dir_fd = -1}};
	struct kpackx_error why = {0};
	int status;

	if (bundler_input_open(&j.in, j.input, &why))
		return bundler_fail_file(b, j.input, &why);
	j.collections = xcalloc(b->n_targets, sizeof(*j.collections));
	status = unbundle_archive(&j);
	free_collections(&j);
	kp_outfile_close(&j.spool);
	bundler_input_close(&j.in);
	return status;
}
