/* SPDX-License-Identifier: MIT */
/*
 * A walk takes the jobs of a file through the pipeline: threads decode containers and visit
 * their leaves; faults are noted and reported when a job's turn comes, so that the output does
 * not depend on the threads.  A look is the walk that hashes and describes every leaf.
 */
#include "inspect_read.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/format/ccob.h"
#include "core/format/offload_binary.h"
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
	if (err) {
		struct note *note = xmalloc(sizeof(*note));

		*note = (struct note){.image = image, .why = *fault};
		*w->end = note;
		w->end = &note->next;
	}
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
	const struct inspect_walk *walk = w->walk;
	struct kpackx_error fault = {0};
	struct kp_payload payload;
	kpack_error_t err = kp_container_load_most(
		around, c, was_damaged, &walk->file->list.images[c->first_image],
		&payload, &fault);

	if (err)
		return judge_fault(w, c->inside, err, &fault, why);
	if (walk->decoded && c->format->load) {
		err = walk->decoded(walk->arg, container, around, &payload, &fault);
		err = judge_fault(w, c->inside, err, &fault, why);
	}
	for (size_t i = c->first_image; i < c->first_image + c->n_images && !err; i++)
		err = visit_image(w, i, &payload.source, why);
	kp_payload_fini(&payload);
	return err;
}

/* --- the pipeline --------------------------------------------------------------- */

/* THREAD's buffer, with room for SIZE bytes; NULL: out of memory. */
static uint8_t *thread_room(struct inspect_thread *thread, size_t size)
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

/* --- compressed containers ------------------------------------------------------ */

kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why)
{
	static const char *const methods[] = {
		[KP_OFFLOAD_ZSTD] = "zstd", [KP_OFFLOAD_ZLIB] = "zlib"};

	if (c->format == &kp_format_offload_binary) {
		struct kp_offload_form form;

		KP_TRY(kp_offload_form_read(src, c, &form, why));
		*out = (struct inspect_packed){
			.version = form.version,
			.method = methods[form.method],
		};
	} else if (c->format == &kp_format_ccob) {
		/* decoded bytes are in memory */
		struct kp_span bytes = {payload->source.mem,
					(size_t)payload->source.size};
		struct kp_ccob_form form;

		KP_TRY(kp_ccob_form_read(src, c, &form, why));
		*out = (struct inspect_packed){
			.version = form.version,
			.method = form.method == KP_CCOB_ZSTD ? "zstd" : "zlib",
			.has_hash = true,
			.hash = form.hash,
			.hash_ok = form.hash == kp_ccob_hash(bytes),
		};
		if (!out->hash_ok)
			return kp_fail(
				why, KPACK_ERROR_INVALID_FORMAT,
				"ccob at offset %" PRIu64
				": the content does not match the hash %016" PRIx64,
				c->offset, form.hash);
	}
	return KPACK_SUCCESS;
}

/* --- looking -------------------------------------------------------------------- */

/*
 * Images up to this size are held in memory and read once; larger ones are partly reread.
 */
#define HOLD_MAX (64 << 20)
#define PIECE (1 << 20)

void inspect_seen_drop(struct inspect_seen *seen)
{
	if (seen->object)
		kp_object_fini(seen->object);
	free(seen->object);
	seen->object = NULL;
}

/* Compute the SHA-256 of SRC, which is too long to hold in memory. */
static kpack_error_t hash_pieces(struct inspect_thread *thread,
				 const struct kp_source *src, char out[DIGEST_TEXT],
				 struct kpackx_error *why)
{
	uint8_t *buf = thread_room(thread, PIECE);

	if (!buf)
		return kp_fail_memory(why, PIECE, "reading");
	digest_begin(&thread->hash, DIGEST_SHA256);
	for (uint64_t at = 0; at < src->size; at += PIECE) {
		uint64_t left = src->size - at;
		size_t n = (size_t)(left < PIECE ? left : PIECE);

		KP_TRY(kp_source_read(src, at, buf, n, why));
		digest_add(&thread->hash, (struct kp_span){buf, n});
	}
	return digest_end_text(&thread->hash, out, why);
}

/* Read SRC into memory and compute its SHA-256. */
static kpack_error_t hash_whole(struct inspect_thread *thread, struct kp_source *src,
				char out[DIGEST_TEXT], struct kpackx_error *why)
{
	size_t size = (size_t)src->size;

	if (src->fd >= 0) {
		uint8_t *buf = thread_room(thread, size + 1);

		if (!buf)
			return kp_fail_memory(why, size, "an image");
		KP_TRY(kp_source_read(src, 0, buf, size, why));
		*src = kp_source_memory(buf, size);
	}
	return digest_text((struct kp_span){src->mem, size}, out, why);
}

static kpack_error_t look_at(struct inspect_look *look, struct inspect_thread *thread,
			     size_t image, const struct kp_source *src,
			     struct kpackx_error *why)
{
	const struct kp_image *img = &look->file->list.images[image];
	struct inspect_seen *seen = &look->seen[image];
	struct kp_source own = *src;
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	seen->in_file = src->fd >= 0;
	seen->offset = src->offset;
	if (src->size <= HOLD_MAX || src->fd < 0)
		KP_TRY(hash_whole(thread, &own, seen->sha256, why));
	else
		KP_TRY(hash_pieces(thread, src, seen->sha256, why));
	/* the first bytes tell the type of objects that cannot be described, too */
	KP_TRY(kp_source_head(&own, 0, bytes, sizeof(bytes), &head, why));
	seen->type = kp_image_type(img, head);
	seen->object = xcalloc(1, sizeof(*seen->object));
	KP_TRY(kp_object_describe(&own, seen->object, why));
	seen->n_kernels = seen->object->n_kernels;
	snprintf(seen->arch, sizeof(seen->arch), "%s",
		 inspect_arch(&look->file->list, img, seen->object->arch));
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_leaf(void *arg, struct inspect_thread *thread, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	struct inspect_look *look = arg;
	kpack_error_t err = look_at(look, thread, image, src, why);

	look->finish(look, image);
	return err;
}

static kpack_error_t read_packed(void *arg, size_t container, const struct kp_source *src,
				 const struct kp_payload *payload,
				 struct kpackx_error *why)
{
	struct inspect_look *look = arg;

	return inspect_packed_read(src, &look->file->list.items[container], payload,
				   &look->packed[container], why);
}

static void job_done(void *arg, const struct inspect_job *job)
{
	struct inspect_look *look = arg;

	look->done(look, job);
}

kpack_error_t inspect_look_run(struct inspect_look *look, struct kpackx_error *why)
{
	const struct inspect_walk walk = {.file = look->file,
					  .arg = look,
					  .leaf = look_at_leaf,
					  .decoded = read_packed,
					  .done = job_done};
	const struct kp_containers *list = &look->file->list;

	look->seen = xcalloc(list->n_images, sizeof(*look->seen));
	look->packed = xcalloc(list->count, sizeof(*look->packed));
	/* the default until an image is read */
	for (size_t i = 0; i < list->n_images; i++)
		memcpy(look->seen[i].arch, list->images[i].arch,
		       sizeof(look->seen[i].arch));
	return inspect_walk_run(&walk, why);
}

void inspect_look_fini(struct inspect_look *look)
{
	for (size_t i = 0; look->seen && i < look->file->list.n_images; i++) {
		inspect_seen_drop(&look->seen[i]);
		free(look->seen[i].text);
	}
	free(look->seen);
	free(look->packed);
}
