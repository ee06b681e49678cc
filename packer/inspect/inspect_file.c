/* SPDX-License-Identifier: MIT */
/*
 * A file to inspect: its containers become a tree of rows, and of jobs that read them (the tree);
 * the wrappers of a host binary are matched with its containers (wrappers); what is damaged is
 * reported with its place (faults).
 *
 * Then the jobs go through the pipeline (reading): threads decode containers and visit their leaves;
 * faults are noted and reported when a job's turn comes, so that the output does not depend on the
 * threads.
 *
 *	row        for each line: a container, a section or image with containers, a leaf
 *	job        a leaf that is plain in the file, or a container that is decoded, with all its leaves
 *	end_row    of a job: the rows before it are complete when the job and all before it are
 *
 * Containers are numbered in the order of rows, but those of .hip_fatbin first: their numbers are then
 * those of the wrappers' KEY#n in most files.  Objects that bundles wrap have no row of their own, and
 * an image that is all one container is that container's row.
 *
 * A file may lie: images overlap, containers nest, one image stands in many bundles.  What it costs to
 * read all of it is compared with the size of what is there before anything is read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/format/ccob.h"
#include "core/format/offload_binary.h"
#include "core/host/host_fatbin.h"
#include "inspect.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

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

/* ---- faults ---- */

/* "TEXT: MORE", or MORE if TEXT is NULL; frees TEXT. */
static char *join_texts(char *text, const char *more)
{
	char *both = text ? xasprintf("%s: %s", text, more) : xstrdup(more);

	free(text);
	return both;
}

/* The place of IMAGE: the names of all that encloses it; NULL for the file itself. */
static char *place_text(const struct kp_containers *list, size_t image)
{
	const struct kp_container *c;
	const struct kp_image *img;
	char own[64], *text, *id;

	if (image == KP_NOWHERE)
		return NULL;
	img = &list->images[image];
	c = &list->items[img->container];
	text = place_text(list, c->inside);
	if (c->format->type)
		return text;
	/* in these containers the names of the images say enough */
	if (!kp_format_is_host(c->format) && c->format != &kp_format_archive) {
		snprintf(own, sizeof(own), "%s at offset %" PRIu64, c->format->name,
			 c->offset);
		text = join_texts(text, own);
	}
	snprintf(own, sizeof(own), "image %zu", image - c->first_image);
	id = img->id ? xescape(kp_span_str(img->id)) : NULL;
	text = join_texts(text, id ? id : own);
	free(id);
	return text;
}

/*
 * Report what is wrong with IMAGE (KP_NOWHERE: the file), with the names of all that
 * encloses it.  Equal messages are reported once.
 */
static void add_fault(struct inspect_file *file, size_t image, const char *text)
{
	char *whole = join_texts(place_text(&file->list, image), text);
	bool known = false;

	for (size_t i = 0; i < file->n_reported; i++)
		known |= strcmp(file->reported[i], whole) == 0;
	file->faults += !known;
	if (known || file->n_reported == KP_FAULTS_MAX) {
		free(whole);
		return;
	}
	report_error(file->path, "%s", whole);
	xgrow(&file->reported, file->n_reported, &file->reported_cap,
	      sizeof(*file->reported));
	file->reported[file->n_reported++] = whole;
}

static void scan_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *why)
{
	(void)list; /* it is FILE's */
	add_fault(arg, image, why->text);
}

/* ---- the tree ---- */

/* Whether IMAGE is the .hip_fatbin of a host binary, into which wrappers lead. */
static bool is_fatbin(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img = &list->images[image];

	return img->stream && img->id &&
	       kp_fatbin_is_section(list->items[img->container].format, img->id);
}

static void add_row(struct inspect_file *f, struct inspect_row row)
{
	xgrow(&f->rows, f->n_rows, &f->rows_cap, sizeof(row));
	f->rows[f->n_rows++] = row;
	/* archives, and host ELF in them, may have no device code */
	f->device |=
		row.kind != INSPECT_CONTAINER || f->numbers[row.container] != KP_NOWHERE;
	if (row.depth > f->depth)
		f->depth = row.depth;
}

static void add_job(struct inspect_file *f, struct inspect_job job)
{
	xgrow(&f->jobs, f->n_jobs, &f->jobs_cap, sizeof(job));
	f->jobs[f->n_jobs++] = job;
}

/* Bytes that are plain in the file; NULL: they come out of a decoder. */
typedef const struct kp_source place_source;

static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth);
static void add_container(struct inspect_file *f, size_t number, size_t image,
			  place_source *around, unsigned depth);

