/* SPDX-License-Identifier: MIT */
#include "converter.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/copy.h"
#include "packer/files/below.h"
#include "core/elf/convert.h"
#include "core/restore/recipe.h"
#include "packer/cli/pipeline.h"
#include "packer/files/target.h"
#include "marker.h"
#include "packer/cli/report.h"

/* The bound of memory that all conversions hold together. */
static const uint64_t BUDGET = 256 << 20;

/* A binary that is written but has no name yet. */
struct written {
	struct kp_outfile out;
	uint64_t size;
	size_t n_kept; /* as in struct disposition */
	uint64_t kept_size;
	char *refused; /* if it cannot be converted: why */
};

static struct input *input_of(const struct converter *c, size_t job)
{
	return c->inputs[job];
}

static const struct scan_entry *entry_of(const struct converter *c, size_t job)
{
	return &c->scan->entries[input_of(c, job)->entry];
}

static struct disposition *disposition_of(const struct converter *c, size_t job)
{
	return &c->dispositions->items[input_of(c, job)->entry];
}

/* Only host binaries of this shard are converted; any file may be rewritten. */
static bool is_binary(const struct converter *c, size_t job)
{
	return (c->rewrite || input_of(c, job)->kind == INPUT_HOST) &&
	       disposition_of(c, job)->fate != FATE_NOTHING;
}

/* --- before -------------------------------------------------------------------------- */

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
}

/* Check that the file at E's path can be replaced by one with the same attributes. */
static kpack_error_t check_replaceable(const struct scan_entry *e, const struct stat *st,
				       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	char *dir;

	if (geteuid() != 0 && geteuid() != st->st_uid)
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "belongs to user %u: only that user can replace it",
			       (unsigned)st->st_uid);
	dir = dir_of(e->path);
	if (below_access(dir, W_OK | X_OK) < 0)
		err = below_fail(why, "cannot be replaced in its directory");
	free(dir);
	return err;
}

static void check_in_place(const struct converter *c, size_t job, size_t *faults)
{
	const struct stat *st = &input_of(c, job)->st;
	nlink_t found = 0;

	for (size_t i = input_of(c, job)->entry; i != SCAN_NO_LINK;
	     i = c->scan->entries[i].next_link) {
		const struct scan_entry *e = &c->scan->entries[i];
		struct kpackx_error fault = {0};

		found++;
		if (check_replaceable(e, st, &fault)) {
			report_why(e->path, &fault);
			++*faults;
		}
	}
	if (found < st->st_nlink)
		report_error(entry_of(c, job)->path,
			     "note: %llu more hard links are not in the tree and stay as "
			     "they are",
			     (unsigned long long)(st->st_nlink - found));
}

static kpack_error_t check_convertible(const struct converter *c, struct input *in,
				       struct kpackx_error *why)
{
	kpack_error_t err;
	int fd;

	if (c->rewrite) /* writing it finds out */
		return KPACK_SUCCESS;
	KP_TRY(input_hold(in, &fd, why));
	err = kp_convert_check(fd, (uint64_t)in->st.st_size, &in->fat,
			       c->keep_device_code, why);
	input_release(in);
	return err;
}

static void check_one(const struct converter *c, size_t job, size_t *faults)
{
	struct input *in = input_of(c, job);
	struct kpackx_error fault = {0};
	kpack_error_t err = check_convertible(c, in, &fault);

	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		disposition_set(disposition_of(c, job), FATE_REFUSED, fault.text);
	} else if (err) {
		report_why(in->path, &fault);
		++*faults;
	} else if (!c->output) {
		check_in_place(c, job, faults);
	}
}

void converter_check(const struct converter *c, size_t *faults)
{
	for (size_t i = 0; i < c->n_inputs; i++)
		if (is_binary(c, i))
			check_one(c, i, faults);
}

/* --- on the threads ------------------------------------------------------------------ */

