/* SPDX-License-Identifier: MIT */
/* The table of contents of an archive being written. */
#include <msgpack.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/scheme.h"
#include "core/archive/shared.h"
#include "internal.h"

static int pack_bytes(void *data, const char *bytes, size_t size)
{
	struct kp_writer *w = data;

	if (!w->failed)
		kp_writer_append(w, bytes, size, w->why);
	kp_hasher_add(w->hasher, bytes, size);
	return w->failed ? -1 : 0;
}

static void pack_text(msgpack_packer *pk, const char *text)
{
	size_t n = strlen(text);

	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, text, n);
}

/* Write S, which already is MessagePack. */
static void pack_raw(msgpack_packer *pk, struct kp_span s)
{
	pk->callback(pk->data, (const char *)s.data, s.size);
}

static void pack_entry(msgpack_packer *pk, const struct kp_listed *e)
{
	msgpack_pack_map(pk, (e->metadata_size ? 4 : 3) + (size_t)e->n_more);
	pack_text(pk, "type");
	pack_text(pk, e->type);
	pack_text(pk, "ordinal");
	msgpack_pack_uint32(pk, e->ordinal);
	pack_text(pk, "original_size");
	msgpack_pack_uint64(pk, e->size);
	if (e->metadata_size) {
		pack_text(pk, "metadata");
		pack_raw(pk, (struct kp_span){e->metadata, e->metadata_size});
	}
	if (e->n_more)
		pack_raw(pk, (struct kp_span){e->more, e->more_size});
}

/* The number of entries from I on that have the key of I. */
static size_t run_of_key(const struct kp_writer *w, size_t i)
{
	size_t n = 1;

	while (i + n < w->entries.n &&
	       strcmp(w->entries.items[i].key, w->entries.items[i + n].key) == 0)
		n++;
	return n;
}

static void pack_toc(msgpack_packer *pk, const struct kp_writer *w)
{
	size_t keys = 0;

	for (size_t i = 0; i < w->entries.n; i += run_of_key(w, i))
		keys++;
	pack_text(pk, "toc");
	msgpack_pack_map(pk, keys);
	for (size_t i = 0; i < w->entries.n;) {
		size_t n = run_of_key(w, i);

		pack_text(pk, w->entries.items[i].key);
		msgpack_pack_map(pk, n);
		for (; n; n--, i++) {
			pack_text(pk, w->entries.items[i].arch);
			pack_entry(pk, &w->entries.items[i]);
		}
	}
}

static kpack_error_t pack_names(msgpack_packer *pk, const struct kp_writer *w,
				struct kpackx_error *why)
{
	const char **arches = NULL, *family = w->family;
	size_t n = 0;

	KP_TRY(kp_entry_list_arches(&w->entries, &arches, &n, why));
	if (!family)
		family = n == 1 ? arches[0] : w->group;
	pack_text(pk, "group_name");
	pack_text(pk, w->group);
	pack_text(pk, "gfx_arch_family");
	pack_text(pk, family);
	pack_text(pk, "gfx_arches");
	msgpack_pack_array(pk, n);
	for (size_t i = 0; i < n; i++)
		pack_text(pk, arches[i]);
	free(arches);
	return KPACK_SUCCESS;
}

static void pack_blobs(msgpack_packer *pk, const struct kp_writer *w)
{
	pack_text(pk, "compression_scheme");
	pack_text(pk, "none");
	pack_text(pk, "blobs");
	msgpack_pack_array(pk, w->n_frames);
	for (uint32_t i = 0; i < w->n_frames; i++) {
		msgpack_pack_map(pk, 2);
		pack_text(pk, "offset");
		msgpack_pack_uint64(pk, w->offsets[i]);
		pack_text(pk, "size");
		msgpack_pack_uint64(pk, w->sizes[i]);
	}
}

static void pack_frames(msgpack_packer *pk, const struct kp_writer *w, uint64_t blob_size)
{
	uint8_t word[8];

	pack_text(pk, "compression_scheme");
	pack_text(pk, "zstd-per-kernel");
	pack_text(pk, "zstd_offset");
	msgpack_pack_uint64(pk, KP_WRITER_BLOB);
	pack_text(pk, "zstd_size");
	msgpack_pack_uint64(pk, blob_size);
	pack_text(pk, "frame_index");
	msgpack_pack_bin(pk, 8 * ((size_t)w->n_frames + 1));
	for (uint32_t i = 0; i < w->n_frames; i++) {
		kp_put_le64(word, w->offsets[i] - 4 - KP_WRITER_BLOB);
		msgpack_pack_bin_body(pk, word, sizeof(word));
	}
	kp_put_le64(word, blob_size);
	msgpack_pack_bin_body(pk, word, sizeof(word));
}

