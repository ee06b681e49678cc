/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "difference.h"
#include "payload.h"
#include "core/base/hash.h"
#include "core/base/spill.h"

/* ---- payloads to compress ---- */

/* Smaller payloads are built in memory. */
static const uint64_t LARGE = 32 << 20;

/*
 * Write P to the temporary file FD: mapped, its pages are those of a file, which the system
 * can take back.  The gaps between objects are not written.
 */
static kpack_error_t write_temporary(const struct kp_layout_payload *p, int fd,
				     struct kpackx_error *why)
{
	struct kp_outfile file = kp_spill_outfile(fd);
	int error = kp_spill_reserve(fd, p->size);

	if (error)
		return kp_fail_errno(why, error, "cannot make a temporary file");
	return kp_layout_payload_write(p, &file, 0, why);
}

/* Build P; the caller frees OUT, from which BYTES are borrowed. */
static kpack_error_t build_payload(const struct kp_layout_payload *p,
				   struct kp_payload *out, struct kp_span *bytes,
				   struct kpackx_error *why)
{
	int fd = p->size >= LARGE && kp_spills(p->size) ? kp_spill_open() : -1;
	uint8_t *memory = NULL;
	kpack_error_t err;

	if (fd >= 0) {
		*out = (struct kp_payload){.source = kp_source_fd(fd, 0, p->size),
					   .spilled = true};
		err = write_temporary(p, fd, why);
	} else {
		err = kp_layout_payload_build(p, &memory, why);
		*out = (struct kp_payload){
			.source = kp_source_memory(memory, (size_t)p->size),
			.heap = memory};
	}
	if (!err)
		err = kp_payload_map(out, bytes, why);
	if (err)
		kp_payload_fini(out);
	return err;
}

/* ---- compressed containers ---- */

/*
 * Compress P as its form says, but with LEVEL unless it is 0: with the original hash if no
 * image is missing, else with a new hash.  *OUT stays NULL if P cannot be encoded.
 */
static kpack_error_t encode_payload(const struct kp_layout_payload *p, int level,
				    uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct kp_ccob_form form = p->container->form;
	struct kp_payload payload;
	struct kp_span bytes;
	kpack_error_t err;

	KP_TRY(build_payload(p, &payload, &bytes, why));
	if (level) {
		form.level = level;
		form.long_range = form.method == KP_CCOB_ZSTD;
	}
	if (!p->whole)
		form.hash = kp_ccob_hash(bytes);
	err = kp_ccob_encode(&form, bytes, out, size, why);
	kp_payload_fini(&payload);
	return err == KPACK_ERROR_NOT_IMPLEMENTED ? KPACK_SUCCESS : err;
}

static bool same_as_before(const struct kp_layout_container *c, const uint8_t *data,
			   size_t size)
{
	struct kp_hash have;

	if (size != c->size)
		return false;
	have = kp_hash_of(data, size);
	return kp_hash_is(&have, c->xxh3);
}

static kpack_error_t apply_kept(const struct kp_layout_payload *p, uint8_t *difference,
				struct kp_span plain, uint8_t *data,
				struct kpackx_error *why)
{
	const struct kp_layout_container *c = p->container;
	struct kp_span kept = {difference, (size_t)c->kept};

	KP_TRY(kp_source_read(&p->layout->section, c->kept_offset, difference, kept.size,
			      why));
	return kp_difference_apply(plain, kept, data, (size_t)c->size, why);
}

/* Make the original bytes of P, which is whole, from what is kept of it. */
static kpack_error_t unkeep_container(const struct kp_layout_payload *p, uint8_t **out,
				      struct kpackx_error *why)
{
	const struct kp_layout_container *c = p->container;
	uint8_t *difference, *data;
	struct kp_payload payload;
	struct kp_span plain;
	kpack_error_t err;

	KP_TRY(build_payload(p, &payload, &plain, why));
	difference = malloc((size_t)c->kept);
	data = malloc((size_t)c->size);
	err = difference && data ? apply_kept(p, difference, plain, data, why)
				 : kp_fail_memory(why, c->size, "a kept container");
	kp_payload_fini(&payload);
	free(difference);
	if (err)
		free(data);
	else
		*out = data;
	return err;
}

/* Use what is kept of P; if that is damaged, it is as if nothing was kept. */
static kpack_error_t try_kept(const struct kp_layout_payload *p,
			      struct kp_layout_place *place, struct kpackx_error *why)
{
	const struct kp_layout_container *c = p->container;
	struct kpackx_error fault = {0};
	uint8_t *data = NULL;
	kpack_error_t err;

