/* SPDX-License-Identifier: MIT */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "core/target/target.h"
#include "core/base/text.h"
#include "core/archive/frames.h"
#include "core/archive/shared.h"
#include "packer/cli/xalloc.h"
#include "core/archive/toc.h"
#include "core/view/view.h"

#define HEADER_SIZE 16
#define BLOB_START 64

typedef unsigned long long ull;

struct check {
	struct kpack_archive *a;
	struct check_findings *out;
	struct kp_source file;
	uint8_t header[BLOB_START];
	uint64_t toc_offset;
	struct kp_toc toc;
	bool *used; /* per ordinal: whether an entry refers to it */
};

#define FAULT(c, ...) CHECK_FAULT((c)->out, __VA_ARGS__)
#define NOTE(c, ...) CHECK_NOTE((c)->out, __VA_ARGS__)

/* An escaped name for a message; long ones are cut. */
struct name {
	char text[512];
};

static const char *show_span(struct kp_span s, struct name *out)
{
	return kp_text_escape(s, out->text, sizeof(out->text));
}

/* --- header and layout ------------------------------------------------------------ */

static kpack_error_t read_header(struct check *c, struct kpackx_error *why)
{
	size_t n = c->file.size < BLOB_START ? (size_t)c->file.size : BLOB_START;

	KP_TRY(kp_source_read(&c->file, 0, c->header, n, why));
	c->toc_offset = kp_le64(c->header + 8);
	return KPACK_SUCCESS;
}

/* Begin and end of the blob region. */
static void blob_bounds(const struct kp_toc *toc, uint64_t *begin, uint64_t *end)
{
	if (toc->scheme == KP_COMPRESSION_ZSTD_SHARED) {
		*begin = toc->shared.offset;
		*end = toc->shared.offset + toc->shared.size;
		return;
	}
	if (toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		*begin = toc->zstd_offset;
		*end = toc->zstd_offset + toc->zstd_size;
		return;
	}
	*begin = UINT64_MAX;
	*end = 0;
	for (uint32_t i = 0; i < toc->n_blobs; i++) {
		const struct kp_toc_blob *b = &toc->blobs[i];

		if (b->offset < *begin)
			*begin = b->offset;
		if (b->offset + b->size > *end)
			*end = b->offset + b->size;
	}
}

static void check_padding(struct check *c, uint64_t begin)
{
	uint64_t end = c->toc_offset < begin ? c->toc_offset : begin;

	if (end < BLOB_START)
		NOTE(c, "header: padding ends at byte %llu, not at 64", (ull)end);
	for (uint64_t i = HEADER_SIZE; i < end && i < BLOB_START; i++) {
		if (c->header[i] == 0)
			continue;
		FAULT(c, "header: padding byte %llu is not zero", (ull)i);
		return;
	}
}

static void check_layout(struct check *c)
{
	uint64_t begin, end, toc_end = c->toc_offset + c->toc.used;

	blob_bounds(&c->toc, &begin, &end);
	check_padding(c, begin);
	if (begin < HEADER_SIZE)
		FAULT(c, "blob: begins at %llu, inside the header", (ull)begin);
	if (begin < toc_end && end > c->toc_offset)
		FAULT(c, "blob: [%llu, %llu) overlaps the table of contents at %llu",
		      (ull)begin, (ull)end, (ull)c->toc_offset);
	else if (end && end < c->toc_offset)
		NOTE(c, "%llu unused bytes between the blob and the table of contents",
		     (ull)(c->toc_offset - end));
	if (c->toc.used < c->toc.size)
		FAULT(c, "toc: %zu bytes follow it", c->toc.size - c->toc.used);
}

/* --- the TOC ---------------------------------------------------------------------- */

/* Read the TOC, check its raw bytes, then parse it, which changes the bytes. */
static kpack_error_t read_toc(struct check *c, struct kpackx_error *why)
{
	struct kp_source toc;
	uint8_t *bytes;

	if (c->toc_offset >= c->file.size ||
	    !kp_source_sub(&c->file, c->toc_offset, c->file.size - c->toc_offset, &toc))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "the file changed");
	KP_TRY(kp_source_load(&toc, KP_TOC_SIZE_MAX, "the table of contents", &bytes,
			      why));
	raw_check_toc((struct kp_span){bytes, (size_t)toc.size}, c->out);
	return kp_toc_parse(bytes, (size_t)toc.size, c->file.size, &c->toc, why);
}

/* --- fields ----------------------------------------------------------------------- */

