/* SPDX-License-Identifier: MIT */
/*
 * Making recipes part by part, and storing them, as kpack-format(5) describes.  Tables are columns of
 * LEB128 numbers, because equal columns next to each other nearly vanish in zstd, and a library can
 * have thousands of objects.
 */
#include <msgpack.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "recipe.h"

/* Most bytes for which a slow level of zstd is still fast enough. */
#define SLOW_MAX (1 << 20)

/* ---- making ---- */

kpack_error_t kp_recipe_add(struct kp_recipe *r, struct kp_part part,
			    struct kpackx_error *why)
{
	struct kp_part *last = r->n_parts > r->apart ? &r->parts[r->n_parts - 1] : NULL;

	if (last && part.kind == last->kind &&
	    (part.kind == KP_PART_ZEROS || part.kind == KP_PART_BYTES ||
	     (part.kind == KP_PART_COPY && part.from == last->from + last->size) ||
	     (part.kind == KP_PART_RANGE && part.number == last->number &&
	      part.from == last->from + last->size))) {
		last->size += part.size;
		return KPACK_SUCCESS;
	}
	KP_TRY(kp_room(&r->parts, r->n_parts, &r->parts_cap, "a recipe", why));
	r->parts[r->n_parts++] = part;
	return KPACK_SUCCESS;
}

kpack_error_t kp_recipe_room(struct kp_recipe *r, size_t size, uint8_t **room,
			     struct kpackx_error *why)
{
	if (!r->bytes || r->bytes_cap - r->n_bytes < size) {
		size_t cap = 2 * r->bytes_cap + size + 4096;
		uint8_t *bytes = realloc(r->bytes, cap);

		if (!bytes)
			return kp_fail_memory(why, cap, "a recipe");
		r->bytes = bytes;
		r->bytes_cap = cap;
	}
	*room = r->bytes + r->n_bytes;
	r->n_bytes += size;
	return KPACK_SUCCESS;
}

static uint64_t hash_target(const char *id, const char *arch, bool host)
{
	uint64_t hash = kp_slot_hash(arch, strlen(arch), host);

	return id ? kp_slot_hash(id, strlen(id), hash) : hash;
}

static uint64_t hash_of_target(const void *arg, uint32_t number)
{
	const struct kp_recipe_target *t =
		&((const struct kp_recipe *)arg)->targets[number];

	return hash_target(t->id, t->arch, t->host);
}

/* Find the target ID, ARCH, HOST, or add it. */
static kpack_error_t add_target(struct kp_recipe *r, const char *id, const char *arch,
				bool host, uint32_t *number, struct kpackx_error *why)
{
	struct kp_recipe_target new = {NULL, NULL, host};
	uint32_t *slot;

	if (!kp_slots_grow(&r->target_slots, hash_of_target, r))
		return kp_fail_memory(why, 0, "a recipe");
	slot = kp_slots_first(&r->target_slots, hash_target(id, arch, host));
	for (; *slot; slot = kp_slots_next(&r->target_slots, slot)) {
		const struct kp_recipe_target *t = &r->targets[*slot - 1];

		*number = *slot - 1;
		if (t->host == host && strcmp(t->arch, arch) == 0 && !t->id == !id &&
		    (!id || strcmp(t->id, id) == 0))
			return KPACK_SUCCESS;
	}
	KP_TRY(kp_room(&r->targets, r->n_targets, &r->targets_cap, "a recipe", why));
	new.arch = strdup(arch);
	new.id = id ? strdup(id) : NULL;
	if (!new.arch || (id && !new.id)) {
		free(new.arch);
		free(new.id);
		return kp_fail_memory(why, 0, "a recipe");
	}
	*number = (uint32_t)r->n_targets;
	r->targets[r->n_targets++] = new;
	kp_slots_put(&r->target_slots, slot, *number);
	return KPACK_SUCCESS;
}

kpack_error_t kp_recipe_add_image(struct kp_recipe *r, const char *id, const char *arch,
				  bool host, struct kp_recipe_image **out,
				  struct kpackx_error *why)
{
	uint32_t target = 0;

	KP_TRY(add_target(r, id, arch, host, &target, why));
	KP_TRY(kp_room(&r->images, r->n_images, &r->images_cap, "a recipe", why));
	*out = &r->images[r->n_images++];
	**out = (struct kp_recipe_image){.target = target,
					 .id = r->targets[target].id,
					 .arch = r->targets[target].arch,
					 .host = host};
	return KPACK_SUCCESS;
}

/* ---- encoding ---- */

