/* SPDX-License-Identifier: MIT */
#include "metadata.h"
#include <msgpack.h>

/* In the order of writing. */
enum { PATH, TARGET, XXH3, MODE, CHUNK, FIELDS };

static const char *const names[FIELDS] = {
	[PATH] = "path", [TARGET] = "target", [XXH3] = "xxh3",
	[MODE] = "mode", [CHUNK] = "chunk",
};

bool kp_metadata_is_field(const char *name)
{
	for (int i = 0; i < FIELDS; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int pack_text(msgpack_packer *pk, struct kp_span text)
{
	return msgpack_pack_str_with_body(pk, text.data, text.size);
}

static int pack_value(msgpack_packer *pk, const struct kp_meta *meta, int field)
{
	switch (field) {
	case PATH:
		return pack_text(pk, meta->path);
	case TARGET:
		return pack_text(pk, meta->target);
	case XXH3:
		return msgpack_pack_bin_with_body(pk, meta->xxh3, sizeof(meta->xxh3));
	case MODE:
		return msgpack_pack_uint32(pk, meta->mode);
	default:
		return msgpack_pack_uint64(pk, meta->chunk);
	}
}

static int pack_more(msgpack_packer *pk, const struct kp_metadata_more *more)
{
	int failed = 0;

	for (size_t i = 0; i < more->n_texts && !failed; i++)
		failed = pack_text(pk, kp_span_str(more->texts[i].name)) ||
			 pack_text(pk, kp_span_str(more->texts[i].text));
	if (!failed && more->pairs.size)
		failed = pk->callback(pk->data, (const char *)more->pairs.data,
				      more->pairs.size);
	return failed;
}

static int pack_map(msgpack_packer *pk, const struct kp_meta *meta,
		    const struct kp_metadata_more *more)
{
	const bool has[FIELDS] = {
		[PATH] = meta->path.data, [TARGET] = meta->target.data,
		[XXH3] = meta->has_xxh3,  [MODE] = meta->mode,
		[CHUNK] = meta->chunk,
	};
	size_t pairs = more ? more->n_texts + more->n_pairs : 0;
	int failed;

	for (int i = 0; i < FIELDS; i++)
		pairs += has[i];
	failed = msgpack_pack_map(pk, pairs);
	for (int i = 0; i < FIELDS && !failed; i++)
		if (has[i])
			failed = pack_text(pk, kp_span_str(names[i])) ||
				 pack_value(pk, meta, i);
	return failed || (more && pack_more(pk, more));
}

kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kp_metadata_more *more, uint8_t **map,
				size_t *size, struct kpackx_error *why)
{
	msgpack_sbuffer buf;
	msgpack_packer pk;

	msgpack_sbuffer_init(&buf);
	msgpack_packer_init(&pk, &buf, msgpack_sbuffer_write);
	if (pack_map(&pk, meta, more)) {
		msgpack_sbuffer_destroy(&buf);
		return kp_fail_memory(why, buf.size, "metadata");
	}
	*size = buf.size;
	*map = (uint8_t *)msgpack_sbuffer_release(&buf);
	return KPACK_SUCCESS;
}
