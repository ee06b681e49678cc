/* SPDX-License-Identifier: MIT */
/*
 * Unbundling and listing.
 *
 * A bundle's entries are assigned to targets before anything is written: in the order of the
 * file, each goes to the target with its ID, else to the first target that has no entry yet
 * and that it serves.
 *
 * An archive becomes an archive for each target, with every entry of every member that serves
 * the target, named by the member and the entry.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/format/ar_archive.h"
#include "offload.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

#define NONE SIZE_MAX
#define INVALID_ID "invalid entry ID: %s"

static void warn_ignored(const char *name, const struct bundle_contents *c)
{
	if (c->ignored)
		report_error(name, "warning: the last %" PRIu64 " bytes are no bundle",
			     c->ignored);
}

/* ---- a bundle ---- */

struct unbundling {
	const struct bundler *b;
	struct bundle_contents contents;
	size_t *taken; /* by target: an image, or NONE */
	size_t n_open; /* targets that have no entry yet */
};

static int write_target(void *arg, size_t t, struct kp_sink *sink)
{
	struct unbundling *u = arg;
	struct bundle_contents *c = &u->contents;
	kpack_error_t err = KPACK_SUCCESS;
	struct kpackx_error why = {0};
	struct kp_source bytes;

	if (u->taken[t] != NONE && bundle_contents_is_mark(c, u->taken[t])) {
		err = offload_object_strip(&c->src, sink, &why);
	} else if (u->taken[t] != NONE) {
		err = bundle_contents_open(c, u->taken[t], &bytes, &why);
		if (!err)
			err = kp_sink_copy(sink, &bytes, &why);
	} else if (t == u->b->host && u->n_open == u->b->n_targets) {
		/* an input with none of the targets is the host's file, decompressed */
		if (!c->binary || c->list.count == 0)
			err = kp_sink_copy(sink, &c->src, &why);
		for (size_t i = 0; c->binary && i < c->list.count && !err; i++) {
			struct kp_payload payload;

			err = kp_container_load(&c->src, &c->list.items[i], &payload,
						&why);
			if (err)
				break;
			err = kp_sink_copy(sink, &payload.source, &why);
			kp_payload_fini(&payload);
		}
	}
	return err ? report_why(u->b->inputs.items[0], &why) : 0;
}

/*
 * Give each entry of the bundle to a target, then write all of them.  An entry with the ID of one
 * that was taken is left, and reported.
 */
static int unbundle_bundle(const struct bundler *b, const struct offload_input *in)
{
	struct unbundling u = {.b = b, .n_open = b->n_targets};
	const struct kp_containers *list = &u.contents.list;
	const char *input = b->inputs.items[0];
	size_t n = b->n_targets, repeated = 0;
	struct kpackx_error why = {0};
	int status = EXIT_FAULT;

	if (bundle_contents_read(b, &in->src, &u.contents, &why)) {
		report_why(input, &why);
		goto out;
	}
	u.taken = xmalloc(n * sizeof(*u.taken));
	for (size_t t = 0; t < n; t++)
		u.taken[t] = NONE;
	for (size_t i = 0; i < list->n_images; i++) {
		const char *text = list->images[i].id;
		size_t chosen = NONE, t = 0;
		struct entry_id id;

		if (!text)
			continue;
		while (t < n && (u.taken[t] == NONE ||
				 strcmp(list->images[u.taken[t]].id, text) != 0))
			t++;
		repeated += t < n;
		if (t < n || u.n_open == 0)
			continue;
		if (!entry_id_parse(kp_span_str(text), &id)) {
			report_error(input, INVALID_ID, text);
			goto out;
		}
		for (t = 0; t < n; t++) {
			enum entry_match match =
				u.taken[t] != NONE
					? ENTRY_OTHER
					: entry_id_match(&id, &b->targets[t].id,
							 b->hip_openmp);

			if (match == ENTRY_SAME || (match && chosen == NONE))
				chosen = t;
			if (match == ENTRY_SAME)
				break;
		}
		if (chosen != NONE) {
			u.taken[chosen] = i;
			u.n_open--;
		}
	}
	for (size_t t = 0; t < n && !b->allow_missing; t++)
		if (u.taken[t] == NONE)
			report_error(input, "no entry for %s", b->targets[t].name);
	if (u.n_open && !b->allow_missing)
		goto out;
	warn_ignored(input, &u.contents);
	if (repeated)
		report_error(input,
			     "warning: left out %zu entr%s with the ID of one before",
			     repeated, plural_y(repeated));
	status = offload_outputs_write(b->outputs.items, n, write_target, &u);
out:
	free(u.taken);
	bundle_contents_fini(&u.contents);
	return status;
}

