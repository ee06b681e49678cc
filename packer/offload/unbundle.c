/* SPDX-License-Identifier: MIT */
/*
 * Unbundle: all entries are assigned to targets before anything is written.  In the order
 * of the file each entry goes to the target with its ID, else to the first target that
 * has no entry yet and that it serves.
 */
#include <stdio.h>
#include <stdlib.h>
#include "object.h"
#include "contents.h"
#include "packer/cli/xalloc.h"

#define NONE SIZE_MAX

struct job {
	const struct bundler *b;
	const char *input;
	struct bundler_input in;
	struct bundler_contents parts;
	size_t *taken;   /* by target: an image, or NONE */
	size_t n_open;   /* targets that have no entry yet */
	size_t repeated; /* entries with the ID of an earlier entry */
};

/* ---- choosing ---- */

/* The target that got an entry with the ID, or NONE. */
static size_t given_to(const struct job *j, const char *id)
{
	for (size_t t = 0; t < j->b->n_targets; t++)
		if (j->taken[t] != NONE &&
		    strcmp(j->parts.list.images[j->taken[t]].id, id) == 0)
			return t;
	return NONE;
}

/*
 * IMAGE has the ID of *TAKEN.  From one binary bundle the last such entry is taken, as in
 * LLVM; otherwise the first.
 */
static void note_repeated(struct job *j, size_t image, size_t *taken)
{
	const struct kp_image *images = j->parts.list.images;

	j->repeated++;
	if (j->parts.binary && images[image].container == images[*taken].container)
		*taken = image;
}

/* The target for an entry; NONE: it serves no target that is still open. */
static size_t target_of(const struct job *j, const struct entry_id *id)
{
	enum entry_verdict verdict;
	size_t first = NONE;

	for (size_t t = 0; t < j->b->n_targets; t++) {
		if (j->taken[t] != NONE)
			continue;
		verdict = bundler_compare(j->b, id, &j->b->targets[t]);
		if (verdict == ENTRY_SAME)
			return t;
		if (entry_serves(verdict) && first == NONE)
			first = t;
	}
	return first;
}

static void offer_entry(struct job *j, size_t image, const struct entry_id *id)
{
	size_t t = target_of(j, id);

	if (t == NONE)
		return;
	j->taken[t] = image;
	j->n_open--;
}

static int choose_entries(struct job *j)
{
	const struct kp_containers *list = &j->parts.list;
	struct entry_id id;
	size_t t;

	for (size_t i = 0; i < list->n_images; i++) {
		if (!list->images[i].id)
			continue;
		t = given_to(j, list->images[i].id);
		if (t != NONE) {
			note_repeated(j, i, &j->taken[t]);
			continue;
		}
		if (j->n_open == 0)
			continue;
		if (!entry_id_parse(kp_span_str(list->images[i].id), &id))
			return llvm_error(j->b->tool,
					  "invalid bundle id read from the bundle: '%s'",
					  list->images[i].id);
		offer_entry(j, i, &id);
	}
	return 0;
}

/* ---- what is missing ---- */

/* "A", "A and B", "A, B, and C" */
static char *enumerate_names(const char *const *names, size_t n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = xmemstream(&text, &size);

	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%s%s%s", i && n > 2 ? "," : "", i ? " " : "",
			i && i + 1 == n ? "and " : "", names[i]);
	fclose(f);
	return text;
}

static int fail_missing(const struct job *j)
{
	const char **names = xcalloc(j->b->n_targets, sizeof(*names));
	size_t n = 0;
	char *text;

	for (size_t t = 0; t < j->b->n_targets; t++)
		if (j->taken[t] == NONE)
			names[n++] = j->b->targets[t].name;
	qsort(names, n, sizeof(*names), kp_order_texts);
	text = enumerate_names(names, n);
	llvm_error(j->b->tool, "Can't find bundles for %s", text);
	free(text);
	free(names);
	return 1;
}

