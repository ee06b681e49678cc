/* SPDX-License-Identifier: MIT */
#include "writer.h"
#include <msgpack.h>
#include <stdlib.h>
#include <unistd.h>
#include "entry_list.h"
#include "file.h"
#include "limits.h"
#include "memory.h"
#include "text.h"

enum { BLOB_OFFSET = 64, BUFFER = 1 << 20 };

struct kp_writer {
	struct kp_outfile file;
	kpack_compression_t scheme;
	char *group, *family;

	uint64_t *offsets; /* where each object's stored bytes begin in the file */
	uint64_t *sizes;
	uint32_t n_frames;
	size_t offsets_cap, sizes_cap;
	uint64_t end; /* where the next byte of the blob goes */

	struct kp_entry_list entries;

	/* bytes on their way to the file: [buffered_at, buffered_at + buffered) */
	uint8_t *buffer;
	size_t buffered;
	uint64_t buffered_at;
	kpack_error_t failed;     /* of the first write that did */
	struct kpackx_error *why; /* for msgpack's callback */
	bool finished;
};

/* --- writing through a buffer ------------------------------------------------------- */

static kpack_error_t flush(struct kp_writer *w, struct kpackx_error *why)
{
	if (w->buffered)
		KP_TRY(kp_outfile_pwrite(&w->file, w->buffered_at, w->buffer, w->buffered,
					 why));
	w->buffered_at += w->buffered;
	w->buffered = 0;
	return KPACK_SUCCESS;
}

static kpack_error_t append_bytes(struct kp_writer *w, const void *data, size_t size,
				  struct kpackx_error *why)
{
	if (size > BUFFER - w->buffered)
		KP_TRY(flush(w, why));
	if (size > BUFFER) {
		KP_TRY(kp_outfile_pwrite(&w->file, w->end, data, size, why));
		w->buffered_at += size;
	} else if (size) {
		memcpy(w->buffer + w->buffered, data, size);
		w->buffered += size;
	}
	w->end += size;
	return KPACK_SUCCESS;
}

/* Append to the file; END moves on.  After a failure bytes are missing: nothing else works. */
static kpack_error_t append(struct kp_writer *w, const void *data, size_t size,
			    struct kpackx_error *why)
{
	if (w->failed)
		return kp_fail(why, w->failed, "archive: an earlier write failed");
	w->failed = append_bytes(w, data, size, why);
	return w->failed;
}

/* --- opening ------------------------------------------------------------------------ */

static kpack_error_t begin(struct kp_writer *w, const char *dir, const char *name,
			   const struct kp_writer_options *options,
			   struct kpackx_error *why)
{
	static const uint8_t zeros[BLOB_OFFSET + 4];

	w->scheme = options->scheme;
	w->group = strdup(options->group);
	w->family = options->family ? strdup(options->family) : NULL;
	w->buffer = malloc(BUFFER);
	if (!w->group || (options->family && !w->family) || !w->buffer)
		return kp_fail_memory(why, BUFFER, "an archive");
	KP_TRY(kp_outfile_open(&w->file, dir, name, 0666, why));
	return append(w, zeros,
		      w->scheme == KPACK_COMPRESSION_NOOP ? BLOB_OFFSET : BLOB_OFFSET + 4,
		      why);
}

kpack_error_t kp_writer_open(const char *dir, const char *name,
			     const struct kp_writer_options *options,
			     struct kp_writer **out, struct kpackx_error *why)
{
	struct kp_writer *w = calloc(1, sizeof(*w));
	kpack_error_t err;

	if (!w)
		return kp_fail_memory(why, sizeof(*w), "an archive");
	w->file.fd = w->file.dir_fd = -1;
	err = begin(w, dir, name, options, why);
	if (err)
		kp_writer_close(w);
	else
		*out = w;
	return err;
}

void kp_writer_close(struct kp_writer *w)
{
	if (!w)
		return;
	kp_outfile_close(&w->file);
	kp_entry_list_fini(&w->entries);
	free(w->offsets);
	free(w->sizes);
	free(w->buffer);
	free(w->group);
	free(w->family);
	free(w);
}

/* --- objects ------------------------------------------------------------------------ */

