/* SPDX-License-Identifier: MIT */
#include "writer.h"
#include <msgpack.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>
#include "file.h"
#include "limits.h"
#include "memory.h"
#include "string_table.h"
#include "text.h"

enum { BLOB_OFFSET = 64, BUFFER = 1 << 20 };

struct entry {
	char *key;               /* key, NUL, metadata: one allocation */
	const char *arch, *type; /* of the strings */
	const uint8_t *metadata;
	size_t metadata_size;
	uint64_t size;
	uint32_t ordinal;
	uint32_t hash; /* of key and arch */
};

struct kp_writer {
	struct kp_outfile file;
	kpack_compression_t scheme;
	char *group, *family;

	uint64_t *offsets; /* where each object's stored bytes begin in the file */
	uint64_t *sizes;
	uint32_t n_frames;
	size_t offsets_cap, sizes_cap;
	uint64_t end; /* where the next byte of the blob goes */

	struct entry *entries;
	size_t n_entries, entries_cap;
	uint32_t *slots; /* by hash of key and arch: entry + 1; 0 is free */
	size_t n_slots;
	uint64_t entry_bytes; /* most that the entries can take in the table */

	struct kp_string_table strings; /* architectures and types, owned */
	struct kp_string_chain arch_chain, type_chain;

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
	for (size_t i = 0; i < w->n_entries; i++)
		free(w->entries[i].key);
	for (size_t i = 0; i < w->strings.n; i++)
		free((void *)w->strings.texts[i].data);
	kp_string_table_fini(&w->strings);
	free(w->entries);
	free(w->slots);
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
	return w->n_entries;
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

/* --- architectures and types ---------------------------------------------------------- */

static char *copy_text(struct kp_span s)
{
	char *copy = malloc(s.size + 1);

	if (copy) {
		memcpy(copy, s.data, s.size);
		copy[s.size] = 0;
	}
	return copy;
}

/* The writer's own copy of TEXT: there are few different ones. */
static kpack_error_t intern(struct kp_writer *w, struct kp_string_chain *chain,
			    struct kp_span text, const char **out,
			    struct kpackx_error *why)
{
	struct kp_string_table *t = &w->strings;
	size_t known = t->n;
	uint16_t number;
	char *copy;

	switch (kp_string_next(t, chain, text, &number)) {
	case KP_STRINGS_FULL:
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: more than %d architectures and types",
			       KP_STRINGS_MAX);
	case KP_STRINGS_NO_MEMORY:
		return kp_fail_memory(why, text.size, "a name");
	case KP_STRINGS_OK:
		break;
	}
	if (t->n > known) { /* until now it was the caller's */
		copy = copy_text(text);
		t->texts[number] =
			(struct kp_span){(uint8_t *)copy, copy ? text.size : 0};
		if (!copy)
			return kp_fail_memory(why, text.size, "a name");
	}
	*out = (const char *)t->texts[number].data;
	return KPACK_SUCCESS;
}

/* --- entries by name ------------------------------------------------------------------ */

static uint32_t hash_name(struct kp_span key, struct kp_span arch)
{
	XXH64_hash_t seed = XXH3_64bits(key.data, key.size);

	return (uint32_t)XXH3_64bits_withSeed(arch.data, arch.size, seed);
}

/* The slot of KEY and ARCH, or the free one where they would go; slots are there. */
static uint32_t *find_slot(const struct kp_writer *w, uint32_t hash, struct kp_span key,
			   struct kp_span arch)
{
	size_t at = hash & (w->n_slots - 1);

	for (; w->slots[at]; at = (at + 1) & (w->n_slots - 1)) {
		const struct entry *e = &w->entries[w->slots[at] - 1];

		if (e->hash == hash && kp_span_is(key, e->key) &&
		    kp_span_is(arch, e->arch))
			break;
	}
	return &w->slots[at];
}