	if (!p->whole || !c->kept || !p->layout->section.size)
		return KPACK_SUCCESS;
	err = unkeep_container(p, &data, &fault);
	if (err && err != KPACK_ERROR_DECOMPRESSION_FAILED) {
		if (why)
			*why = fault;
		return err;
	}
	if (!err && same_as_before(c, data, (size_t)c->size)) {
		place->encoded = place->same = place->kept = true;
		place->size = c->size;
	}
	free(data);
	return KPACK_SUCCESS;
}

/* Compress P with LEVEL, 0 for its own, and find out whether it gets its original bytes. */
static kpack_error_t try_level(const struct kp_layout_payload *p, int level,
			       struct kp_layout_place *place, struct kpackx_error *why)
{
	bool known = p->whole && p->container->form.level;
	uint8_t *data = NULL;
	size_t size = 0;

	KP_TRY(encode_payload(p, level, &data, &size, why));
	if (data && (!place->encoded || size < place->size)) {
		place->encoded = true;
		place->same = known && same_as_before(p->container, data, size);
		place->size = size;
		place->level = level;
	}
	free(data);
	return KPACK_SUCCESS;
}

/*
 * Compress P.  If it gets other bytes, and more than the ROOM that it had, higher levels
 * are tried: otherwise the section would have to move, and leave its old place unused.  A
 * container that cannot be encoded becomes plain.
 */
static kpack_error_t try_encoding(const struct kp_layout_payload *p, uint64_t room,
				  struct kp_layout_place *place, struct kpackx_error *why)
{
	static const int levels[] = {5, 7, 9};

	KP_TRY(try_kept(p, place, why));
	if (place->kept)
		return KPACK_SUCCESS;
	KP_TRY(try_level(p, 0, place, why));
	for (size_t i = 0; i < KP_COUNT(levels); i++)
		if (place->encoded && place->size > room &&
		    levels[i] > p->container->form.level)
			KP_TRY(try_level(p, levels[i], place, why));
	return KPACK_SUCCESS;
}

/* Bytes from the beginning of container C to that of the next one. */
static uint64_t room_for(const struct kp_layout *layout, size_t c)
{
	uint64_t end = c + 1 < layout->n_containers ? layout->containers[c + 1].offset
						    : layout->size;

	return end - layout->containers[c].offset;
}

/* ---- planning ---- */

static bool is_exact(const struct kp_layout_payload *p)
{
	for (size_t k = 0; k < p->n_rows; k++) {
		const struct kp_layout_image *image = &p->layout->images[p->images[k]];

		if (image->size && !image->host && !image->has_xxh3)
			return false;
	}
	return p->whole;
}

static kpack_error_t plan_container(const struct kp_layout_payload *p,
				    struct kp_layout_place *place,
				    struct kp_layout_plan *plan, struct kpackx_error *why)
{
	bool compressed = p->container->format == &kp_format_ccob;

	place->whole = p->whole;
	place->size = p->size;
	plan->n_dropped += p->container->n_images - p->n_rows;
	plan->exact = plan->exact && is_exact(p);
	if (!compressed)
		return KPACK_SUCCESS;
	KP_TRY(try_encoding(
		p, room_for(p->layout, (size_t)(p->container - p->layout->containers)),
		place, why));
	plan->n_unpacked += !place->encoded;
	plan->n_recompressed += p->whole && place->encoded && !place->same;
	plan->exact = plan->exact && place->same;
	return KPACK_SUCCESS;
}

static kpack_error_t plan_containers(const struct kp_layout *layout,
				     const struct kp_layout_source *source,
				     struct kp_layout_plan *plan,
				     struct kpackx_error *why)
{
	struct kp_layout_payload p;
	kpack_error_t err;

	for (size_t i = 0; i < layout->n_containers; i++) {
		KP_TRY(kp_layout_payload_init(&p, layout, source, i, why));
		err = plan_container(&p, &plan->places[i], plan, why);
		kp_layout_payload_fini(&p);
		if (err)
			return kp_fail_prefix(why, err, "container %zu", i);
	}
	return KPACK_SUCCESS;
}

/* ---- places ---- */

static bool all_fit(const struct kp_layout *layout, const struct kp_layout_plan *plan)
{
	for (size_t i = 0; i < layout->n_containers; i++)
		if (plan->places[i].size > room_for(layout, i))
			return false;
	return true;
}

static uint64_t common_alignment(const struct kp_layout *layout)
{
	uint64_t all = 0;

	for (size_t i = 0; i < layout->n_containers; i++)
		all |= layout->containers[i].offset;
	return kp_bundle_alignment(all);
}