static void pack_number(msgpack_packer *pk, const char *name, uint64_t n)
{
	pack_text(pk, name);
	msgpack_pack_uint64(pk, n);
}

static void pack_table(msgpack_packer *pk, const char *name, const uint8_t *data,
		       size_t size)
{
	pack_text(pk, name);
	msgpack_pack_bin(pk, size);
	msgpack_pack_bin_body(pk, data, size);
}

/* END is where the frames end in the file. */
static kpack_error_t pack_shared(msgpack_packer *pk, const struct kp_writer *w,
				 const struct kp_blocks *blocks, uint64_t end,
				 struct kpackx_error *why)
{
	uint8_t *objects;
	size_t size;

	KP_TRY(kp_share_objects(w->share, &objects, &size, why));
	if (size > KP_SHARED_TABLE_MAX) {
		free(objects);
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: its table of objects has %zu bytes, limit %llu",
			       size, (unsigned long long)KP_SHARED_TABLE_MAX);
	}
	pack_text(pk, "compression_scheme");
	pack_text(pk, kp_scheme_name(w->scheme));
	pack_text(pk, "zstd_shared");
	msgpack_pack_map(pk, 8);
	pack_number(pk, "offset", KP_WRITER_BLOB);
	pack_number(pk, "size", end - KP_WRITER_BLOB);
	pack_number(pk, "block_size", KP_SHARE_BLOCK);
	pack_number(pk, "unique_size", kp_share_unique_size(w->share));
	pack_number(pk, "dictionary_size", blocks->dictionary_size);
	pack_table(pk, "frames", blocks->sizes, 4 * (size_t)blocks->n);
	pack_table(pk, "objects", objects, size);
	pack_table(pk, "frame_hashes", blocks->hashes, 8 * (size_t)blocks->n);
	free(objects);
	return KPACK_SUCCESS;
}

/*
 * The hashes of those objects that readers decode piece by piece, because an entry states
 * more than KP_WHOLE_MAX bytes of them.
 */
static kpack_error_t pack_hashes(msgpack_packer *pk, const struct kp_writer *w,
				 struct kpackx_error *why)
{
	size_t most = 4 * (size_t)w->n_frames + 8 * w->n_pieces, size = 0;
	bool *wanted = calloc((size_t)w->n_frames + 1, 1);
	uint8_t *bytes = malloc(most + 1);
	const uint64_t *hash = w->pieces;
	kpack_error_t err = KPACK_SUCCESS;

	if (!wanted || !bytes) {
		err = kp_fail_memory(why, most, "hashes");
		goto out;
	}
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
out:
	free(wanted);
	free(bytes);
	return err;
}

/*
 * The number of pairs of the table, besides those of the caller.  A shared archive has the
 * hashes of its frames in zstd_shared.
 */
static size_t pairs_of(kpack_compression_t scheme)
{
	return scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL ? 11
	       : scheme == KPACK_COMPRESSION_NOOP          ? 9
							   : 8;
}

kpack_error_t kp_writer_pack_toc(struct kp_writer *w, const struct kp_blocks *blocks,
				 struct kpackx_error *why)
{
	uint64_t blob_size = kp_writer_blob_size(w), end = w->end;
	struct kp_hash hash;
	msgpack_packer pk;

	w->why = why;
	w->hasher = kp_hasher_new();
	if (!w->hasher)
		return kp_fail_memory(why, 0, "hashing");
	msgpack_packer_init(&pk, w, pack_bytes);
	msgpack_pack_map(&pk, pairs_of(w->scheme) + w->n_more);
	pack_text(&pk, "format_version");
	msgpack_pack_int(&pk, w->share ? 2 : 1);
	KP_TRY(pack_names(&pk, w, why));
	if (w->share)
		KP_TRY(pack_shared(&pk, w, blocks, end, why));
	else if (w->scheme == KPACK_COMPRESSION_NOOP)
		pack_blobs(&pk, w);
	else
		pack_frames(&pk, w, blob_size);
	for (size_t i = 0; i < w->n_more; i++)
		pack_raw(&pk, w->more[i]);
	if (!w->share)
		KP_TRY(pack_hashes(&pk, w, why));
	pack_toc(&pk, w); /* behind the rest, so that readers need not skip it */
	pack_text(&pk, "table_hash");
	msgpack_pack_bin(&pk, sizeof(hash));
	hash = kp_hasher_value(w->hasher);
	msgpack_pack_bin_body(&pk, hash.bytes, sizeof(hash));
	return w->failed;
}