uint64_t kp_writer_blob_size(const struct kp_writer *w)
{
	return w->end - BLOB_OFFSET;
}

uint32_t kp_writer_frame_count(const struct kp_writer *w)
{
	return w->n_frames;
}

size_t kp_writer_entry_count(const struct kp_writer *w)
{
	return w->entries.n;
}

static kpack_error_t check_room(const struct kp_writer *w, size_t size,
				struct kpackx_error *why)
{
	if (w->scheme == KPACK_COMPRESSION_NOOP)
		return w->n_frames < UINT32_MAX
			       ? KPACK_SUCCESS
			       : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					 "archive: more than %u objects", UINT32_MAX);
	if (w->n_frames == KP_FRAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: more than %u frames", KP_FRAMES_MAX);
	if (size > UINT32_MAX || kp_writer_blob_size(w) + 4 + size > KP_ZSTD_BLOB_MAX)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"archive: blob of %llu bytes would pass 4 GiB with %zu more",
			(unsigned long long)kp_writer_blob_size(w), size);
	return KPACK_SUCCESS;
}

static kpack_error_t grow_frames(struct kp_writer *w, struct kpackx_error *why)
{
	if (!kp_grow(&w->offsets, w->n_frames, &w->offsets_cap, sizeof(*w->offsets)) ||
	    !kp_grow(&w->sizes, w->n_frames, &w->sizes_cap, sizeof(*w->sizes)))
		return kp_fail_memory(why, 16 * (uint64_t)w->n_frames, "frame offsets");
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_add_stored(struct kp_writer *w, struct kp_span stored,
				   uint32_t *ordinal, struct kpackx_error *why)
{
	uint8_t word[4];

	KP_TRY(check_room(w, stored.size, why));
	KP_TRY(grow_frames(w, why));
	if (w->scheme != KPACK_COMPRESSION_NOOP) {
		kp_put_le32(word, (uint32_t)stored.size);
		KP_TRY(append(w, word, sizeof(word), why));
	}
	w->offsets[w->n_frames] = w->end;
	w->sizes[w->n_frames] = stored.size;
	KP_TRY(append(w, stored.data, stored.size, why));
	*ordinal = w->n_frames++;
	return KPACK_SUCCESS;
}

uint64_t kp_writer_stored_size(const struct kp_writer *w, uint32_t ordinal)
{
	return w->sizes[ordinal];
}

kpack_error_t kp_writer_read_stored(struct kp_writer *w, uint32_t ordinal, void *buf,
				    struct kpackx_error *why)
{
	KP_TRY(flush(w, why));
	return kp_file_pread(w->file.fd, w->offsets[ordinal], buf,
			     (size_t)w->sizes[ordinal], why);
}

/* --- entries ------------------------------------------------------------------------ */

static bool name_ok(struct kp_span s)
{
	return s.size && s.size <= KP_NAME_MAX && kp_text_ok(s);
}

kpack_error_t kp_writer_check_entry(const struct kp_writer *w, struct kp_span key,
				    struct kp_span arch,
				    const struct kp_writer_entry *entry,
				    struct kpackx_error *why)
{
	/* besides the entries: a row of the blobs for each, the texts in front */
	uint64_t size = w->entries.bytes + 64 * ((uint64_t)w->n_frames + 1) +
			kp_entry_list_bytes(key, arch, entry) + 4 * KP_NAME_MAX;

	KP_TRY(kp_entry_list_check(&w->entries, key, arch, entry, why));
	if (size > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the table of contents would pass %llu bytes",
			       (unsigned long long)KP_TOC_SIZE_MAX);
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_add_entry(struct kp_writer *w, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why)
{
	char text[160];

	if (!name_ok(key) || !name_ok(arch) || !name_ok(entry->type))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %s: key, architecture or type is not UTF-8 without "
			       "control bytes, or empty, or longer than %d bytes",
			       kp_text_escape(key, text, sizeof(text)), KP_NAME_MAX);
	if (entry->ordinal >= w->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %s: ordinal %u of %u",
			       kp_text_escape(key, text, sizeof(text)), entry->ordinal,
			       w->n_frames);
	return kp_entry_list_add(&w->entries, key, arch, entry, why);
}

/* --- table of contents --------------------------------------------------------------- */

static int pack_bytes(void *data, const char *bytes, size_t size)
{
	struct kp_writer *w = data;

	if (!w->failed)
		append(w, bytes, size, w->why);
	return w->failed ? -1 : 0;
}

static void pack_text(msgpack_packer *pk, const char *text)
{
	size_t n = strlen(text);

	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, text, n);
}