/* ---- archives ---- */

/*
 * Call VISIT for each member of the archive SRC with the member's contents, which are gone
 * when it returns.  A damaged member is reported, and the rest visited.
 */
static int visit_members(const struct bundler *b, const struct kp_source *src,
			 int (*visit)(void *arg, const char *name,
				      struct bundle_contents *c),
			 void *arg)
{
	struct kpackx_error why = {0};
	KP_AUTO(kp_ar) ar = {0};
	int status = 0;

	if (kp_ar_read(src, &ar, &why))
		return report_why(b->inputs.items[0], &why);
	for (size_t i = 0; i < ar.count; i++) {
		const struct kp_ar_member *m = &ar.items[i];
		KP_AUTO(bundle_contents) contents = {0};
		struct kp_source bytes = {.fd = -1};
		kpack_error_t err;

		if (kp_source_sub(src, m->offset, m->size, &bytes))
			err = bundle_contents_read(b, &bytes, &contents, &why);
		else
			err = kp_fail(&why, KPACK_ERROR_INVALID_FORMAT, "passes the end");
		/* an object of a kind whose sections are not read has none of ours */
		if (err == KPACK_ERROR_NOT_IMPLEMENTED && offload_is_object(&bytes))
			report_error(m->name, "warning: %s", why.text);
		else if (err)
			status = report_why(m->name, &why);
		else
			status |= visit(arg, m->name, &contents);
	}
	return status;
}

/*
 * The archives that are made.  Members are sorted into them in one pass over the input, which may
 * be compressed bundles: an entry for two targets is decoded once.
 */
struct sorting {
	const struct bundler *b;
	int in; /* the descriptor of the input */
	struct {
		struct kp_ar_input *items;
		size_t count, cap;
	} * parts;
	/* Entries that the input does not contain as they are, until they are written. */
	struct offload_spool spool;
};

/* "func_1.o" -> "func_1-hip-amdgcn-amd-amdhsa--gfx906_xnack+func_1.bc", as clang has it */
static char *name_member(const char *member, const struct entry_id *id)
{
	const char *file = kp_path_name(member), *dot = strrchr(file, '.');
	int stem = (int)(dot ? dot - file : (ptrdiff_t)strlen(file));
	const char *extension = dot ? dot : "";
	char *out;

	if (id->target.size && memmem(id->target.data, id->target.size, "gfx", 3))
		extension = ".bc";
	else if (id->target.size && memmem(id->target.data, id->target.size, "sm_", 3))
		extension = ".cubin";
	out = xasprintf("%.*s-%.*s%.*s%s", stem, file, (int)id->text.size,
			(const char *)id->text.data, stem, file, extension);
	for (char *p = out; *p; p++)
		if (*p == ':')
			*p = '_';
	return out;
}

/* Set OUT to bytes of IMAGE that stay valid: those in the archive itself, or spooled ones. */
static kpack_error_t keep_entry(struct sorting *s, struct bundle_contents *c,
				size_t image, struct kp_source *out,
				struct kpackx_error *why)
{
	uint64_t before = s->spool.sink.size;

	if (bundle_contents_is_mark(c, image)) {
		KP_TRY(offload_object_strip(&c->src, &s->spool.sink, why));
	} else {
		KP_TRY(bundle_contents_open(c, image, out, why));
		/* the archive stays open: bytes in it need not be copied */
		if (out->fd == s->in)
			return KPACK_SUCCESS;
		KP_TRY(kp_sink_copy(&s->spool.sink, out, why));
	}
	*out = offload_spooled(&s->spool, before);
	return KPACK_SUCCESS;
}

