/* SPDX-License-Identifier: MIT */
/*
 * The table of contents of an archive being written (its fields: core/archive/toc.h), and the
 * metadata of entries in it.  It is packed straight into the archive's buffer: a table of a
 * million entries is never in memory as a whole.  Its hash is made on the way and comes last,
 * where a reader finds it without parsing.
 *
 * The entries come last but for the hash, so that a reader that only wants the names or the
 * frame index need not skip them.  What msgpack's calls return is not looked at: the
 * writer's state has the first error, and kp_writer_pack_toc returns it at the end.
 */
#include <msgpack.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/base/scheme.h"
#include "core/base/text.h"
#include "internal.h"

static void pack_span(msgpack_packer *pk, struct kp_span s)
{
	msgpack_pack_str_with_body(pk, s.data, s.size);
}

static void pack_text(msgpack_packer *pk, const char *text)
{
	pack_span(pk, kp_span_str(text));
}

static void pack_number(msgpack_packer *pk, const char *name, uint64_t n)
{
	pack_text(pk, name);
	msgpack_pack_uint64(pk, n);
}

static void pack_table(msgpack_packer *pk, const char *name, const void *data,
		       size_t size)
{
	pack_text(pk, name);
	msgpack_pack_bin_with_body(pk, data, size);
}

/* Write S, which already is MessagePack. */
static void pack_raw(msgpack_packer *pk, struct kp_span s)
{
	if (s.size)
		pk->callback(pk->data, (const char *)s.data, s.size);
}

/* --- metadata ------------------------------------------------------------------------- */

bool kp_metadata_is_field(const char *name)
{
	static const char *const names[] = {"path", "target", "xxh3", "mode", "chunk"};

	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int add_to_map(void *arg, const char *bytes, size_t size)
{
	kp_compose_span(arg, (struct kp_span){(const uint8_t *)bytes, size});
	return 0;
}

kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kp_metadata_more *more, uint8_t **map,
				size_t *size, struct kpackx_error *why)
{
	static const struct kp_metadata_more none = {0};
	struct kp_compose buf = {0};
	msgpack_packer pk;

	more = more ? more : &none;
	msgpack_packer_init(&pk, &buf, add_to_map);
	msgpack_pack_map(&pk, (size_t) !!meta->path.data + !!meta->target.data +
				      meta->has_xxh3 + !!meta->mode + !!meta->chunk +
				      more->n_texts + more->n_pairs);
	if (meta->path.data) {
		pack_text(&pk, "path");
		pack_span(&pk, meta->path);
	}
	if (meta->target.data) {
		pack_text(&pk, "target");
		pack_span(&pk, meta->target);
	}
	if (meta->has_xxh3)
		pack_table(&pk, "xxh3", meta->xxh3, sizeof(meta->xxh3));
	if (meta->mode)
		pack_number(&pk, "mode", meta->mode);
	if (meta->chunk)
		pack_number(&pk, "chunk", meta->chunk);
	for (size_t i = 0; i < more->n_texts; i++) {
		pack_text(&pk, more->texts[i].name);
		pack_text(&pk, more->texts[i].text);
	}
	pack_raw(&pk, more->pairs);
	*size = buf.size;
	return kp_compose_take(&buf, (char **)map, why);
}

/* --- the table ------------------------------------------------------------------------ */

static int add_to_archive(void *data, const char *bytes, size_t size)
{
	struct kp_writer *w = data;

	if (!w->failed)
		kp_writer_append(w, bytes, size, w->why);
	kp_hasher_add(w->hasher, bytes, size);
	return w->failed ? -1 : 0;
}

/*
 * The hashes of those objects that readers decode piece by piece, because an entry states
 * more than KP_WHOLE_MAX bytes of them.
 */
static kpack_error_t pack_hashes(msgpack_packer *pk, const struct kp_writer *w,
				 struct kpackx_error *why)
{
	KP_AUTO_FREE bool *wanted = NULL;
	KP_AUTO_FREE uint8_t *bytes = NULL;
	const uint64_t *hash = w->pieces;
	size_t size = 0;