static void pack_entry(msgpack_packer *pk, const struct kp_listed *e)
{
	msgpack_pack_map(pk, e->metadata_size ? 4 : 3);
	pack_text(pk, "type");
	pack_text(pk, e->type);
	pack_text(pk, "ordinal");
	msgpack_pack_uint32(pk, e->ordinal);
	pack_text(pk, "original_size");
	msgpack_pack_uint64(pk, e->size);
	if (!e->metadata_size)
		return;
	pack_text(pk, "metadata");
	pk->callback(pk->data, (const char *)e->metadata, e->metadata_size);
}

/* Entries from I on that have the same key. */
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
	msgpack_pack_uint64(pk, BLOB_OFFSET);
	pack_text(pk, "zstd_size");
	msgpack_pack_uint64(pk, blob_size);
	pack_text(pk, "frame_index");
	msgpack_pack_bin(pk, 8 * ((size_t)w->n_frames + 1));
	for (uint32_t i = 0; i < w->n_frames; i++) {
		kp_put_le64(word, w->offsets[i] - 4 - BLOB_OFFSET);
		msgpack_pack_bin_body(pk, word, sizeof(word));
	}
	kp_put_le64(word, blob_size);
	msgpack_pack_bin_body(pk, word, sizeof(word));
}

static kpack_error_t write_toc(struct kp_writer *w, struct kpackx_error *why)
{
	uint64_t blob_size = kp_writer_blob_size(w);
	bool none = w->scheme == KPACK_COMPRESSION_NOOP;
	msgpack_packer pk;

	w->why = why;
	msgpack_packer_init(&pk, w, pack_bytes);
	msgpack_pack_map(&pk, none ? 7 : 9);
	pack_text(&pk, "format_version");
	msgpack_pack_int(&pk, 1);
	KP_TRY(pack_names(&pk, w, why));
	if (none)
		pack_blobs(&pk, w);
	else
		pack_frames(&pk, w, blob_size);
	pack_toc(&pk, w); /* last: a reader need not step over it */
	return w->failed;
}

static kpack_error_t write_header(struct kp_writer *w, uint64_t toc_offset,
				  struct kpackx_error *why)
{
	uint8_t header[16] = "KPAK", word[4];

	kp_put_le32(header + 4, 1);
	kp_put_le64(header + 8, toc_offset);
	KP_TRY(kp_outfile_pwrite(&w->file, 0, header, sizeof(header), why));
	if (w->scheme == KPACK_COMPRESSION_NOOP)
		return KPACK_SUCCESS;
	kp_put_le32(word, w->n_frames);
	return kp_outfile_pwrite(&w->file, BLOB_OFFSET, word, sizeof(word), why);
}

static kpack_error_t write_end(struct kp_writer *w, struct kpackx_error *why)
{
	uint64_t toc_offset = w->end;

	KP_TRY(write_toc(w, why));
	if (w->end - toc_offset > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: table of contents of %llu bytes, limit %llu",
			       (unsigned long long)(w->end - toc_offset),
			       (unsigned long long)KP_TOC_SIZE_MAX);
	KP_TRY(flush(w, why));
	KP_TRY(write_header(w, toc_offset, why));
	return kp_outfile_sync(&w->file, why);
}

kpack_error_t kp_writer_finish(struct kp_writer *w, struct kpackx_error *why)
{
	if (w->finished)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: finished already");
	KP_TRY(append(w, NULL, 0, why)); /* did all writes before succeed? */
	kp_entry_list_sort(&w->entries);
	w->failed = write_end(w, why);
	w->finished = !w->failed;
	return w->failed;
}

kpack_error_t kp_writer_publish(struct kp_writer *w, struct kpackx_error *why)
{
	if (!w->finished)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: not finished");
	return kp_outfile_publish(&w->file, why);
}