/* For the layout a compressed container is decoded and encoded. */
static uint64_t cost_of_job(void *arg, size_t job)
{
	const struct converter *c = arg;
	const struct kp_containers *list = &input_of(c, job)->fat.containers;
	uint64_t most = BUDGET / 64; /* besides memory each holds two descriptors */

	if (!is_binary(c, job))
		return 1;
	for (size_t i = 0; i < list->count; i++)
		if (3 * kp_payload_memory(&list->items[i]) > most)
			most = 3 * kp_payload_memory(&list->items[i]);
	if (c->rewrite_cost && c->rewrite_cost(c->rewrite_arg, input_of(c, job)) > most)
		most = c->rewrite_cost(c->rewrite_arg, input_of(c, job));
	return most;
}

static kpack_error_t open_output(const struct converter *c, size_t job,
				 struct kp_outfile *out, struct kpackx_error *why)
{
	const struct scan_entry *e = entry_of(c, job);
	char *path =
		c->output ? xasprintf("%s/%s", c->output, e->relative) : xstrdup(e->path);
	/* no other user may read it before it has its permissions */
	kpack_error_t err = below_outfile_open(out, path, 0600, why);

	free(path);
	return err;
}

static kpack_error_t convert_binary(const struct converter *c, size_t job, int fd,
				    struct kp_span marker, struct written *w,
				    struct kpackx_error *why)
{
	struct input *in = input_of(c, job);
	struct kp_recipe recipe;
	struct kp_recipe_maker maker = {
		.recipe = &recipe, .fd = fd, .size = (uint64_t)in->st.st_size};
	struct kp_convert_options options = {.marker = marker,
					     .recipe = kp_recipe_complete,
					     .recipe_arg = &maker,
					     .keep_device_code = c->keep_device_code};
	kpack_error_t err;

	KP_TRY(kp_recipe_describe(&in->fat, (const uint8_t(*)[16])in->xxh3, in->known,
				  (c->apart ? KP_RECIPE_COMPUTE : 0) |
					  (c->keep_containers ? KP_RECIPE_KEEP : 0) |
					  (c->keep_device_code ? KP_RECIPE_IN_FILE : 0),
				  &recipe, why));
	for (size_t i = 0; i < recipe.n_forms; i++)
		w->n_kept += recipe.forms[i].kept != 0;
	w->kept_size = recipe.n_kept;
	err = open_output(c, job, &w->out, why);
	if (!err)
		err = kp_convert(fd, (uint64_t)in->st.st_size, &in->fat, &options,
				 &w->out, why);
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	return err;
}

/* A replaced file must keep its owner. */
static kpack_error_t check_owner(const struct stat *st, const struct stat *now,
				 struct kpackx_error *why)
{
	if (now->st_uid == st->st_uid && now->st_gid == st->st_gid)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "cannot keep its owner %u:%u",
		       (unsigned)st->st_uid, (unsigned)st->st_gid);
}

static kpack_error_t finish_binary(const struct converter *c, const struct stat *st,
				   int fd, struct written *w, struct kpackx_error *why)
{
	struct stat now;

	KP_TRY(attributes_copy(fd, w->out.fd, st, why));
	if (fstat(w->out.fd, &now) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	w->size = (uint64_t)now.st_size;
	return c->output ? KPACK_SUCCESS : check_owner(st, &now, why);
}

static kpack_error_t rewrite_binary(const struct converter *c, size_t job, int fd,
				    struct written *w, struct kpackx_error *why)
{
	KP_TRY(open_output(c, job, &w->out, why));
	return c->rewrite(c->rewrite_arg, input_of(c, job), fd, &w->out, why);
}

/* Write the converted binary with its marker. */
static kpack_error_t convert_with_marker(const struct converter *c, size_t job, int fd,
					 struct written *w, struct kpackx_error *why)
{
	const struct marker_request request = {.scan = c->scan,
					       .binary = &c->plan->binaries[job],
					       .all = c->apart,
					       .group = c->group,
					       .families = c->families};
	uint8_t *marker = NULL;
	size_t size;
	kpack_error_t err = marker_make(&request, &marker, &size, why);

	if (!err)
		err = convert_binary(c, job, fd, (struct kp_span){marker, size}, w, why);
	free(marker);
	return err;
}

static kpack_error_t write_one(const struct converter *c, size_t job, struct written *w,
			       struct kpackx_error *why)
{
	struct input *in = input_of(c, job);
	kpack_error_t err;
	int fd;

	KP_TRY(input_hold(in, &fd, why));
	err = c->rewrite ? rewrite_binary(c, job, fd, w, why)
			 : convert_with_marker(c, job, fd, w, why);
	if (!err)
		err = finish_binary(c, &in->st, fd, w, why);
	input_release(in);
	return err;
}

static void discard_written(void *arg, void *result)
{
	struct written *w = result;

	(void)arg;
	kp_outfile_close(&w->out);
	free(w->refused);
	free(w);
}

static kpack_error_t convert_job(void *arg, void *state, size_t job, void **result,
				 struct kpackx_error *why)
{
	const struct converter *c = arg;
	struct written *w = xcalloc(1, sizeof(*w));
	struct kpackx_error fault = {0};
	kpack_error_t err = KPACK_SUCCESS;

	(void)state;
	w->out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	*result = w;
	if (is_binary(c, job) && disposition_of(c, job)->fate != FATE_REFUSED)
		err = write_one(c, job, w, &fault);
	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		kp_outfile_close(&w->out);
		w->refused = xstrdup(fault.text);
		err = KPACK_SUCCESS;
	}
	if (err) {
		*result = NULL;
		discard_written(NULL, w);
		kp_fail_prefix(&fault, err, "%s", entry_of(c, job)->path);
		if (why)
			*why = fault;
	}
	return err;
}

