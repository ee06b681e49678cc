/* SPDX-License-Identifier: MIT */
/*
 * Searching containers in containers.  A place - the source, or an image - is searched
 * from its beginning: a container, zeros, a container, ...; then the images of each
 * container are places in turn.  Compressed containers are decoded, one of each level at
 * a time.  Work and memory are bounded over the whole search, because a small file can
 * state that it holds itself many times.
 */
#include <inttypes.h>
#include "core/base/bounds.h"
#include "format.h"

struct nest {
	uint64_t work; /* bytes processed so far */
	uint64_t held; /* decoded bytes in memory, of the containers around */
	struct kp_containers *list;
	kp_nest_fault *fault;
	bool salvage; /* keep the readable part of damaged containers */
	void *arg;
	struct kpackx_error *why;
};

/* Bytes that may hold containers: an image, or the scanned source. */
struct place {
	const struct kp_source *src;
	size_t image; /* KP_NOWHERE: the source */
	unsigned depth;
	bool stream; /* holds nothing but containers and objects */
};

static kpack_error_t look_into_place(struct nest *n, const struct place *p);

/* Count BYTES more as processed.  Above the limit this fails and ends the search. */
static kpack_error_t spend_work(struct nest *n, uint64_t bytes, struct kpackx_error *why)
{
	if (bytes > KP_NEST_WORK_MAX - n->work) {
		n->work = KP_NEST_WORK_MAX;
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "containers in containers have more than %" PRIu64
			       " bytes in all",
			       KP_NEST_WORK_MAX);
	}
	n->work += bytes;
	return KPACK_SUCCESS;
}

/*
 * Report FAULT in P to the caller's function, so that the search goes on.  Without such a
 * function, and for errors that end the search, return ERR.
 */
static kpack_error_t report_fault(struct nest *n, const struct place *p,
				  kpack_error_t err, const struct kpackx_error *fault)
{
	if (!n->fault || err == KPACK_ERROR_OUT_OF_MEMORY ||
	    err == KPACK_ERROR_IO_ERROR || n->work == KP_NEST_WORK_MAX) {
		if (n->why)
			*n->why = *fault;
		return err;
	}
	n->fault(n->arg, n->list, p->image, fault);
	return KPACK_SUCCESS;
}

/* ---- into a container ---- */

/* A container being decoded, for marking its damaged images. */
struct decoding {
	struct nest *nest;
	size_t first_image;
};

static bool mark_damaged(void *arg, size_t number, const struct kpackx_error *why)
{
	const struct decoding *d = arg;
	struct kp_containers *list = d->nest->list;

	list->images[d->first_image + number].damaged = true;
	d->nest->fault(d->nest->arg, list, d->first_image + number, why);
	return true;
}

/* Search each image of container NUMBER of P. */
static kpack_error_t look_into_container(struct nest *n, const struct place *p,
					 size_t number)
{
	/* a copy: the list is reallocated while it grows */
	const struct kp_container c = n->list->items[number];
	uint64_t decoded = c.format->load ? c.payload_size : 0;
	struct decoding decoding = {n, c.first_image};
	struct kp_payload payload;
	struct kpackx_error fault = {0};
	kpack_error_t err;

	if (c.format->type || c.n_images == 0)
		return KPACK_SUCCESS;
	err = spend_work(n, decoded, &fault);
	if (!err && decoded > KP_OBJECT_MAX - n->held)
		err = kp_fail(&fault, KPACK_ERROR_INVALID_FORMAT,
			      "%s at offset %" PRIu64 ": %" PRIu64
			      " decoded bytes inside of %" PRIu64 " pass %" PRIu64,
			      c.format->name, c.offset, decoded, n->held, KP_OBJECT_MAX);
	if (!err)
		err = kp_container_load_most(p->src, &c, n->salvage ? mark_damaged : NULL,
					     &decoding, &payload, &fault);
	if (err)
		return report_fault(n, p, err, &fault);
	n->held += decoded;
	for (size_t i = c.first_image; i < c.first_image + c.n_images && !err; i++) {
		const struct kp_image img = n->list->images[i];
		struct kp_source src;
		struct place inner = {&src, i, p->depth + 1, img.stream};

		if (img.size == 0 || img.damaged)
			continue;
		if (kp_source_sub(&payload.source, img.offset, img.size, &src)) {
			err = look_into_place(n, &inner);
			continue;
		}
		err = kp_fail(&fault, KPACK_ERROR_INVALID_FORMAT,
			      "%" PRIu64 " bytes at %" PRIu64 " pass the end at %" PRIu64,
			      img.size, img.offset, payload.source.size);
		err = report_fault(n, &inner, err, &fault);
	}
	kp_payload_fini(&payload);
	n->held -= decoded;
	return err;
}