/*
 * Set OUT to the bytes of IMAGE in its container's PAYLOAD; false: they pass the end.  An empty
 * image may state any offset.
 */
static bool image_source(const struct kp_image *image, const struct kp_source *payload,
			 struct kp_source *out)
{
	if (kp_source_sub(payload, image->offset, image->size, out))
		return true;
	*out = kp_source_memory(NULL, 0);
	return image->size == 0;
}

const char *inspect_arch(const struct kp_containers *list, const struct kp_image *image,
			 const char *says)
{
	size_t inside = list->items[image->container].inside;

	if (image->host || image->arch[0])
		return image->arch;
	if (*says)
		return says;
	for (; inside != KP_NOWHERE;
	     inside = list->items[list->images[inside].container].inside)
		if (list->images[inside].arch[0])
			return list->images[inside].arch;
	return "";
}

static void add_image(struct inspect_file *f, size_t image, place_source *payload,
		      unsigned depth)
{
	const struct kp_containers *list = &f->list;
	const struct kp_image *img = &list->images[image];
	struct kp_source src;
	place_source *own = payload && image_source(img, payload, &src) ? &src : NULL;
	size_t *number = &f->numbers[img->container];
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	if (!inspect_leaf(img)) {
		/* a container that is all of the image has no line of its own */
		if (!img->stream && list->items[img->inside].next == KP_NOWHERE) {
			add_container(f, img->inside, image, own, depth);
			return;
		}
		add_row(f, (struct inspect_row){INSPECT_PLACE, depth, img->container,
						image});
		add_place(f, img->inside, own, depth + 1);
		return;
	}
	/* an archive's member can be anything */
	if (list->items[img->container].format == &kp_format_archive && own &&
	    !kp_source_head(own, 0, bytes, sizeof(bytes), &head, NULL) &&
	    !kp_format_probe(head))
		return;
	f->n_leaves++;
	if (*number == KP_NOWHERE)
		*number = f->n_numbered++;
	add_row(f, (struct inspect_row){INSPECT_IMAGE, depth, img->container, image});
	/* an image that passes the end was reported when it was found */
	if (own)
		add_job(f, (struct inspect_job){.src = src,
						.container = KP_NOWHERE,
						.image = image,
						.end_row = f->n_rows});
}

static void add_container(struct inspect_file *f, size_t number, size_t image,
			  place_source *around, unsigned depth)
{
	const struct kp_container *c = &f->list.items[number];
	place_source *plain = NULL; /* the container's bytes, if they are in the file */
	bool host = kp_format_is_host(c->format);
	size_t job = f->n_jobs;
	struct kp_source payload;

	if (!host && c->format != &kp_format_archive)
		f->numbers[number] = f->n_numbered++;
	/*
	 * these have no row of their own: an object is its image, and the head line shows
	 * a file's host ELF
	 */
	if (!c->format->type &&
	    !(host && (c->inside == KP_NOWHERE || c->n_images == 0))) {
		add_row(f, (struct inspect_row){INSPECT_CONTAINER, depth, number, image});
		depth++;
	}
	/* one job decodes a container with all its images */
	if (around && c->format->load)
		add_job(f, (struct inspect_job){.src = *around,
						.container = number,
						.image = KP_NOWHERE});
	else if (around && kp_source_sub(around, c->offset, c->size, &payload))
		plain = &payload;
	/* wrappers lead into the .hip_fatbin, whose containers get the first numbers */
	for (int round = 0; round < 2; round++) {
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
			if (is_fatbin(&f->list, i) == (round == 0))
				add_image(f, i, plain, depth);
	}
	if (around && c->format->load)
		f->jobs[job].end_row = f->n_rows;
}

/* Add the containers from FIRST on, which are in SRC. */
static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth)
{
	for (size_t c = first; c != KP_NOWHERE; c = f->list.items[c].next)
		add_container(f, c, KP_NOWHERE, src, depth);
}

/* ---- wrappers ---- */

/* A container of .hip_fatbin. */
struct fatbin_item {
	uint64_t offset;
	size_t number;
};