/* --- in order ------------------------------------------------------------------------ */

static kpack_error_t fail_changed(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
}

/* Check that the file that OUT replaces is still the one that was scanned. */
static kpack_error_t check_unchanged(const struct scan_entry *e,
				     const struct kp_outfile *out,
				     struct kpackx_error *why)
{
	struct stat st;

	if (below_outfile_lstat(out, &st) < 0)
		return below_fail(why, "cannot stat");
	return file_identity_is_named(&e->id, &st) ? KPACK_SUCCESS : fail_changed(why);
}

/* Another path of a binary that is replaced. */
struct other_link {
	const struct scan_entry *entry;
	const struct kp_outfile *out;
	bool changed; /* it is not the file that was scanned */
};

static int link_written(const struct place *p, void *arg)
{
	struct other_link *link = arg;
	struct stat st;

	if (place_lstat(p, &st) < 0)
		return -1;
	link->changed = !file_identity_is_named(&link->entry->id, &st);
	if (!link->changed)
		return place_outfile(p, link->out);
	errno = ESTALE;
	return -1;
}

/* Replace the paths after the first of LINKS, from the last one on. */
static kpack_error_t replace_links(const struct converter *c, const size_t *links,
				   size_t n, struct kp_outfile *out,
				   struct kpackx_error *why)
{
	while (--n > 0) {
		struct other_link link = {&c->scan->entries[links[n]], out, false};
		kpack_error_t err =
			place(link.entry->path, link_written, &link, true, why);

		if (err)
			return link.changed ? fail_changed(why) : err;
	}
	return KPACK_SUCCESS;
}

static bool is_written(const char *path, const struct written *w)
{
	struct kp_source written = kp_source_fd(w->out.fd, 0, w->size), there;
	struct stat st;
	bool same;
	int fd;

	if (below_file_open_nofollow(path, &fd, &st, NULL))
		return false;
	there = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	same = kp_source_same(&there, &written);
	close(fd);
	return same;
}

/* LINKS[AT] is a path of another file: split that file's paths off. */
static void split_links(const struct converter *c, size_t *links, size_t *n, size_t at)
{
	const struct scan_entry *e = &c->scan->entries[links[at]];
	size_t *others = xmalloc(*n * sizeof(*others)), n_others = 0, kept = 0;

	for (size_t i = 0; i < *n; i++) {
		const struct scan_entry *l = &c->scan->entries[links[i]];

		if (l->id.dev == e->id.dev && l->id.ino == e->id.ino)
			others[n_others++] = links[i];
		else
			links[kept++] = links[i];
	}
	scan_chain(c->scan, links, kept);
	scan_chain(c->scan, others, n_others);
	c->dispositions->items[others[0]].fate = FATE_ALREADY_CONVERTED;
	free(others);
	*n = kept;
}

