/* SPDX-License-Identifier: MIT */
/*
 * Files that are written anew, in another tree or in place: for packing, for thin, and for its
 * undo, which say how (struct converter).
 *
 * Threads write each new file without a name, with the attributes of the old one (write_job).
 * In order, each gets its name (commit_job): in place it replaces the old file at each of its
 * paths, at the first one last.  Until then the old file is there, so that a killed run leaves
 * nothing half-written, and the next one finds the same first path.
 *
 * Threads may be ahead of the order by as many files as BUDGET allows.  In place these need room
 * beside the old ones; where a disk has none for all of them, run_singly goes on with one at a
 * time.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/copy.h"
#include "packer/files/below.h"
#include "packer/files/target.h"
#include "run.h"

/* The bound of memory that all conversions hold together. */
static const uint64_t BUDGET = 256 << 20;

/* A file that is written but has no name yet. */
struct written {
	struct kp_outfile out;
	uint64_t size;
	char *refused; /* why it cannot be written anew; or NULL */
};

char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
}

static struct disposition *disposition_of(const struct converter *c, size_t job)
{
	return &c->dispositions->items[c->inputs[job]->entry];
}

/* --- before -------------------------------------------------------------------------- */

void converter_check(const struct converter *c, size_t *faults)
{
	uid_t self = geteuid();

	for (size_t i = 0; i < c->n_inputs; i++) {
		struct input *in = c->inputs[i];
		struct kpackx_error fault = {0};
		kpack_error_t err = KPACK_SUCCESS;
		nlink_t found = 0;
		int fd;

		if (disposition_of(c, i)->fate != FATE_CONVERTED)
			continue;
		if (c->check)
			err = input_hold(in, &fd, &fault);
		if (c->check && !err) {
			err = c->check(c->arg, in, fd, &fault);
			input_release(in);
		}
		if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
			disposition_set(disposition_of(c, i), FATE_REFUSED, fault.text);
			continue;
		}
		if (err) {
			report_why(in->path, &fault);
			++*faults;
			continue;
		}
		/* in place, it is replaced at each of its paths by a file with the same attributes */
		for (size_t k = in->entry; k != SCAN_NO_LINK && !c->output;
		     k = c->scan->entries[k].next_link) {
			const char *path = c->scan->entries[k].path;
			KP_AUTO_FREE char *dir = directory_of(path);
			struct kpackx_error why = {0};

			found++;
			if (self != 0 && self != in->st.st_uid)
				kp_fail(&why, KPACK_ERROR_IO_ERROR,
					"belongs to user %u: only that user can replace "
					"it",
					(unsigned)in->st.st_uid);
			else if (below_access(dir, W_OK | X_OK) < 0)
				below_fail(&why, "cannot be replaced in its directory");
			if (why.code) {
				report_why(path, &why);
				++*faults;
			}
		}
		if (!c->output && found < in->st.st_nlink)
			report_error(c->scan->entries[in->entry].path,
				     "note: %llu more hard links are not in the tree and "
				     "stay as they are",
				     (unsigned long long)(in->st.st_nlink - found));
	}
}

/* --- on the threads ------------------------------------------------------------------ */

/* To rebuild it, a compressed container is decoded and encoded. */
static uint64_t cost_of_job(void *arg, size_t job)
{
	const struct converter *c = arg;
	const struct kp_containers *list = &c->inputs[job]->fat.containers;
	uint64_t most = BUDGET / 64; /* besides memory each holds two descriptors */
	uint64_t own = c->cost ? c->cost(c->arg, c->inputs[job]) : 0;

	if (disposition_of(c, job)->fate != FATE_CONVERTED)
		return 1;
	for (size_t i = 0; i < list->count; i++)
		if (3 * kp_payload_memory(&list->items[i]) > most)
			most = 3 * kp_payload_memory(&list->items[i]);
	return own > most ? own : most;
}

static void discard_written(void *arg, void *result)
{
	struct written *w = result;

	(void)arg;
	kp_outfile_close(&w->out);
	free(w->refused);
	free(w);
}

static kpack_error_t write_job(void *arg, void *state, size_t job, void **result,
			       struct kpackx_error *why)
{
	const struct converter *c = arg;
	struct input *in = c->inputs[job];
	const struct scan_entry *e = &c->scan->entries[in->entry];
	const struct stat *st = &in->st;
	KP_AUTO_FREE char *path =
		c->output ? xasprintf("%s/%s", c->output, e->relative) : xstrdup(e->path);
	struct written *w = xcalloc(1, sizeof(*w));
	struct kpackx_error fault = {0};
	struct stat now = {0};
	kpack_error_t err;
	int fd;

	(void)state;
	w->out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	*result = w;
	if (disposition_of(c, job)->fate != FATE_CONVERTED)
		return KPACK_SUCCESS;
	err = input_hold(in, &fd, &fault);
	if (!err) {
		/* no other user may read it before it has its permissions */
		err = below_outfile_open(&w->out, path, 0600, &fault);
		if (!err)
			err = c->rewrite(c->arg, in, fd, &w->out, &fault);
		if (!err)
			err = attributes_copy(fd, w->out.fd, st, &fault);
		if (!err && fstat(w->out.fd, &now) < 0)
			err = kp_fail_errno(&fault, errno, "cannot stat");
		input_release(in);
	}
	w->size = (uint64_t)now.st_size;
	if (!err && !c->output && (now.st_uid != st->st_uid || now.st_gid != st->st_gid))
		err = kp_fail(&fault, KPACK_ERROR_IO_ERROR, "cannot keep its owner %u:%u",
			      (unsigned)st->st_uid, (unsigned)st->st_gid);
	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		kp_outfile_close(&w->out);
		w->refused = xstrdup(fault.text);
		return KPACK_SUCCESS;
	}
	if (err) {
		*result = NULL;
		discard_written(NULL, w);
		kp_fail_prefix(&fault, err, "%s", e->path);
		if (why)
			*why = fault;
	}
	return err;
}