/* ---- along a place ---- */

/*
 * Append the container at POS; if salvaging, the readable part of a damaged one.  *DONE
 * becomes true if there is none and none is needed.
 */
static kpack_error_t add_next(struct nest *n, const struct place *p, uint64_t pos,
			      size_t previous, bool *done, struct kpackx_error *fault)
{
	uint8_t bytes[KP_HEAD_SIZE];
	const struct kp_format *format;
	struct kp_span head;
	kpack_error_t err;

	*done = true;
	KP_TRY(kp_source_head(p->src, pos, bytes, sizeof(bytes), &head, fault));
	format = kp_format_probe(head);
	/*
	 * A file may have any contents, and installers and signatures append bytes to
	 * programs that no header mentions; elsewhere containers follow containers.
	 */
	if (!format && (previous == KP_NOWHERE
				? p->stream && p->image != KP_NOWHERE
				: !kp_format_is_host(n->list->items[previous].format)))
		return kp_fail(fault, KPACK_ERROR_INVALID_FORMAT,
			       "offset %" PRIu64 ": no container begins there", pos);
	/* an image that is one object does not count as a container */
	if (!format || (format->type && !p->stream && previous == KP_NOWHERE))
		return KPACK_SUCCESS;
	if (p->depth >= KP_NEST_MAX)
		return kp_fail(fault, KPACK_ERROR_INVALID_FORMAT,
			       "containers are nested deeper than %d", KP_NEST_MAX);
	err = kp_containers_add(p->src, pos, format, p->image, n->list, fault);
	if (err && n->salvage && err != KPACK_ERROR_OUT_OF_MEMORY &&
	    !kp_containers_salvage(p->src, pos, format, p->image, n->list, NULL))
		err = report_fault(n, p, err, fault);
	KP_TRY(err);
	*done = false;
	return spend_work(n, n->list->items[n->list->count - 1].size, fault);
}

static kpack_error_t look_into_place(struct nest *n, const struct place *p)
{
	size_t previous = KP_NOWHERE, number;
	struct kpackx_error fault = {0};
	uint64_t pos = 0, from;
	kpack_error_t err;
	bool done;

	for (;; previous = number) {
		from = pos;
		number = n->list->count;
		/* only streams may begin with zeros */
		err = p->stream || previous != KP_NOWHERE
			      ? kp_skip_zeros(p->src, &pos, &fault)
			      : KPACK_SUCCESS;
		if (!err)
			err = spend_work(n, pos - from, &fault);
		if (!err && pos == p->src->size)
			return KPACK_SUCCESS;
		if (!err)
			err = add_next(n, p, pos, previous, &done, &fault);
		if (err)
			return report_fault(n, p, err, &fault);
		if (done)
			return KPACK_SUCCESS;
		if (previous != KP_NOWHERE)
			n->list->items[previous].next = number;
		else if (p->image != KP_NOWHERE)
			n->list->images[p->image].inside = number;
		pos += n->list->items[number].size;
		KP_TRY(look_into_container(n, p, number));
	}
}

static kpack_error_t scan_source(struct nest *n, const struct kp_source *src)
{
	struct place p = {.src = src, .image = KP_NOWHERE, .stream = true};
	kpack_error_t err;

	*n->list = (struct kp_containers){0};
	err = look_into_place(n, &p);
	if (err)
		kp_containers_fini(n->list);
	return err;
}

kpack_error_t kp_nest_scan(const struct kp_source *src, kp_nest_fault *fault, void *arg,
			   struct kp_containers *out, struct kpackx_error *why)
{
	struct nest n = {.list = out, .fault = fault, .arg = arg, .why = why};

	return scan_source(&n, src);
}

kpack_error_t kp_nest_salvage(const struct kp_source *src, kp_nest_fault *fault,
			      void *arg, struct kp_containers *out,
			      struct kpackx_error *why)
{
	struct nest n = {
		.list = out, .fault = fault, .salvage = true, .arg = arg, .why = why};

	return scan_source(&n, src);
}