static void print_warnings(const struct job *j)
{
	if (j->parts.ignored)
		llvm_warning(j->b->tool, "'%s': the last %llu bytes are no bundle",
			     j->input, (unsigned long long)j->parts.ignored);
	if (j->repeated)
		llvm_warning(j->b->tool,
			     "'%s': %zu more %s with the same ID as one before: the "
			     "%s is taken",
			     j->input, j->repeated,
			     j->repeated == 1 ? "entry" : "entries",
			     j->parts.binary ? "last in the first bundle that has it"
					     : "first");
}

/* ---- writing ---- */

/* Copy an input that has none of the targets: it is the host's file, decompressed. */
static kpack_error_t copy_input(struct job *j, struct kp_sink *sink,
				struct kpackx_error *why)
{
	const struct kp_containers *list = &j->parts.list;
	struct kp_payload payload;
	kpack_error_t err;

	if (!j->parts.binary || list->count == 0)
		return kp_sink_copy(sink, &j->parts.src, why);
	for (size_t i = 0; i < list->count; i++) {
		KP_TRY(kp_container_load(&j->parts.src, &list->items[i], &payload, why));
		err = kp_sink_copy(sink, &payload.source, why);
		kp_payload_fini(&payload);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static int write_entry(struct job *j, size_t image, struct kp_sink *sink)
{
	struct kpackx_error why = {0};
	struct kp_source bytes;

	if (bundler_contents_is_mark(&j->parts, image))
		return bundler_object_strip(j->b, &j->parts.src,
					    j->in.regular ? j->input : NULL, sink);
	if (bundler_contents_open(&j->parts, image, &bytes, &why) ||
	    kp_sink_copy(sink, &bytes, &why))
		return bundler_fail_file(j->b, j->input, &why);
	return 0;
}

static int write_target(struct job *j, size_t t, struct kp_sink *sink)
{
	bool nothing = j->n_open == j->b->n_targets;
	struct kpackx_error why = {0};

	if (j->taken[t] != NONE)
		return write_entry(j, j->taken[t], sink);
	if (nothing && t == j->b->host && copy_input(j, sink, &why))
		return bundler_fail_file(j->b, j->input, &why);
	return 0;
}

static int write_outputs(struct job *j, struct bundler_outputs *outputs)
{
	struct bundler_output *out;
	struct kpackx_error why = {0};
	const char *failed;
	int status = 0;

	for (size_t t = 0; t < j->b->n_targets && !status; t++) {
		if (bundler_outputs_add(outputs, j->b->outputs[t], &out, &why))
			return bundler_fail_file(j->b, j->b->outputs[t], &why);
		status = write_target(j, t, &out->sink);
	}
	if (!status && bundler_outputs_publish(outputs, &failed, &why))
		status = bundler_fail_file(j->b, failed, &why);
	return status;
}

static int choose_and_write(struct job *j)
{
	struct bundler_outputs outputs;
	int status = choose_entries(j);

	if (status)
		return status;
	if (j->n_open && !j->b->allow_missing)
		return fail_missing(j);
	print_warnings(j);
	outputs = bundler_outputs_new(j->b->n_targets);
	status = write_outputs(j, &outputs);
	bundler_outputs_close(&outputs);
	return status;
}

/* ---- the job ---- */

static int read_and_go_on(struct job *j)
{
	struct kpackx_error why = {0};
	int status;

	if (!bundler_type_known(j->b->type))
		return llvm_error(j->b->tool, "'%s': invalid file type specified",
				  j->b->type);
	if (bundler_contents_read(j->b, &j->in.src, &j->parts, &why))
		return bundler_fail_parts(j->b, "input", j->input, &j->in.src, &why);
	status = choose_and_write(j);
	bundler_contents_free(&j->parts);
	return status;
}

int bundler_unbundle(const struct bundler *b)
{
	struct job j = {.b = b, .input = b->inputs[0], .n_open = b->n_targets};
	struct kpackx_error why = {0};
	int status;

	if (bundler_input_open(&j.in, j.input, &why))
		return bundler_fail_file(b, j.input, &why);
	j.taken = xmalloc(b->n_targets * sizeof(*j.taken));
	for (size_t t = 0; t < b->n_targets; t++)
		j.taken[t] = NONE;
	status = read_and_go_on(&j);
	free(j.taken);
	bundler_input_close(&j.in);
	return status;
}