static void check_fields(struct check *c)
{
	const struct kp_toc *toc = &c->toc;
	unsigned version = toc->scheme == KP_COMPRESSION_ZSTD_SHARED ? 2 : 1;
	const struct {
		const char *name;
		bool there;
	} needed[] = {
		{"group_name", toc->has_group},
		{"gfx_arch_family", toc->has_family},
		{"gfx_arches", toc->has_arches},
		{"toc", toc->has_toc},
	};

	for (size_t i = 0; i < KP_COUNT(needed); i++)
		if (!needed[i].there)
			FAULT(c, "toc: %s is missing", needed[i].name);
	if (toc->format_version == 0)
		NOTE(c, "toc: format_version is missing");
	else if (toc->format_version != version)
		FAULT(c, "toc: format_version is %llu, not %u", (ull)toc->format_version,
		      version);
	if (!toc->has_scheme)
		NOTE(c, "toc: compression_scheme is missing: readers assume none");
	if (toc->scheme == KPACK_COMPRESSION_NOOP && !toc->has_blobs && toc->n_entries)
		FAULT(c, "toc: blobs is missing: other readers find no bytes");
	if (toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL && !toc->frame_index.size)
		NOTE(c, "toc: no frame_index");
}

/* --- architectures ---------------------------------------------------------------- */

static bool is_declared_arch(const struct kp_toc *toc, struct kp_span arch)
{
	for (size_t i = 0; i < toc->n_arches; i++)
		if (kp_span_eq(toc->arches[i], arch))
			return true;
	return false;
}

static void check_arch(struct check *c, struct kp_span arch)
{
	char canonical[KP_TARGET_TEXT_MAX];
	struct kp_target t;
	struct name name;

	if (c->toc.has_arches && !is_declared_arch(&c->toc, arch))
		FAULT(c, "toc: gfx_arches: %s has entries, but is not listed",
		      show_span(arch, &name));
	if (kp_target_parse(arch, &t, NULL)) {
		NOTE(c, "toc: architecture %s is no target ID", show_span(arch, &name));
		return;
	}
	kp_target_format(&t, canonical);
	if (!kp_span_is(arch, canonical))
		NOTE(c, "toc: architecture %s: its canonical spelling is %s",
		     show_span(arch, &name), canonical);
}

static void check_declared(struct check *c, const bool *present)
{
	const struct kp_toc *toc = &c->toc;

	for (size_t i = 0; i < toc->n_arches; i++) {
		struct name name;
		bool found = false;

		for (size_t s = 0; s < toc->n_strings && !found; s++)
			found = present[s] && kp_span_eq(toc->strings[s], toc->arches[i]);
		if (!found)
			NOTE(c, "toc: gfx_arches: %s has no entries",
			     show_span(toc->arches[i], &name));
	}
}

static void check_arches(struct check *c)
{
	const struct kp_toc *toc = &c->toc;
	bool *present = calloc(toc->n_strings + 1, sizeof(*present));

	if (!present) {
		FAULT(c, "out of memory");
		return;
	}
	for (size_t i = 0; i < toc->n_entries; i++)
		present[toc->entries[i].arch] = true;
	for (size_t s = 0; s < toc->n_strings; s++)
		if (present[s])
			check_arch(c, toc->strings[s]);
	check_declared(c, present);
	free(present);
}

/* --- frames ---------------------------------------------------------------------- */

/* A walk of a zstd blob, and its counters. */
struct frames {
	struct check_findings *out;
	struct kp_span index; /* empty: no index */
	uint32_t count, sizeless, unchecked, foreign;
	uint32_t first_sizeless;
};

static void check_frame(struct frames *f, uint32_t number, struct kp_span head)
{
	struct kp_frame_header h;

	if (!kp_frame_header_read(head, &h)) {
		f->foreign++;
		return;
	}
	if ((h.skippable || h.content == KP_FRAME_SIZE_UNKNOWN) && f->sizeless++ == 0)
		f->first_sizeless = number;
	if (!h.checksum)
		f->unchecked++;
}

static void report_frames(const struct frames *f)
{
	if (f->sizeless)
		CHECK_FAULT(f->out,
			    "blob: %u frames do not state their content size (the first "
			    "is %u): the Python reader cannot decode them",
			    f->sizeless, f->first_sizeless);
	if (f->unchecked)
		CHECK_NOTE(f->out, "blob: %u of %u frames without a checksum",
			   f->unchecked, f->count);
	if (f->foreign)
		CHECK_FAULT(f->out, "blob: %u of %u frames are no zstd frames",
			    f->foreign, f->count);
}