/* Give each entry of a member to every target that it serves: one code can suit several. */
static int sort_member(void *arg, const char *name, struct bundle_contents *c)
{
	struct sorting *s = arg;
	const struct bundler *b = s->b;
	const struct kp_image *images = c->list.images;
	struct kpackx_error why = {0};

	for (size_t i = 0; i < c->list.n_images; i++) {
		struct kp_source bytes = {.fd = -1};
		struct entry_id id, other;
		bool kept = false;

		if (!images[i].id)
			continue;
		if (!entry_id_parse(kp_span_str(images[i].id), &id))
			return report_error(name, INVALID_ID, images[i].id);
		for (size_t k = 0; b->check_archive && k < i; k++) {
			if (!images[k].id ||
			    !entry_id_parse(kp_span_str(images[k].id), &other) ||
			    !entry_ids_conflict(&id, &other))
				continue;
			return report_error(name, "conflicting entries %s and %s",
					    images[k].id, images[i].id);
		}
		for (size_t t = 0; t < b->n_targets; t++) {
			if (entry_id_match(&id, &b->targets[t].id, b->hip_openmp) ==
			    ENTRY_OTHER)
				continue;
			if (!kept && keep_entry(s, c, i, &bytes, &why))
				return report_why(name, &why);
			kept = true;
			xgrow(&s->parts[t].items, s->parts[t].count, &s->parts[t].cap,
			      sizeof(*s->parts[t].items));
			s->parts[t].items[s->parts[t].count++] = (struct kp_ar_input){
				.name = kp_span_str(name_member(name, &id)),
				.bytes = bytes};
		}
	}
	return 0;
}

static int write_part(void *arg, size_t t, struct kp_sink *sink)
{
	const struct sorting *s = arg;
	struct kpackx_error why = {0};

	return kp_ar_write(s->parts[t].items, s->parts[t].count, sink, &why)
		       ? report_why(s->b->outputs.items[t], &why)
		       : 0;
}

static int unbundle_archive(const struct bundler *b, const struct offload_input *in)
{
	struct sorting s = {.b = b, .in = in->fd};
	struct kpackx_error why = {0};
	int status;

	if (offload_spool_open(&s.spool, &why))
		return report_why(NULL, &why);
	s.parts = xcalloc(b->n_targets, sizeof(*s.parts));
	status = visit_members(b, &in->src, sort_member, &s);
	for (size_t t = 0; t < b->n_targets && !status && !b->allow_missing; t++) {
		if (s.parts[t].count)
			continue;
		report_error(b->inputs.items[0], "no entry for %s", b->targets[t].name);
		status = EXIT_FAULT;
	}
	if (!status)
		status = offload_outputs_write(b->outputs.items, b->n_targets, write_part,
					       &s);
	for (size_t t = 0; t < b->n_targets; t++) {
		for (size_t i = 0; i < s.parts[t].count; i++)
			free((void *)s.parts[t].items[i].name.data);
		free(s.parts[t].items);
	}
	free(s.parts);
	offload_spool_fini(&s.spool);
	return status;
}

int bundler_unbundle(const struct bundler *b)
{
	const char *input = b->inputs.items[0];
	struct kpackx_error why = {0};
	KP_AUTO(offload_input) in;

	if (offload_input_open(&in, input, &why))
		return report_why(input, &why);
	if (strcmp(b->type, "a") != 0)
		return unbundle_bundle(b, &in);
	return offload_input_gather(&in, input, &why) ? report_why(input, &why)
						      : unbundle_archive(b, &in);
}

/* ---- listing ---- */

/* Print the IDs as they are stored, in the order of the file. */
static int list_contents(void *arg, const char *name, struct bundle_contents *c)
{
	(void)arg;
	for (size_t i = 0; i < c->list.n_images; i++) {
		if (!c->list.images[i].id)
			continue;
		report_text(c->list.images[i].id);
		putchar('\n');
	}
	warn_ignored(name, c);
	return 0;
}

int bundler_list(const struct bundler *b)
{
	const char *input = b->inputs.items[0];
	KP_AUTO(bundle_contents) contents = {0};
	struct kpackx_error why = {0};
	KP_AUTO(offload_input) in;
	struct kp_span head;
	uint8_t buf[8];

	if (offload_input_open(&in, input, &why))
		return report_why(input, &why);
	if (strcmp(b->type, "a") == 0 &&
	    !kp_source_head(&in.src, 0, buf, sizeof(buf), &head, &why) &&
	    kp_ar_probe(head))
		return offload_input_gather(&in, input, &why)
			       ? report_why(input, &why)
			       : visit_members(b, &in.src, list_contents, NULL);
	return bundle_contents_read(b, &in.src, &contents, &why)
		       ? report_why(input, &why)
		       : list_contents(NULL, input, &contents);
}