/* Keep only those converted files among LINKS that this run wrote. */
static void settle_links(const struct converter *c, size_t *links, size_t *n,
			 const struct written *w)
{
	size_t i = 1;

	while (i < *n) {
		const struct scan_entry *e = &c->scan->entries[links[i]];

		if (e->converted && !is_written(e->path, w))
			split_links(c, links, n, i);
		else
			i++;
	}
}

static kpack_error_t publish_in_place(const struct converter *c, const size_t *links,
				      size_t n, struct written *w,
				      struct kpackx_error *why)
{
	KP_TRY(kp_outfile_sync(&w->out, why));
	KP_TRY(replace_links(c, links, n, &w->out, why));
	KP_TRY(check_unchanged(&c->scan->entries[links[0]], &w->out, why));
	return kp_outfile_publish(&w->out, why);
}

static kpack_error_t publish_binary(const struct converter *c, size_t job,
				    struct written *w, struct kpackx_error *why)
{
	size_t n, *links = scan_links(c->scan, input_of(c, job)->entry, &n);
	kpack_error_t err;

	settle_links(c, links, &n, w);
	err = c->output ? kp_outfile_publish(&w->out, why)
			: publish_in_place(c, links, n, w, why);
	free(links);
	return err;
}

static kpack_error_t commit_written(void *arg, size_t job, void *result,
				    struct kpackx_error *why)
{
	const struct converter *c = arg;
	struct disposition *o = disposition_of(c, job);
	struct written *w = result;
	kpack_error_t err = KPACK_SUCCESS;

	if (!is_binary(c, job)) {
		discard_written(NULL, w);
		return KPACK_SUCCESS;
	}
	if (w->refused)
		disposition_set(o, FATE_REFUSED, w->refused);
	else if (o->fate != FATE_REFUSED)
		err = publish_binary(c, job, w, why);
	if (err)
		kp_fail_prefix(why, err, "%s", entry_of(c, job)->path);
	o->before = (uint64_t)input_of(c, job)->st.st_size;
	o->after = w->size;
	o->n_kept = w->n_kept;
	o->kept_size = w->kept_size;
	discard_written(NULL, w);
	return err;
}

/* --- with little room ---------------------------------------------------------------- */

static bool is_full(const struct kpackx_error *why)
{
	return why->sys_errno == ENOSPC || why->sys_errno == EDQUOT;
}

/*
 * The disk became full while several new files waited to replace old ones.  From number
 * FIRST on, replace one after another, so that there need only be room for one; each frees
 * what it does not need.  A file for which there is no room waits until others made some.
 */
static kpack_error_t run_singly(const struct converter *c, size_t first,
				struct kpackx_error *why)
{
	size_t n = c->n_inputs - first, last = SIZE_MAX;
	size_t *jobs = xcalloc(n + 1, sizeof(*jobs));
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < n; i++)
		jobs[i] = first + i;
	while (n && n < last) {
		size_t left = 0;

		err = KPACK_SUCCESS;
		last = n;
		for (size_t i = 0; i < n; i++) {
			struct kpackx_error fault = {0};
			void *written;

			if (!convert_job((void *)c, NULL, jobs[i], &written, &fault) &&
			    !commit_written((void *)c, jobs[i], written, &fault))
				continue;
			err = fault.code;
			*why = fault;
			if (!is_full(why))
				goto out;
			jobs[left++] = jobs[i];
		}
		n = left;
	}
out:
	free(jobs);
	return err;
}

kpack_error_t converter_run(const struct converter *c, struct kpackx_error *why)
{
	struct pipeline pipeline = {
		.n_jobs = c->n_inputs,
		.threads = c->jobs,
		.budget = BUDGET,
		.arg = (void *)c,
		.cost = cost_of_job,
		.work = convert_job,
		.commit = commit_written,
		.discard = discard_written,
	};

	size_t done;
	kpack_error_t err = pipeline_run(&pipeline, &done, why);

	return err && !c->output && is_full(why) ? run_singly(c, done, why) : err;
}