static bool check_index(const struct frames *f, uint32_t frame, uint64_t at)
{
	uint64_t stated;

	if (!f->index.size)
		return true;
	if (f->index.size < 8 * ((size_t)frame + 1)) {
		CHECK_FAULT(f->out, "frame_index: ends before frame %u", frame);
		return false;
	}
	stated = kp_frame_at(f->index.data, frame);
	if (stated != at)
		CHECK_FAULT(f->out, "frame_index: %u is %llu, the blob says %llu", frame,
			    (ull)stated, (ull)at);
	return stated == at;
}

/* Walk the length words and headers of all frames; AT is the end of the last frame. */
static kpack_error_t walk_frames(struct frames *f, struct kp_window *w, uint64_t *at,
				 struct kpackx_error *why)
{
	bool index_ok = true;
	const uint8_t *p;

	KP_TRY(kp_window_get(w, 0, 4, &p, why));
	f->count = kp_le32(p);
	*at = 4;
	for (uint32_t i = 0; i < f->count; i++) {
		uint64_t left, size;

		index_ok = index_ok && check_index(f, i, *at);
		KP_TRY(kp_window_get(w, *at, 4, &p, why));
		size = kp_le32(p);
		left = w->src.size - *at - 4;
		if (size > left)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "frame %u: %llu bytes, %llu are left", i,
				       (ull)size, (ull)left);
		left = size < KP_FRAME_HEADER_MAX ? size : KP_FRAME_HEADER_MAX;
		KP_TRY(kp_window_get(w, *at + 4, (size_t)left, &p, why));
		check_frame(f, i, (struct kp_span){p, (size_t)left});
		*at += 4 + size;
	}
	if (index_ok)
		check_index(f, f->count, *at);
	return KPACK_SUCCESS;
}

static void check_frames(const struct kp_source *file, const struct kp_toc *toc,
			 struct check_findings *out)
{
	struct kpackx_error why = {0};
	struct kp_window *w;
	struct kp_source blob;
	struct frames f = {.out = out, .index = toc->frame_index};
	uint64_t end = 0;

	if (!kp_source_sub(file, toc->zstd_offset, toc->zstd_size, &blob)) {
		CHECK_FAULT(out, "blob: not inside the file");
		return;
	}
	w = xmalloc(sizeof(*w));
	kp_window_init(w, &blob);
	if (walk_frames(&f, w, &end, &why))
		CHECK_FAULT(out, "blob: %s", why.text);
	else if (end < blob.size)
		CHECK_NOTE(out, "blob: %llu bytes after the last frame",
			   (ull)(blob.size - end));
	report_frames(&f);
	free(w);
}

/* --- the blob --------------------------------------------------------------------- */

static void check_unused(struct check *c, const char *what, uint32_t count)
{
	uint32_t unused = 0, first = 0;

	for (uint32_t i = count; i-- > 0;) {
		if (c->used[i])
			continue;
		unused++;
		first = i;
	}
	if (unused)
		NOTE(c, "blob: no entry refers to %u of %u %s (the first is %u)", unused,
		     count, what, first);
}

/* Decoding entries does not show what is wrong in blocks that no entry needs. */
static void check_blocks(struct check *c)
{
	const struct kp_shared *s = kp_archive_shared(c->a);
	uint32_t n = s->n_frames - s->first_block, unused = 0, first = 0;
	bool *used = xcalloc((size_t)n + 1, sizeof(*used));

	for (uint32_t i = 0; i < s->n_objects; i++)
		if (c->used[i])
			kp_shared_mark_blocks(s, i, used);
	for (uint32_t i = n; i-- > 0;) {
		unused += !used[i];
		first = used[i] ? first : i;
	}
	free(used);
	if (unused)
		NOTE(c, "blob: no entry has bytes of %u of %u blocks (the first is %u)",
		     unused, n, first);
}

/*
 * Our readers take every dictionary for content; a reader that lets zstd decide does not.
 * A dictionary that cannot be decoded is a fault of each entry.
 */
static void check_dictionary(struct check *c)
{
	struct kpackx_error why = {0};
	bool trained;

	if (!kp_shared_is_trained(kp_archive_shared(c->a), &trained, &why) && trained)
		FAULT(c, "dictionary: begins with 37 a4 30 ec, as zstd's trained ones: "
			 "other readers may not take it for content");
}

/* Decoding need not read every stored byte of an object, nor objects that no entry has. */
static void check_pieces(struct check *c)
{
	for (uint32_t i = 0; i < kp_archive_ordinal_count(c->a); i++) {
		struct kpackx_error why = {0};

		if (kp_archive_check_stored(c->a, i, &why))
			FAULT(c, "blob: object %u: %s", i, why.text);
	}
}