/* --- in order ------------------------------------------------------------------------ */

/* Another path of a file that is replaced. */
struct other_link {
	const struct scan_entry *entry;
	const struct kp_outfile *out;
	bool changed; /* it is not the file that was scanned */
};

static int link_written(const struct place *p, void *arg)
{
	struct other_link *link = arg;
	struct stat st;

	if (below_lstat_at(p->dir_fd, p->name, &st) < 0)
		return -1;
	link->changed = !file_identity_is_named(&link->entry->id, &st);
	if (!link->changed)
		return place_outfile(p, link->out);
	errno = ESTALE;
	return -1;
}

/* Replace the N paths LINKS, the first one last, each unless it has another file now. */
static kpack_error_t publish_in_place(const struct converter *c, const size_t *links,
				      size_t n, struct written *w,
				      struct kpackx_error *why)
{
	const struct scan_entry *entries = c->scan->entries;
	struct stat st;
	bool changed = false;

	KP_TRY(kp_outfile_sync(&w->out, why));
	for (size_t i = n; i-- > 1 && !changed;) {
		struct other_link link = {&entries[links[i]], &w->out, false};
		kpack_error_t err =
			place(link.entry->path, link_written, &link, true, why);

		if (err && !link.changed)
			return err;
		changed = err;
	}
	if (!changed && below_lstat_at(w->out.dir_fd, w->out.name, &st) < 0)
		return below_fail(why, "cannot stat");
	if (changed || !file_identity_is_named(&entries[links[0]].id, &st))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	return kp_outfile_publish(&w->out, why);
}

static bool is_written(const char *path, const struct written *w)
{
	struct kp_source written = kp_source_fd(w->out.fd, 0, w->size), there;
	KP_AUTO_CLOSE int fd = -1;
	struct stat st;

	if (below_file_open_nofollow(path, &fd, &st, NULL))
		return false;
	there = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	return kp_source_same(&there, &written);
}

static kpack_error_t commit_job(void *arg, size_t job, void *result,
				struct kpackx_error *why)
{
	const struct converter *c = arg;
	struct disposition *o = disposition_of(c, job);
	const struct input *in = c->inputs[job];
	struct written *w = result;
	KP_AUTO_FREE size_t *links = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n;

	if (w->refused) {
		disposition_set(o, FATE_REFUSED, w->refused);
	} else if (o->fate == FATE_CONVERTED) {
		links = scan_links(c->scan, in->entry, &n);
		/* of converted files, only what this run would write is replaced */
		for (size_t i = 1; i < n;) {
			const struct scan_entry *e = &c->scan->entries[links[i]];
			KP_AUTO_FREE size_t *others = NULL;
			size_t n_others = 0, kept = 0;

			if (!e->converted || is_written(e->path, w)) {
				i++;
				continue;
			}
			/* the paths of that other file are split off */
			others = xmalloc(n * sizeof(*others));
			for (size_t k = 0; k < n; k++) {
				const struct scan_entry *l = &c->scan->entries[links[k]];

				if (l->id.dev == e->id.dev && l->id.ino == e->id.ino)
					others[n_others++] = links[k];
				else
					links[kept++] = links[k];
			}
			scan_chain(c->scan, links, kept);
			scan_chain(c->scan, others, n_others);
			c->dispositions->items[others[0]].fate = FATE_ALREADY_CONVERTED;
			n = kept;
		}
		err = c->output ? kp_outfile_publish(&w->out, why)
				: publish_in_place(c, links, n, w, why);
		if (err)
			kp_fail_prefix(why, err, "%s", c->scan->entries[in->entry].path);
		o->before = (uint64_t)in->st.st_size;
		o->after = w->size;
	}
	discard_written(NULL, w);
	return err;
}

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
	KP_AUTO_FREE size_t *jobs = xcalloc(n + 1, sizeof(*jobs));
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

			if (!write_job((void *)c, NULL, jobs[i], &written, &fault) &&
			    !commit_job((void *)c, jobs[i], written, &fault))
				continue;
			err = fault.code;
			*why = fault;
			if (!is_full(why))
				return err;
			jobs[left++] = jobs[i];
		}
		n = left;
	}
	return err;
}

kpack_error_t converter_run(const struct converter *c, struct kpackx_error *why)
{
	const struct pipeline pipeline = {
		.n_jobs = c->n_inputs,
		.threads = c->jobs,
		.budget = BUDGET,
		.arg = (void *)c,
		.cost = cost_of_job,
		.work = write_job,
		.commit = commit_job,
		.discard = discard_written,
	};
	size_t done;
	kpack_error_t err = pipeline_run(&pipeline, &done, why);

	return err && !c->output && is_full(why) ? run_singly(c, done, why) : err;
}