static void put_number(struct kp_compose *c, uint64_t n)
{
	uint8_t bytes[10];
	size_t size = 0;

	do {
		bytes[size++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
	kp_compose_span(c, (struct kp_span){bytes, size});
}

static void put_signed(struct kp_compose *c, uint64_t d)
{
	put_number(c, d << 1 ^ (0 - (d >> 63)));
}

static void put_parts(struct kp_compose *c, const struct kp_recipe *r)
{
	uint64_t at = 0, outer = 0, shift = 0, next = 0;
	size_t payload_end = 0;

	for (size_t i = 0; i < r->n_parts; i++) {
		const struct kp_part *p = &r->parts[i];
		bool pads = p->kind == KP_PART_ZEROS && (at + p->size) % 4096 == 0 &&
			    p->size < 4096;

		put_number(c, pads ? KP_PART_PAD : p->kind);
		switch (p->kind) {
		case KP_PART_COPY:
			put_signed(c, p->from - at - shift);
			put_number(c, p->size);
			shift = p->from - at;
			break;
		case KP_PART_OBJECT:
		case KP_PART_RANGE:
			put_signed(c, p->number - next);
			next = p->number + 1;
			if (p->kind == KP_PART_RANGE) {
				put_number(c, p->from);
				put_number(c, p->size);
			}
			break;
		case KP_PART_COMPRESSED:
			put_number(c, p->inside);
			put_number(c, p->size);
			break;
		case KP_PART_BYTES:
		case KP_PART_ZEROS:
			if (!pads)
				put_number(c, p->size);
			break;
		default:
			break;
		}
		at += p->size;
		if (p->kind == KP_PART_COMPRESSED) {
			outer = at;
			at = 0;
			payload_end = i + 1 + p->inside;
		}
		if (payload_end && i + 1 == payload_end) {
			at = outer;
			payload_end = 0;
		}
	}
}

static void put_tables(struct kp_compose c[KP_BINS], const struct kp_recipe *r)
{
	kp_compose_span(&c[KP_BIN_COPIED],
			(struct kp_span){r->copied, sizeof(r->copied)});
	for (size_t i = 0; i < r->n_images; i++)
		put_number(&c[KP_BIN_OBJECTS], r->images[i].target);
	for (size_t i = 0; i < r->n_images; i++) {
		const struct kp_recipe_image *image = &r->images[i];

		put_number(&c[KP_BIN_OBJECTS], image->size);
		if (image->has_xxh3)
			kp_compose_span(&c[KP_BIN_HASHES],
					(struct kp_span){image->xxh3, KP_RECIPE_HASH});
		else if (!image->host && image->size)
			put_number(&c[KP_BIN_UNKNOWN], i);
	}
	for (size_t i = 0; i < r->n_containers; i++)
		put_number(&c[KP_BIN_CONTAINERS], r->containers[i].n_images);
	for (size_t i = 0; i < r->n_wrappers; i++)
		put_signed(&c[KP_BIN_WRAPPERS],
			   r->wrapper_container[i] -
				   (i ? r->wrapper_container[i - 1] + UINT64_C(1) : 0));
	for (size_t i = 0; i < r->n_forms; i++) {
		const struct kp_recipe_form *f = &r->forms[i];
		uint8_t hash[8];

		put_number(&c[KP_BIN_COMPRESSED], f->form.version);
		put_number(&c[KP_BIN_COMPRESSED], f->form.method);
		put_number(&c[KP_BIN_COMPRESSED], (uint64_t)f->form.level);
		put_number(&c[KP_BIN_COMPRESSED], f->form.long_range);
		put_number(&c[KP_BIN_COMPRESSED], f->kept);
		kp_put_le64(hash, f->form.hash);
		kp_compose_span(&c[KP_BIN_COMPRESSED],
				(struct kp_span){hash, sizeof(hash)});
		kp_compose_span(&c[KP_BIN_COMPRESSED],
				(struct kp_span){f->xxh3, sizeof(f->xxh3)});
	}
	put_parts(&c[KP_BIN_PARTS], r);
	kp_compose_span(&c[KP_BIN_BYTES], (struct kp_span){r->bytes, r->n_bytes});
}

static bool pack_text(msgpack_packer *pk, const char *text)
{
	size_t n = strlen(text);

	return !msgpack_pack_str(pk, n) && !msgpack_pack_str_body(pk, text, n);
}

static bool pack_bin(msgpack_packer *pk, const void *data, size_t size)
{
	return !msgpack_pack_bin(pk, size) && !msgpack_pack_bin_body(pk, data, size);
}

static bool pack_file(msgpack_packer *pk, const struct kp_recipe_file *f)
{
	return pack_text(pk, "file") && !msgpack_pack_array(pk, 10) &&
	       pack_bin(pk, f->xxh3, sizeof(f->xxh3)) &&
	       !msgpack_pack_uint64(pk, f->changed_size) &&
	       (f->removed ? !msgpack_pack_nil(pk)
			   : pack_bin(pk, f->changed_xxh3, sizeof(f->changed_xxh3))) &&
	       !msgpack_pack_uint32(pk, f->mode) && !msgpack_pack_uint32(pk, f->uid) &&
	       !msgpack_pack_uint32(pk, f->gid) &&
	       !msgpack_pack_int64(pk, f->mtime.tv_sec) &&
	       !msgpack_pack_int64(pk, f->mtime.tv_nsec) &&
	       !msgpack_pack_int64(pk, f->kept.tv_sec) &&
	       !msgpack_pack_int64(pk, f->kept.tv_nsec);
}

/* Pack the map.  Empty bins are left out. */
static bool pack_recipe(msgpack_packer *pk, const struct kp_recipe *r,
			const struct kp_compose bins[KP_BINS])
{
	size_t n = 3 + r->has_section + r->has_file;
	bool good;

	for (size_t i = 0; i < KP_BINS; i++) {
		n += bins[i].size != 0;
		if (bins[i].no_memory)
			return false;
	}
	good = !msgpack_pack_map(pk, n) && pack_text(pk, "version") &&
	       !msgpack_pack_uint64(pk, KP_RECIPE_VERSION) && pack_text(pk, "size") &&
	       !msgpack_pack_uint64(pk, r->size);
	if (r->has_section)
		good = good && pack_text(pk, "section") && !msgpack_pack_array(pk, 2) &&
		       !msgpack_pack_uint64(pk, r->section_offset) &&
		       !msgpack_pack_uint64(pk, r->section_size);
	if (r->has_file)
		good = good && pack_file(pk, &r->file);
	good = good && pack_text(pk, "targets") && !msgpack_pack_array(pk, r->n_targets);
	for (size_t i = 0; i < r->n_targets && good; i++) {
		const struct kp_recipe_target *t = &r->targets[i];

		good = !msgpack_pack_array(pk, 3) &&
		       (t->id ? pack_text(pk, t->id) : !msgpack_pack_nil(pk)) &&
		       pack_text(pk, t->arch) &&
		       !(t->host ? msgpack_pack_true(pk) : msgpack_pack_false(pk));
	}
	for (size_t i = 0; i < KP_BINS && good; i++)
		if (bins[i].size)
			good = pack_text(pk, kp_recipe_bins[i]) &&
			       pack_bin(pk, bins[i].text, bins[i].size);
	return good;
}

kpack_error_t kp_recipe_encode(const struct kp_recipe *r, uint8_t **out, size_t *size,
			       struct kpackx_error *why)
{
	struct kp_compose bins[KP_BINS] = {0};
	msgpack_sbuffer buf;
	msgpack_packer pk;
	ZSTD_CCtx *ctx = NULL;
	size_t room, n;
	uint8_t *data = NULL;
	kpack_error_t err = KPACK_SUCCESS;

	msgpack_sbuffer_init(&buf);
	msgpack_packer_init(&pk, &buf, msgpack_sbuffer_write);
	put_tables(bins, r);
	if (!pack_recipe(&pk, r, bins)) {
		err = kp_fail_memory(why, buf.size, "a recipe");
		goto out;
	}
	if (buf.size > KP_LAYOUT_MAX) {
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "recipe: %zu bytes, at most %llu", buf.size,
			      (unsigned long long)KP_LAYOUT_MAX);
		goto out;
	}
	room = ZSTD_compressBound(buf.size);
	data = malloc(room + r->n_kept);
	ctx = ZSTD_createCCtx();
	if (!data || !ctx ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel,
						buf.size > SLOW_MAX ? 3 : 19)) ||
	    ZSTD_isError(n = ZSTD_compress2(ctx, data, room, buf.data, buf.size))) {
		free(data);
		err = kp_fail_memory(why, room + r->n_kept, "a recipe");
		goto out;
	}
	if (r->n_kept)
		memcpy(data + n, r->kept, r->n_kept);
	*out = data;
	*size = n + r->n_kept;
out:
	ZSTD_freeCCtx(ctx);
	for (size_t i = 0; i < KP_BINS; i++)
		kp_compose_fini(&bins[i]);
	msgpack_sbuffer_destroy(&buf);
	return err;
}