static void check_blob(struct check *c)
{
	bool zstd = c->toc.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL;

	if (zstd) {
		check_frames(&c->file, &c->toc, c->out);
	} else if (kp_archive_shared(c->a)) {
		check_dictionary(c);
		check_blocks(c);
	}
	if (!kp_archive_shared(c->a))
		check_pieces(c);
	check_unused(c,
		     zstd                      ? "frames"
		     : kp_archive_shared(c->a) ? "objects"
					       : "blobs",
		     kp_archive_ordinal_count(c->a));
}

/* --- entries ---------------------------------------------------------------------- */

static const char *show_entry(const struct kp_entry_info *info, char out[1100])
{
	struct name key, arch;

	snprintf(out, 1100, "%s %s", show_span(info->key, &key),
		 show_span(info->arch, &arch));
	return out;
}

/* A file of a database may have several keys; one of them is its PATH. */
static void check_file_key(struct check *c, const struct kp_entry_info *info,
			   struct kp_span path, const char *entry)
{
	struct kp_entry_info named;
	struct name text;
	size_t index;

	if (kp_archive_find(c->a, path, info->arch, &index)) {
		kp_archive_entry(c->a, index, &named);
		if (named.ordinal == info->ordinal)
			return;
	}
	FAULT(c, "toc: %s: metadata.path is %s, which is no key of the same object",
	      entry, show_span(path, &text));
}

static void check_entries(struct check *c)
{
	size_t n = kp_archive_entry_count(c->a), hashless = 0, empty = 0;
	struct kp_entry_info info;
	struct kp_meta meta;
	struct kp_span raw, path;
	char text[1100];

	for (size_t i = 0; i < n; i++) {
		kp_archive_entry(c->a, i, &info);
		kp_archive_meta(c->a, i, &meta);
		c->used[info.ordinal] = true;
		hashless += !meta.has_xxh3;
		empty += info.size == 0;
		raw = kp_archive_meta_raw(c->a, i);
		if (raw.size == 0)
			continue;
		path = raw_check_meta(raw, info.type, show_entry(&info, text), c->out);
		if (path.data)
			check_file_key(c, &info, path, text);
	}
	if (hashless)
		NOTE(c, "toc: %zu of %zu entries without xxh3", hashless, n);
	if (empty)
		NOTE(c, "toc: %zu entries without bytes, which HRX refuses", empty);
	for (size_t i = 0; i < c->toc.n_entries; i++) {
		if (c->toc.entries[i].size != KP_TOC_NO_SIZE)
			continue;
		FAULT(c, "toc: %s: original_size is missing",
		      show_span(kp_toc_key(&c->toc, c->toc.entries[i].binary),
				&(struct name){0}));
	}
}

static void check_names(struct check *c)
{
	struct kpackx_error why = {0};
	struct kp_view *view = NULL;
	const char *const *texts;
	size_t kept, counted;

	if (kp_view_new(&c->a, 1, NULL, &view, &why)) {
		FAULT(c, "%s", why.text);
		return;
	}
	texts = kp_view_conflicts(view, &kept, &counted);
	for (size_t i = 0; i < kept; i++)
		FAULT(c, "%s", texts[i]);
	c->out->faults.counted += counted - kept;
	kp_view_free(view);
}

/* --- all of it -------------------------------------------------------------------- */

static void add_known_faults(struct check *c)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(c->a, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		FAULT(c, "%s", faults[i].text);
	c->out->faults.counted += counted - kept;
}

static kpack_error_t run_checks(struct check *c, struct kpackx_error *why)
{
	c->used = calloc((size_t)kp_archive_ordinal_count(c->a) + 1, sizeof(*c->used));
	if (!c->used)
		return kp_fail_memory(why, kp_archive_ordinal_count(c->a), "the check");
	KP_TRY(read_header(c, why));
	KP_TRY(read_toc(c, why));
	check_layout(c);
	check_fields(c);
	check_arches(c);
	check_entries(c);
	check_blob(c);
	check_names(c);
	return KPACK_SUCCESS;
}

void check_archive(struct kpack_archive *a, struct check_findings *out)
{
	struct check c = {.a = a, .out = out};
	struct kpackx_error why = {0};
	struct stat st;

	*out = (struct check_findings){0};
	add_known_faults(&c);
	/* not by its path, which may be another file's by now */
	if (kp_file_check(kp_archive_fd(a), &st, &why)) {
		FAULT(&c, "%s", why.text);
		return;
	}
	c.file = kp_source_fd(kp_archive_fd(a), 0, (uint64_t)st.st_size);
	if (run_checks(&c, &why))
		FAULT(&c, "%s", why.text);
	kp_toc_fini(&c.toc);
	free(c.used);
}

void check_fini(struct check_findings *findings)
{
	kp_faults_fini(&findings->faults);
	kp_faults_fini(&findings->notes);
}