/* Room for one more entry, in the list and among the slots. */
static kpack_error_t grow_entries(struct kp_writer *w, struct kpackx_error *why)
{
	size_t n = w->n_slots ? 2 * w->n_slots : 256, at;
	uint32_t *slots;

	if (!kp_grow(&w->entries, w->n_entries, &w->entries_cap, sizeof(*w->entries)))
		return kp_fail_memory(why, w->n_entries * sizeof(*w->entries), "entries");
	if (2 * w->n_entries < w->n_slots)
		return KPACK_SUCCESS;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return kp_fail_memory(why, n * sizeof(*slots), "entries");
	for (size_t i = 0; i < w->n_entries; i++) {
		at = w->entries[i].hash & (n - 1);
		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(w->slots);
	w->slots = slots;
	w->n_slots = n;
	return KPACK_SUCCESS;
}

/* --- entries ------------------------------------------------------------------------ */

static bool name_ok(struct kp_span s)
{
	return s.size && s.size <= KP_NAME_MAX && kp_text_ok(s);
}

/* Most bytes of an entry in the table: names, numbers and MessagePack's heads. */
static uint64_t entry_bytes(struct kp_span key, struct kp_span arch,
			    const struct kp_writer_entry *entry)
{
	return 64 + key.size + 2 * arch.size + entry->type.size + entry->metadata.size;
}

/* Would ARCH and TYPE be more different strings than readers accept? */
static bool strings_full(const struct kp_string_table *t, struct kp_span arch,
			 struct kp_span type)
{
	size_t added = !kp_string_known(t, arch) +
		       (!kp_string_known(t, type) && !kp_span_eq(arch, type));

	return t->n + added > KP_STRINGS_MAX;
}

kpack_error_t kp_writer_check_entry(const struct kp_writer *w, struct kp_span key,
				    struct kp_span arch,
				    const struct kp_writer_entry *entry,
				    struct kpackx_error *why)
{
	/* besides the entries: a row of the blobs for each, the texts in front */
	uint64_t size = w->entry_bytes + 64 * ((uint64_t)w->n_frames + 1) +
			entry_bytes(key, arch, entry) + 4 * KP_NAME_MAX;

	if (w->n_slots && *find_slot(w, hash_name(key, arch), key, arch))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "was added before");
	if (strings_full(&w->strings, arch, entry->type))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %d architectures and types", KP_STRINGS_MAX);
	if (size > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the table of contents would pass %llu bytes",
			       (unsigned long long)KP_TOC_SIZE_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t fill_entry(struct kp_writer *w, struct entry *e, struct kp_span key,
				struct kp_span arch, const struct kp_writer_entry *from,
				struct kpackx_error *why)
{
	uint8_t *metadata;

	*e = (struct entry){
		.metadata_size = from->metadata.size,
		.size = from->size,
		.ordinal = from->ordinal,
		.hash = hash_name(key, arch),
	};
	KP_TRY(intern(w, &w->arch_chain, arch, &e->arch, why));
	KP_TRY(intern(w, &w->type_chain, from->type, &e->type, why));
	e->key = malloc(key.size + 1 + from->metadata.size);
	if (!e->key)
		return kp_fail_memory(why, key.size + from->metadata.size, "an entry");
	memcpy(e->key, key.data, key.size);
	e->key[key.size] = 0;
	metadata = (uint8_t *)e->key + key.size + 1;
	if (from->metadata.size)
		memcpy(metadata, from->metadata.data, from->metadata.size);
	e->metadata = metadata;
	return KPACK_SUCCESS;
}

/* Append E, or let it replace the one of its name that has the same object. */
static kpack_error_t place_entry(struct kp_writer *w, const struct entry *e,
				 struct kpackx_error *why)
{
	uint32_t *slot = find_slot(w, e->hash, kp_span_str(e->key), kp_span_str(e->arch));
	struct entry *there = *slot ? &w->entries[*slot - 1] : NULL;

	if (there && there->ordinal != e->ordinal)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %.150s %.40s: added twice with different bytes",
			       e->key, e->arch);
	if (there) {
		free(there->key);
		*there = *e;
		return KPACK_SUCCESS;
	}
	w->entries[w->n_entries++] = *e;
	*slot = (uint32_t)w->n_entries;
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_add_entry(struct kp_writer *w, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why)
{
	kpack_error_t err;
	struct entry e;
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
	KP_TRY(grow_entries(w, why));
	KP_TRY(fill_entry(w, &e, key, arch, entry, why));
	err = place_entry(w, &e, why);
	if (err)
		free(e.key);
	else
		w->entry_bytes += entry_bytes(key, arch, entry);
	return err;
}

/* strcmp orders bytes as unsigned: keys have no NUL. */
static int cmp_entry(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : strcmp(x->arch, y->arch);
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

static void pack_entry(msgpack_packer *pk, const struct entry *e)
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

	while (i + n < w->n_entries &&
	       strcmp(w->entries[i].key, w->entries[i + n].key) == 0)
		n++;
	return n;
}

static void pack_toc(msgpack_packer *pk, const struct kp_writer *w)
{
	size_t keys = 0;

	for (size_t i = 0; i < w->n_entries; i += run_of_key(w, i))
		keys++;
	pack_text(pk, "toc");
	msgpack_pack_map(pk, keys);
	for (size_t i = 0; i < w->n_entries;) {
		size_t n = run_of_key(w, i);

		pack_text(pk, w->entries[i].key);
		msgpack_pack_map(pk, n);
		for (; n; n--, i++) {
			pack_text(pk, w->entries[i].arch);
			pack_entry(pk, &w->entries[i]);
		}
	}
}

static int cmp_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The architectures that are there, each once, sorted; the caller frees the list. */
static kpack_error_t list_arches(const struct kp_writer *w, const char ***out,
				 size_t *count, struct kpackx_error *why)
{
	const char **arches = malloc((w->n_entries + 1) * sizeof(*arches));
	size_t n = 0;

	if (!arches)
		return kp_fail_memory(why, w->n_entries * sizeof(*arches),
				      "architectures");
	for (size_t i = 0; i < w->n_entries; i++)
		arches[i] = w->entries[i].arch;
	qsort(arches, w->n_entries, sizeof(*arches), cmp_text);
	for (size_t i = 0; i < w->n_entries; i++)
		if (n == 0 || strcmp(arches[n - 1], arches[i]) != 0)
			arches[n++] = arches[i];
	*out = arches;
	*count = n;
	return KPACK_SUCCESS;
}

static kpack_error_t pack_names(msgpack_packer *pk, const struct kp_writer *w,
				struct kpackx_error *why)
{
	const char **arches = NULL, *family = w->family;
	size_t n = 0;

	KP_TRY(list_arches(w, &arches, &n, why));
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
	if (w->n_entries)
		qsort(w->entries, w->n_entries, sizeof(*w->entries), cmp_entry);
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