/* Read the wrappers, and find the number of the container that each leads to. */
static void read_wrappers(struct inspect_file *f)
{
	struct kpackx_error fault = {0};
	struct kp_host *host = &f->host;
	const struct kp_container *c = &f->list.items[0], *items = f->list.items;
	KP_AUTO_FREE struct fatbin_item *order = NULL;
	size_t image = c->first_image, end = c->first_image + c->n_images;
	size_t n = 0, kept = 0;
	bool leads;

	if (kp_host_read(f->fd, f->source.size, host, &fault)) {
		add_fault(f, KP_NOWHERE, fault.text);
		return;
	}
	/* objects whose device code is linked later have wrappers that lead nowhere yet */
	leads = host->has_fatbin;
	for (size_t i = 0; i < host->n_wrappers; i++)
		leads |= host->wrappers[i].fields.magic == KP_WRAPPER_HIPK;
	if (!leads)
		host->n_wrappers = 0;
	/* the containers of the section that wrappers lead into, in the order of their offsets */
	order = xmalloc(f->list.count * sizeof(*order));
	while (image < end && !(is_fatbin(&f->list, image) &&
				f->list.images[image].inside != KP_NOWHERE))
		image++;
	/* nothing leads to those without a number, which hold no images themselves */
	for (size_t i = image < end ? f->list.images[image].inside : KP_NOWHERE;
	     i != KP_NOWHERE; i = items[i].next)
		if (f->numbers[i] != KP_NOWHERE)
			order[n++] = (struct fatbin_item){items[i].offset, f->numbers[i]};
	f->wrapper_number = xcalloc(host->n_wrappers, sizeof(*f->wrapper_number));
	f->converted = true;
	for (size_t i = 0; i < host->n_wrappers; i++) {
		const struct kp_host_wrapper w = host->wrappers[i];
		bool fat = w.fields.magic != KP_WRAPPER_HIPK;
		bool resolved = w.source != KP_POINTER_UNRESOLVED;
		const struct fatbin_item probe = {.offset =
							  w.target - host->fatbin.vaddr};
		const struct fatbin_item *found = NULL;
		char text[160];

		if (fat && resolved && w.target >= host->fatbin.vaddr)
			found = kp_find(order, n, &probe,
					KP_BY_NUMBER(struct fatbin_item, offset));
		/* bytes that only look like a wrapper */
		if (fat && !found && host->wrappers_scanned)
			continue;
		if (fat && !found && resolved)
			snprintf(text, sizeof(text),
				 "wrapper %zu: no container begins at address 0x%" PRIx64,
				 i, w.target);
		else if (fat && !found)
			snprintf(text, sizeof(text),
				 "wrapper %zu: its pointer is set from outside this file",
				 i);
		if (fat && !found)
			add_fault(f, KP_NOWHERE, text);
		f->converted &= !fat;
		f->wrapper_number[kept] = found ? (ptrdiff_t)found->number : -1;
		host->wrappers[kept++] = w;
	}
	host->n_wrappers = kept;
	f->converted &= kept > 0;
}

/* ---- the file ---- */

kpack_error_t inspect_file_open(struct inspect_file *f, const char *path,
				struct kpackx_error *why)
{
	const struct kp_container *c;
	struct kp_span head;
	uint8_t bytes[KP_HEAD_SIZE];
	struct stat st;

	*f = (struct inspect_file){.path = path, .fd = -1};
	KP_TRY(below_file_open(path, &f->fd, &st, why));
	f->source = kp_source_fd(f->fd, 0, (uint64_t)st.st_size);
	KP_TRY(kp_nest_salvage(&f->source, scan_fault, f, &f->list, why));
	f->numbers = xmalloc(f->list.count * sizeof(*f->numbers));
	f->packed = xcalloc(f->list.count, sizeof(*f->packed));
	for (size_t i = 0; i < f->list.count; i++)
		f->numbers[i] = KP_NOWHERE;
	if (f->list.count == 0)
		return KPACK_SUCCESS;
	add_place(f, 0, &f->source, 0);
	c = &f->list.items[0];
	f->format = c->format->name;
	KP_TRY(kp_source_head(&f->source, 0, bytes, sizeof(bytes), &head, why));
	/* wrappers can be read if the file is a host binary whose sections are known */
	if (kp_host_probe(head) &&
	    (!c->n_images ||
	     strcmp(f->list.images[c->first_image].id, KP_NO_SECTION) != 0))
		read_wrappers(f);
	return KPACK_SUCCESS;
}

void inspect_file_close(struct inspect_file *f)
{
	for (size_t i = 0; i < f->n_reported; i++)
		free(f->reported[i]);
	free(f->reported);
	free(f->rows);
	free(f->jobs);
	free(f->numbers);
	free(f->packed);
	free(f->wrapper_number);
	kp_host_fini(&f->host);
	kp_containers_fini(&f->list);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct inspect_file){.fd = -1};
}

/* ---- reading ---- */

/*
 * A fault of a job; it is reported when the job is committed, in order.  Threads only note: reporting
 * compares with earlier faults, so that it belongs to one thread.
 */
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

	progress_add(src->size);
	return judge_fault(w, image, err, &fault, why);
}