	KP_TRY(kp_new(&wanted, w->n_frames, "hashes", why));
	KP_TRY(kp_new(&bytes, 4 * (size_t)w->n_frames + 8 * w->n_pieces, "hashes", why));
	for (size_t i = 0; i < w->entries.n; i++)
		if (w->entries.items[i].size > KP_WHOLE_MAX)
			wanted[w->entries.items[i].ordinal] = true;
	for (uint32_t i = 0; i < w->n_frames; i++) {
		uint64_t n = (w->sizes[i] + KP_PIECE - 1) / KP_PIECE;

		if (wanted[i]) {
			kp_put_le32(bytes + size, i);
			size += 4;
		}
		for (; n; n--, hash++) {
			if (!wanted[i])
				continue;
			kp_put_le64(bytes + size, *hash);
			size += 8;
		}
	}
	pack_table(pk, "piece_hashes", bytes, size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_pack_toc(struct kp_writer *w, const struct kp_blocks *blocks,
				 struct kpackx_error *why)
{
	uint64_t blob_size = w->blob_end - KP_WRITER_BLOB;
	const struct kp_listed *entries = w->entries.items;
	const struct kp_listed *end = entries + w->entries.n, *e, *key;
	KP_AUTO_FREE const char **arches = NULL;
	KP_AUTO_FREE uint8_t *objects = NULL;
	const char *family = w->family;
	struct kp_hash hash;
	msgpack_packer pk;
	uint8_t word[8];
	size_t n = 0, keys = 0, size;

	w->why = why;
	w->hasher = kp_hasher_new();
	if (!w->hasher)
		return kp_fail_memory(why, 0, "hashing");
	KP_TRY(kp_new(&arches, w->entries.n, "architectures", why));
	for (size_t i = 0; i < w->entries.n; i++)
		arches[i] = entries[i].arch;
	kp_sort(arches, w->entries.n, KP_AS_TEXT);
	for (size_t i = 0; i < w->entries.n; i++)
		if (n == 0 || strcmp(arches[n - 1], arches[i]) != 0)
			arches[n++] = arches[i];
	if (!family) /* what all entries are for */
		family = n == 1 ? arches[0] : w->group;

	/* pairs besides the caller's; a shared archive has its hashes in zstd_shared */
	msgpack_packer_init(&pk, w, add_to_archive);
	msgpack_pack_map(&pk, w->n_more + (w->share                              ? 8
					   : w->scheme == KPACK_COMPRESSION_NOOP ? 9
										 : 11));
	pack_number(&pk, "format_version", w->share ? 2 : 1);
	pack_text(&pk, "group_name");
	pack_text(&pk, w->group);
	pack_text(&pk, "gfx_arch_family");
	pack_text(&pk, family);
	pack_text(&pk, "gfx_arches");
	msgpack_pack_array(&pk, n);
	for (size_t i = 0; i < n; i++)
		pack_text(&pk, arches[i]);
	pack_text(&pk, "compression_scheme");
	pack_text(&pk, kp_scheme_name(w->scheme));

	/* where the objects are */
	if (w->share) {
		KP_TRY(kp_share_objects(w->share, &objects, &size, why));
		if (size > KP_SHARED_TABLE_MAX)
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"archive: its table of objects has %zu bytes, limit %llu",
				size, (unsigned long long)KP_SHARED_TABLE_MAX);
		pack_text(&pk, "zstd_shared");
		msgpack_pack_map(&pk, 8);
		pack_number(&pk, "offset", KP_WRITER_BLOB);
		pack_number(&pk, "size", blob_size);
		pack_number(&pk, "block_size", KP_SHARE_BLOCK);
		pack_number(&pk, "unique_size", w->share->unique.size);
		pack_number(&pk, "dictionary_size", blocks->dictionary_size);
		pack_table(&pk, "frames", blocks->sizes, 4 * (size_t)blocks->n);
		pack_table(&pk, "objects", objects, size);
		pack_table(&pk, "frame_hashes", blocks->hashes, 8 * (size_t)blocks->n);
	} else if (w->scheme == KPACK_COMPRESSION_NOOP) {
		pack_text(&pk, "blobs");
		msgpack_pack_array(&pk, w->n_frames);
		for (uint32_t i = 0; i < w->n_frames; i++) {
			msgpack_pack_map(&pk, 2);
			pack_number(&pk, "offset", w->offsets[i]);
			pack_number(&pk, "size", w->sizes[i]);
		}
	} else {
		pack_number(&pk, "zstd_offset", KP_WRITER_BLOB);
		pack_number(&pk, "zstd_size", blob_size);
		pack_text(&pk, "frame_index"); /* of the frames' length words */
		msgpack_pack_bin(&pk, 8 * ((size_t)w->n_frames + 1));
		for (uint32_t i = 0; i <= w->n_frames; i++) {
			kp_put_le64(word, i < w->n_frames
						  ? w->offsets[i] - 4 - KP_WRITER_BLOB
						  : blob_size);
			msgpack_pack_bin_body(&pk, word, sizeof(word));
		}
	}

	for (size_t i = 0; i < w->n_more; i++)
		pack_raw(&pk, w->more[i]);
	if (!w->share)
		KP_TRY(pack_hashes(&pk, w, why));

	/*
	 * The entries, behind the rest, so that readers need not skip them.  They are sorted, so
	 * that those of a key, whose map they are, follow each other.
	 */
	for (e = key = entries; e < end; key = e++)
		keys += e == key || strcmp(key->key, e->key) != 0;
	pack_text(&pk, "toc");
	msgpack_pack_map(&pk, keys);
	for (e = entries; e < end;) {
		key = e;
		for (n = 1; e + n < end && strcmp(key->key, e[n].key) == 0;)
			n++;
		pack_text(&pk, key->key);
		msgpack_pack_map(&pk, n);
		for (; e < key + n; e++) {
			pack_text(&pk, e->arch);
			msgpack_pack_map(&pk,
					 (e->metadata.size ? 4 : 3) + (size_t)e->n_more);
			pack_text(&pk, "type");
			pack_text(&pk, e->type);
			pack_number(&pk, "ordinal", e->ordinal);
			pack_number(&pk, "original_size", e->size);
			if (e->metadata.size) {
				pack_text(&pk, "metadata");
				pack_raw(&pk, e->metadata);
			}
			pack_raw(&pk, e->more);
		}
	}
	pack_text(&pk, "table_hash");
	msgpack_pack_bin(&pk, sizeof(hash));
	hash = kp_hasher_value(w->hasher);
	msgpack_pack_bin_body(&pk, hash.bytes, sizeof(hash));
	return w->failed;
}
