/* SPDX-License-Identifier: MIT */
#include "entry_meta.h"
#include <stdlib.h>
#include "core/format/format.h"
#include "core/writer/writer.h"
#include "packer/library/cutile_signature.h"
#include "core/base/text.h"

/* Bounds: real containers state about ten pairs of less than a hundred bytes. */
enum { PAIRS_MAX = 64, NAME_MAX_BYTES = 64, VALUE_MAX = 1024, MAP_MAX = 16384 };

/* --- what containers say ------------------------------------------------------------- */

static bool is_short_text(const char *text, size_t most)
{
	struct kp_span s = kp_span_str(text);

	return s.size && s.size <= most && kp_text_ok(s);
}

static void add_pair(struct facts *map, const struct kp_pair *p)
{
	struct kp_span value = {(const uint8_t *)p->value, p->size};

	if (!is_short_text(p->name, NAME_MAX_BYTES) || value.size > VALUE_MAX ||
	    map->size + value.size > MAP_MAX || facts_has(map, p->name))
		return;
	if (kp_text_ok(value))
		facts_text(map, p->name, value);
	else
		facts_bytes(map, p->name, value);
}

/* Whether no later pair has the same name: the last one counts. */
static bool is_last(const struct kp_pairs *pairs, size_t number)
{
	for (size_t i = number + 1; i < pairs->count; i++)
		if (strcmp(pairs->items[i].name, pairs->items[number].name) == 0)
			return false;
	return true;
}

/* Add the pairs of an image.  Its kind is one of the keys, too. */
static void add_pairs(struct facts *f, const char *name, const struct kp_image *img)
{
	struct facts map = {0};

	facts_string(&map, "kind", img->kind);
	for (size_t i = 0; i < img->pairs.count && i < PAIRS_MAX; i++)
		if (is_last(&img->pairs, i))
			add_pair(&map, &img->pairs.items[i]);
	facts_map(f, name, &map);
	facts_fini(&map);
}

static void add_container(struct facts *f, const struct kp_format *format,
			  const struct kp_image *img)
{
	if (format == &kp_format_offload_binary)
		add_pairs(f, "keys", img);
	else if (format == &kp_format_fatbin)
		add_pairs(f, "fatbin", img);
	else if (format == &kp_format_archive && img->id &&
		 is_short_text(img->id, VALUE_MAX))
		facts_string(f, "member", img->id);
}

/* --- what objects say ---------------------------------------------------------------- */

/* Whether objects of TYPE state facts that are recorded; only these are examined. */
static bool is_described(const char *type)
{
	return strcmp(type, "cubin") == 0 || strcmp(type, "tileirbc") == 0 ||
	       strcmp(type, "bc") == 0;
}

static void add_triple(struct facts *f, const struct kp_object *object)
{
	const char *triple = kp_pairs_find(&object->facts, "triple");

	if (triple && is_short_text(triple, VALUE_MAX))
		facts_string(f, "triple", triple);
}

/* Add what an object says.  One that cannot be read as its type says nothing. */
static kpack_error_t add_object(struct facts *f, const struct kp_source *src,
				struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct kp_object object;
	kpack_error_t err = kp_object_describe(src, &object, &fault);

	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = fault;
		return err;
	}
	if (err)
		return KPACK_SUCCESS;
	add_triple(f, &object);
	signature_facts(f, &object);
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

kpack_error_t entry_meta_facts(const struct input *in, size_t image, const char *type,
			       const struct kp_source *src, struct facts *f,
			       struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];

	if (in->kind == INPUT_DATABASE)
		return KPACK_SUCCESS;
	add_container(f, in->fat.containers.items[img->container].format, img);
	return is_described(type) ? add_object(f, src, why) : KPACK_SUCCESS;
}

/* --- written ------------------------------------------------------------------------- */

static struct kp_meta meta_of(const struct kp_content *content)
{
	struct kp_meta meta = {.has_xxh3 = true, .chunk = content->chunk};

	memcpy(meta.xxh3, content->hash, sizeof(meta.xxh3));
	return meta;
}

static kpack_error_t write_map(const struct kp_meta *meta, const struct facts *facts,
			       uint8_t **map, size_t *size, struct kpackx_error *why)
{
	struct kp_metadata_more more = {.pairs = {facts->pairs, facts->size},
					.n_pairs = facts->count};

	return kp_metadata_write(meta, &more, map, size, why);
}

/* Whether the ID of IMG is a bundle entry ID; names of members and sections are not. */
static bool has_entry_id(const struct input *in, const struct kp_image *img)
{
	const struct kp_format *f = in->fat.containers.items[img->container].format;

	return img->id && f != &kp_format_archive && !img->stream;
}

kpack_error_t entry_meta_image(const struct input *in, size_t image,
			       const struct kp_content *content,
			       const struct facts *facts, uint8_t **map, size_t *size,
			       struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	struct kp_meta meta = meta_of(content);

	if (has_entry_id(in, img))
		meta.target = kp_span_str(img->id);
	return write_map(&meta, facts, map, size, why);
}

kpack_error_t entry_meta_file(const struct library_object *object,
			      const struct kp_content *content, const struct facts *more,
			      uint8_t **map, size_t *size, struct kpackx_error *why)
{
	struct kp_meta meta = meta_of(content);
	struct facts facts = {0};
	kpack_error_t err;

	if (object->path)
		meta.path = kp_span_str(object->path);
	if (object->mode & 0111)
		meta.mode = object->mode & 0777;
	facts_string(&facts, "library", object->library);
	facts_string(&facts, "role", object->role);
	facts_join(&facts, more);
	err = write_map(&meta, &facts, map, size, why);
	facts_fini(&facts);
	return err;
}