/* Place the containers one after the other. */
static void place_in_order(const struct kp_layout *layout, struct kp_layout_plan *plan)
{
	uint64_t align = common_alignment(layout), pos = 0;

	for (size_t i = 0; i < layout->n_containers; i++) {
		pos = (pos + align - 1) & -align;
		plan->container_offset[i] = pos;
		pos += plan->places[i].size;
	}
	if (pos > plan->size)
		plan->size = pos;
}

static void place_containers(const struct kp_layout *layout, struct kp_layout_plan *plan)
{
	plan->size = layout->size;
	if (all_fit(layout, plan)) {
		for (size_t i = 0; i < layout->n_containers; i++)
			plan->container_offset[i] = layout->containers[i].offset;
	} else {
		place_in_order(layout, plan);
	}
	for (size_t i = 0; i < layout->n_containers; i++) {
		if (plan->places[i].size == 0)
			plan->container_offset[i] = KP_LAYOUT_NOWHERE;
	}
	for (size_t i = 0; i < layout->n_wrappers; i++)
		plan->wrapper_offset[i] =
			plan->container_offset[layout->wrapper_container[i]];
}

static kpack_error_t open_plan(const struct kp_layout *layout,
			       struct kp_layout_plan *plan, struct kpackx_error *why)
{
	size_t n = layout->n_containers;

	*plan = (struct kp_layout_plan){
		.exact = true,
		.places = calloc(n + 1, sizeof(*plan->places)),
		.container_offset = calloc(n + 1, sizeof(*plan->container_offset)),
		.wrapper_offset =
			calloc(layout->n_wrappers + 1, sizeof(*plan->wrapper_offset)),
	};
	if (!plan->places || !plan->container_offset || !plan->wrapper_offset)
		return kp_fail_memory(why, n * sizeof(*plan->places), "a plan");
	return KPACK_SUCCESS;
}

kpack_error_t kp_layout_plan(const struct kp_layout *layout,
			     const struct kp_layout_source *source,
			     struct kp_layout_plan *out, struct kpackx_error *why)
{
	struct kp_layout_plan plan;
	kpack_error_t err = open_plan(layout, &plan, why);

	if (!err)
		err = plan_containers(layout, source, &plan, why);
	if (err) {
		kp_layout_plan_fini(&plan);
		return err;
	}
	place_containers(layout, &plan);
	*out = plan;
	return KPACK_SUCCESS;
}

void kp_layout_plan_fini(struct kp_layout_plan *plan)
{
	free(plan->places);
	free(plan->container_offset);
	free(plan->wrapper_offset);
	*plan = (struct kp_layout_plan){0};
}

/* ---- writing ---- */

static kpack_error_t write_encoded(const struct kp_layout_payload *p,
				   const struct kp_layout_place *place,
				   struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	uint8_t *data = NULL;
	size_t size = (size_t)place->size;
	kpack_error_t err;

	KP_TRY(place->kept ? unkeep_container(p, &data, why)
			   : encode_payload(p, place->level, &data, &size, why));
	if (data && size == place->size)
		err = kp_outfile_pwrite(out, offset, data, size, why);
	else
		err = kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "compresses to %zu bytes now, and to %" PRIu64 " before",
			      size, place->size);
	free(data);
	return err;
}

static kpack_error_t write_container(const struct kp_layout *layout,
				     const struct kp_layout_source *source, size_t i,
				     const struct kp_layout_place *place,
				     struct kp_outfile *out, uint64_t offset,
				     struct kpackx_error *why)
{
	struct kp_layout_payload p;
	kpack_error_t err;

	KP_TRY(kp_layout_payload_init(&p, layout, source, i, why));
	if (place->encoded)
		err = write_encoded(&p, place, out, offset, why);
	else if (p.size == place->size)
		err = kp_layout_payload_write(&p, out, offset, why);
	else
		err = kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "%" PRIu64 " bytes now, and %" PRIu64 " before", p.size,
			      place->size);
	kp_layout_payload_fini(&p);
	if (err)
		return kp_fail_prefix(why, err, "container %zu", i);
	return KPACK_SUCCESS;
}

kpack_error_t kp_layout_write(const struct kp_layout *layout,
			      const struct kp_layout_plan *plan,
			      const struct kp_layout_source *source,
			      struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why)
{
	/* writing the last byte gives the file its size */
	if (plan->size)
		KP_TRY(kp_outfile_pwrite(out, offset + plan->size - 1, "", 1, why));
	for (size_t i = 0; i < layout->n_containers; i++) {
		if (plan->container_offset[i] == KP_LAYOUT_NOWHERE)
			continue;
		KP_TRY(write_container(layout, source, i, &plan->places[i], out,
				       offset + plan->container_offset[i], why));
	}
	return KPACK_SUCCESS;
}