/* Whether image NUMBER is known to be damaged; if not, the file has changed since. */
static bool was_damaged(void *arg, size_t number, const struct kpackx_error *why)
{
	const struct kp_image *images = arg;

	(void)why; /* reported when it was found */
	return images[number].damaged;
}

/*
 * Decode CONTAINER, in AROUND, and visit its leaves.  On the way its version and compression are
 * noted, and whether its content is what its hash says.
 */
static kpack_error_t visit_container(struct walker *w, size_t container,
				     const struct kp_source *around,
				     struct kpackx_error *why)
{
	static const char *const methods[] = {
		[KP_OFFLOAD_ZSTD] = "zstd", [KP_OFFLOAD_ZLIB] = "zlib"};
	struct inspect_file *f = w->walk->file;
	const struct kp_container *c = &f->list.items[container];
	struct inspect_packed *packed = &f->packed[container];
	struct kpackx_error fault = {0};
	struct kp_offload_form offload;
	struct kp_ccob_form ccob;
	struct kp_payload payload;
	struct kp_source src;
	kpack_error_t err =
		kp_container_load_most(around, c, was_damaged,
				       &f->list.images[c->first_image], &payload, &fault);

	if (err)
		return judge_fault(w, c->inside, err, &fault, why);
	if (c->format == &kp_format_offload_binary) {
		err = kp_offload_form_read(around, c, &offload, &fault);
		if (!err)
			*packed = (struct inspect_packed){
				.version = offload.version,
				.method = methods[offload.method]};
	} else if (c->format == &kp_format_ccob) {
		err = kp_ccob_form_read(around, c, &ccob, &fault);
		if (!err)
			*packed = (struct inspect_packed){
				.version = ccob.version,
				.method = ccob.method == KP_CCOB_ZSTD ? "zstd" : "zlib",
				.has_hash = true,
				.hash = ccob.hash,
				/* decoded bytes are in memory */
				.hash_ok = ccob.hash ==
					   kp_ccob_hash((struct kp_span){
						   payload.source.mem,
						   (size_t)payload.source.size}),
			};
		if (!err && !packed->hash_ok)
			err = kp_fail(&fault, KPACK_ERROR_INVALID_FORMAT,
				      "ccob at offset %" PRIu64
				      ": the content does not match the hash %016" PRIx64,
				      c->offset, ccob.hash);
	}
	err = judge_fault(w, c->inside, err, &fault, why);
	for (size_t i = c->first_image; i < c->first_image + c->n_images && !err; i++) {
		const struct kp_image *img = &f->list.images[i];

		/* a damaged image, or one that passes the end, was reported when it was found */
		if (img->damaged || !image_source(img, &payload.source, &src))
			continue;
		if (inspect_leaf(img))
			err = visit_leaf(w, i, &src, why);
		else
			for (size_t k = img->inside; k != KP_NOWHERE && !err;
			     k = f->list.items[k].next)
				err = visit_container(w, k, &src, why);
	}
	kp_payload_fini(&payload);
	return err;
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
	const struct inspect_file *f = ((const struct inspect_walk *)arg)->file;
	const struct inspect_job *job = &f->jobs[number];

	return job->image != KP_NOWHERE ? job->src.size
					: f->list.items[job->container].payload_size;
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
		add_fault(walk->file, note->image, note->why.text);
	free_notes(NULL, result);
	if (walk->done)
		walk->done(walk->arg, walk->file->jobs[number].end_row);
	return KPACK_SUCCESS;
}

kpack_error_t inspect_walk_run(const struct inspect_walk *walk, struct kpackx_error *why)
{
	const struct inspect_file *file = walk->file;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct pipeline p = {
		.n_jobs = file->n_jobs,
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
	uint64_t there = WORK_MIN / WORK_RATIO + file->source.size, wanted = 0;
	kpack_error_t err;

	/* refuse files whose images overlap so often that reading them takes too long */
	for (size_t i = 0; i < file->list.count; i++)
		if (file->list.items[i].format->load)
			there += file->list.items[i].payload_size;
	for (size_t i = 0; i < file->list.n_images; i++)
		if (inspect_leaf(&file->list.images[i]))
			wanted += file->list.images[i].size < there
					  ? file->list.images[i].size
					  : there;
	if (wanted / WORK_RATIO > there)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "its images overlap: they have %" PRIu64
			       " bytes in all, in %" PRIu64,
			       wanted, there);
	progress_begin(walk->progress, wanted, walk->progress != NULL);
	err = pipeline_run(&p, NULL, why);
	progress_end();
	return err;
}
