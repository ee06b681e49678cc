/* SPDX-License-Identifier: MIT */
#include "walk.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"

/* Decoded bytes held at once, unless one container has more. */
#define BUDGET (UINT64_C(128) << 20)
/* With more threads they would only wait for the disk and for memory. */
#define THREADS_MAX 8

/*
 * Bytes to read at most: WORK_RATIO times the decoded size of the file, and WORK_MIN
 * more.
 */
#define WORK_RATIO 16
#define WORK_MIN (UINT64_C(1) << 30)

/* A fault of a job; it is reported when the job is committed, in order. */
struct note {
	struct note *next;
	size_t image;
	struct kpackx_error why;
};

struct walker {
	const struct inspect_walk *walk;
	struct inspect_thread *thread;
	struct note *notes, **end;
};

static void note_fault(struct walker *w, size_t image, const struct kpackx_error *why)
{
	struct note *note = xmalloc(sizeof(*note));

	*note = (struct note){.image = image, .why = *why};
	*w->end = note;
	w->end = &note->next;
}

static kpack_error_t visit_container(struct walker *w, size_t container,
				     const struct kp_source *around,
				     struct kpackx_error *why);

/* Note the fault ERR of IMAGE; returns an error only if it ends the walk. */
static kpack_error_t judge_fault(struct walker *w, size_t image, kpack_error_t err,
				 const struct kpackx_error *fault,
				 struct kpackx_error *why)
{
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		*why = *fault;
		return err;
	}
	if (err)
		note_fault(w, image, fault);
	return KPACK_SUCCESS;
}

static kpack_error_t visit_leaf(struct walker *w, size_t image,
				const struct kp_source *src, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = w->walk->leaf(w->walk->arg, w->thread, image, src, &fault);

	return judge_fault(w, image, err, &fault, why);
}

static kpack_error_t visit_image(struct walker *w, size_t image,
				 const struct kp_source *payload,
				 struct kpackx_error *why)
{
	const struct kp_containers *list = &w->walk->file->list;
	const struct kp_image *img = &list->images[image];
	struct kp_source src;

	/* a damaged image, or one that passes the end, was reported when it was found */
	if (img->damaged || !inspect_image_source(img, payload, &src))
		return KPACK_SUCCESS;
	if (inspect_leaf(img))
		return visit_leaf(w, image, &src, why);
	for (size_t c = img->inside; c != KP_NOWHERE; c = list->items[c].next)
		KP_TRY(visit_container(w, c, &src, why));
	return KPACK_SUCCESS;
}

static kpack_error_t report_decoded(struct walker *w, size_t container,
				    const struct kp_source *around,
				    const struct kp_payload *payload,
				    struct kpackx_error *why)
{
	const struct inspect_walk *walk = w->walk;
	struct kpackx_error fault = {0};
	kpack_error_t err = walk->decoded(walk->arg, container, around, payload, &fault);

	return judge_fault(w, walk->file->list.items[container].inside, err, &fault, why);
}

static kpack_error_t visit_payload(struct walker *w, size_t container,
				   const struct kp_source *around,
				   const struct kp_payload *payload,
				   struct kpackx_error *why)
{
	const struct inspect_walk *walk = w->walk;
	const struct kp_container *c = &walk->file->list.items[container];

	if (walk->decoded && c->format->load)
		KP_TRY(report_decoded(w, container, around, payload, why));
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		KP_TRY(visit_image(w, i, &payload->source, why));
	return KPACK_SUCCESS;
}

/* Whether image NUMBER is known to be damaged; if not, the file has changed since. */
static bool was_damaged(void *arg, size_t number, const struct kpackx_error *why)
{
	const struct kp_image *images = arg;

	(void)why; /* reported when it was found */
	return images[number].damaged;
}

static kpack_error_t visit_container(struct walker *w, size_t container,
				     const struct kp_source *around,
				     struct kpackx_error *why)
{
	const struct kp_container *c = &w->walk->file->list.items[container];
	struct kpackx_error fault = {0};
	struct kp_payload payload;
	kpack_error_t err = kp_container_load_most(
		around, c, was_damaged, &w->walk->file->list.images[c->first_image],
		&payload, &fault);

