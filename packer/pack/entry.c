/* SPDX-License-Identifier: MIT */
/*
 * What an archive says about an object besides its location: the suffix of its key, which tells
 * the objects of one container for one architecture apart, and its metadata.  These are small:
 * real containers state about ten pairs of less than a hundred bytes, and no loader reads longer
 * ones, which are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "core/writer/writer.h"
#include "packer/cli/xalloc.h"
#include "packer/library/cutile_signature.h"
#include "store.h"

/* --- suffixes of keys ---------------------------------------------------------------- */

/*
 * A row of the table: an ordinal that is named, or a kind and how many objects have it as
 * suffix.
 */
struct suffix_seen {
	uint64_t hash;
	uint32_t times;
};

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct key_suffixes *n = arg;

	return n->rows[row].hash;
}

/*
 * The row of HASH, which is added if missing.  The rows are hashed because an archive of
 * bitcode may have thousands of objects for one architecture.
 */
static struct suffix_seen *find_row(struct key_suffixes *n, uint64_t hash)
{
	uint32_t *slot;

	if (!kp_slots_grow(&n->slots, hash_row, n))
		xalloc_fail(0);
	slot = kp_slots_first(&n->slots, hash);
	while (*slot && n->rows[*slot - 1].hash != hash)
		slot = kp_slots_next(&n->slots, slot);
	if (!*slot) {
		kp_slots_put(&n->slots, slot, (uint32_t)n->count);
		xgrow(&n->rows, n->count, &n->cap, sizeof(*n->rows));
		n->rows[n->count++] = (struct suffix_seen){hash, 0};
	}
	return &n->rows[*slot - 1];
}

void key_suffixes_fini(struct key_suffixes *n)
{
	free(n->rows);
	free(n->slots.slots);
	*n = (struct key_suffixes){0};
}

bool key_suffix_choose(struct key_suffixes *n, const char *arch, struct kp_span kind,
		       uint32_t ordinal, char out[KEY_SUFFIX_MAX])
{
	char shown[41];
	struct suffix_seen *row;
	size_t size = kind.size < sizeof(shown) - 1 ? kind.size : sizeof(shown) - 1;

	if (!n->arch || strcmp(n->arch, arch) != 0)
		key_suffixes_fini(n);
	n->arch = arch;
	row = find_row(n, kp_slot_hash(&ordinal, sizeof(ordinal), 1));
	out[0] = 0;
	if (row->times++)
		return false;
	/* the first object of the architecture has no suffix, whatever its kind */
	if (n->n_objects++ == 0)
		return true;
	/* keys cannot have all bytes, and "/", "#", and "." before a number have a meaning */
	for (size_t i = 0; i < size; i++) {
		char c = (char)kind.data[i];

		shown[i] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
					   (c >= '0' && c <= '9') || c == '_' ||
					   c == '+' || c == '-'
				   ? c
				   : '_';
	}
	shown[size] = 0;
	row = find_row(n, kp_slot_hash(shown, size, 2));
	if (++row->times == 1)
		snprintf(out, KEY_SUFFIX_MAX, "@%s", shown);
	else
		snprintf(out, KEY_SUFFIX_MAX, "@%s.%u", shown, row->times);
	return true;
}

/* --- facts --------------------------------------------------------------------------- */

enum { PAIRS_MAX = 64, NAME_MAX_BYTES = 64, VALUE_MAX = 1024, MAP_MAX = 16384 };

static bool is_short_text(const char *text, size_t most)
{
	struct kp_span s = kp_span_str(text);

	return s.size && s.size <= most && kp_text_ok(s);
}

/* Add the pairs of an image.  Its kind is one of the keys, too. */
static void add_pairs(struct facts *f, const char *name, const struct kp_image *img)
{
	const struct kp_pair *items = img->pairs.items;
	struct facts map = {0};

	facts_string(&map, "kind", img->kind);
	for (size_t i = 0; i < img->pairs.count && i < PAIRS_MAX; i++) {
		struct kp_span value = {(const uint8_t *)items[i].value, items[i].size};
		bool last = true; /* of several with one name the last one counts */

		for (size_t k = i + 1; k < img->pairs.count && last; k++)
			last = strcmp(items[k].name, items[i].name) != 0;
		if (!last || !is_short_text(items[i].name, NAME_MAX_BYTES) ||
		    value.size > VALUE_MAX || map.size + value.size > MAP_MAX ||
		    facts_has(&map, items[i].name))
			continue;
		if (kp_text_ok(value))
			facts_text(&map, items[i].name, value);
		else
			facts_bytes(&map, items[i].name, value);
	}
	facts_map(f, name, &map);
	facts_fini(&map);
}

kpack_error_t entry_facts(const struct input *in, size_t image, const char *type,
			  const struct kp_source *src, struct facts *f,
			  struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	const struct kp_format *format;
	struct kpackx_error fault = {0};
	struct kp_object object;
	const char *triple;
	kpack_error_t err;

	if (in->kind == INPUT_DATABASE)
		return KPACK_SUCCESS;
	format = in->fat.containers.items[img->container].format;
	if (format == &kp_format_offload_binary)
		add_pairs(f, "keys", img);
	else if (format == &kp_format_fatbin)
		add_pairs(f, "fatbin", img);
	else if (format == &kp_format_archive && img->id &&
		 is_short_text(img->id, VALUE_MAX))
		facts_string(f, "member", img->id);
	/* only these state facts that are recorded */
	if (strcmp(type, "cubin") != 0 && strcmp(type, "tileirbc") != 0 &&
	    strcmp(type, "bc") != 0)
		return KPACK_SUCCESS;
	err = kp_object_describe(src, &object, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = fault;
		return err;
	}
	if (err) /* what cannot be read as its type says nothing */
		return KPACK_SUCCESS;
	triple = kp_pairs_find(&object.facts, "triple");
	if (triple && is_short_text(triple, VALUE_MAX))
		facts_string(f, "triple", triple);
	signature_facts(f, &object);
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

kpack_error_t entry_metadata(const struct input *in, size_t image,
			     const struct kp_content *content, const struct facts *facts,
			     uint8_t **map, size_t *size, struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	struct kp_meta meta = {.has_xxh3 = true, .chunk = content->chunk};
	struct kp_metadata_more more;
	struct facts all = {0};
	kpack_error_t err;

	memcpy(meta.xxh3, content->hash, sizeof(meta.xxh3));
	if (in->kind == INPUT_DATABASE) {
		const struct library_object *o = &in->objects[image];

		if (o->path)
			meta.path = kp_span_str(o->path);
		if (o->mode & 0111)
			meta.mode = o->mode & 0777;
		facts_string(&all, "library", o->library);
		facts_string(&all, "role", o->role);
	} else if (img->id && !img->stream &&
		   in->fat.containers.items[img->container].format !=
			   &kp_format_archive) {
		/* a bundle entry ID; names of members and sections are not */
		meta.target = kp_span_str(img->id);
	}
	facts_join(&all, facts);
	more = (struct kp_metadata_more){.pairs = {all.pairs, all.size},
					 .n_pairs = all.count};
	err = kp_metadata_write(&meta, &more, map, size, why);
	facts_fini(&all);
	return err;
}
