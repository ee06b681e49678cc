/* SPDX-License-Identifier: MIT */
#include "thin_archive.h"
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "core/format/ar_archive.h"

/* An archive being made (DATA), and the members it is made of. */
struct gathering {
	struct kp_ar ar;
	struct kp_ar_input *members;
	uint8_t *data;
	size_t size, cap;
};

static bool is_thin(const struct kp_source *src)
{
	uint8_t magic[8];

	return src->size >= sizeof(magic) &&
	       kp_source_read(src, 0, magic, sizeof(magic), NULL) == KPACK_SUCCESS &&
	       memcmp(magic, "!<thin>\n", sizeof(magic)) == 0;
}

static kpack_error_t append_bytes(void *arg, const void *data, size_t size,
				  struct kpackx_error *why)
{
	struct gathering *g = arg;
	uint8_t *grown;

	if (size > g->cap - g->size) {
		g->cap = 2 * (g->size + size);
		grown = realloc(g->data, g->cap);
		if (!grown)
			return kp_fail_memory(why, g->cap, "an archive");
		g->data = grown;
	}
	memcpy(g->data + g->size, data, size);
	g->size += size;
	return KPACK_SUCCESS;
}

/*
 * Read member NUMBER into memory: there may be more members than a process can have open.
 */
static kpack_error_t read_member(struct gathering *g, size_t number,
				 const struct kp_source *src, const char *path,
				 struct kpackx_error *why)
{
	struct kp_ar_input *m = &g->members[number];
	struct bundler_input file;
	kpack_error_t err;
	uint8_t *bytes;

	KP_TRY(bundler_member_open(&file, &g->ar, number, src, path, why));
	err = kp_source_load(&file.src, UINT64_MAX, "a member", &bytes, why);
	m->name = kp_span_str(g->ar.items[number].name);
	m->bytes = kp_source_memory(bytes, (size_t)file.src.size);
	bundler_input_close(&file);
	return err;
}

static kpack_error_t gather_members(struct gathering *g, const struct kp_source *src,
				    const char *path, struct kpackx_error *why)
{
	struct kp_sink sink = {.write = append_bytes, .arg = g};
	kpack_error_t err = KPACK_SUCCESS;

	KP_TRY(kp_ar_read(src, &g->ar, why));
	g->members = xcalloc(g->ar.count, sizeof(*g->members));
	for (size_t i = 0; i < g->ar.count && !err; i++) {
		err = read_member(g, i, src, path, why);
		if (err)
			kp_fail_prefix(why, err, "%s", g->ar.items[i].name);
	}
	return err ? err : kp_ar_write(g->members, g->ar.count, &sink, why);
}

kpack_error_t thin_archive_gather(struct bundler_input *in, const char *path,
				  struct kpackx_error *why)
{
	struct gathering g = {0};
	kpack_error_t err;

	if (!is_thin(&in->src))
		return KPACK_SUCCESS;
	err = gather_members(&g, &in->src, path, why);
	for (size_t i = 0; g.members && i < g.ar.count; i++)
		free((void *)g.members[i].bytes.mem);
	free(g.members);
	kp_ar_fini(&g.ar);
	if (err) {
		free(g.data);
		return err;
	}
	bundler_input_close(in);
	in->heap = g.data;
	in->src = kp_source_memory(g.data, g.size);
	return KPACK_SUCCESS;
}