	if (err)
		return judge_fault(w, c->inside, err, &fault, why);
	err = visit_payload(w, container, around, &payload, why);
	kp_payload_fini(&payload);
	return err;
}

/* --- the pipeline ----------------------------------------------------------------- */

uint8_t *inspect_thread_room(struct inspect_thread *thread, size_t size)
{
	if (thread->cap < size) {
		free(thread->buf);
		thread->buf = malloc(size);
		thread->cap = thread->buf ? size : 0;
	}
	return thread->buf;
}

static void end_thread(void *state)
{
	struct inspect_thread *thread = state;

	digest_fini(&thread->hash);
	free(thread->buf);
	free(thread);
}

static kpack_error_t begin_thread(void *arg, void **state, struct kpackx_error *why)
{
	struct inspect_thread *thread = xcalloc(1, sizeof(*thread));

	(void)arg, (void)why;
	*state = thread;
	return KPACK_SUCCESS;
}

static uint64_t job_cost(void *arg, size_t number)
{
	const struct inspect_walk *walk = arg;
	const struct inspect_job *job = &walk->file->jobs[number];

	return job->image != KP_NOWHERE
		       ? job->src.size
		       : walk->file->list.items[job->container].payload_size;
}

static kpack_error_t do_job(void *arg, void *state, size_t number, void **result,
			    struct kpackx_error *why)
{
	struct walker w = {.walk = arg, .thread = state};
	const struct inspect_job *job = &w.walk->file->jobs[number];
	kpack_error_t err;

	w.end = &w.notes;
	if (job->image != KP_NOWHERE)
		err = visit_leaf(&w, job->image, &job->src, why);
	else
		err = visit_container(&w, job->container, &job->src, why);
	*result = w.notes;
	return err;
}

static void free_notes(void *arg, void *result)
{
	(void)arg;
	for (struct note *note = result, *next; note; note = next) {
		next = note->next;
		free(note);
	}
}

static kpack_error_t commit_job(void *arg, size_t number, void *result,
				struct kpackx_error *why)
{
	const struct inspect_walk *walk = arg;

	(void)why;
	for (const struct note *note = result; note; note = note->next)
		inspect_fault(walk->file, note->image, note->why.text);
	free_notes(NULL, result);
	if (walk->done)
		walk->done(walk->arg, &walk->file->jobs[number]);
	return KPACK_SUCCESS;
}

/* Refuse files whose images overlap so often that reading them takes too long. */
static kpack_error_t check_work(const struct inspect_file *file, struct kpackx_error *why)
{
	uint64_t there = WORK_MIN / WORK_RATIO + file->source.size, wanted = 0;

	for (size_t i = 0; i < file->list.count; i++)
		if (file->list.items[i].format->load)
			there += file->list.items[i].payload_size;
	for (size_t i = 0; i < file->list.n_images; i++)
		if (inspect_leaf(&file->list.images[i]))
			wanted += file->list.images[i].size < there
					  ? file->list.images[i].size
					  : there;
	if (wanted / WORK_RATIO <= there)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "its images overlap: they have %" PRIu64
		       " bytes in all, in %" PRIu64,
		       wanted, there);
}

kpack_error_t inspect_walk_run(const struct inspect_walk *walk, struct kpackx_error *why)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct pipeline p = {
		.n_jobs = walk->file->n_jobs,
		.threads = cores < 1             ? 1
			   : cores > THREADS_MAX ? THREADS_MAX
						 : (unsigned)cores,
		.budget = BUDGET,
		.arg = (void *)walk,
		.begin = begin_thread,
		.end = end_thread,
		.cost = job_cost,
		.work = do_job,
		.commit = commit_job,
		.discard = free_notes,
	};

	KP_TRY(check_work(walk->file, why));
	return pipeline_run(&p, NULL, why);
}
