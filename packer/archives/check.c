/* SPDX-License-Identifier: MIT */
/*
 * kpack verify without --content: an archive that is open, and so could be parsed, is looked at once
 * more, for what our reader tolerates and other readers do not.
 *
 *	[0, 16)		header: magic, version, the offset of the table of contents
 *	[16, 64)	padding, zeros
 *	[64, ...)	the blob: frames, blocks or plain bytes
 *	... end		the table of contents, MessagePack
 *
 * The order is that of check_archive: the raw bytes of the table, before the parser, which writes into
 * them, and for what it does not keep (keys that nobody knows, their order, strings that nobody
 * uses); where header, blob and table lie; fields and architectures; entries and their metadata; the
 * frames or blocks of the blob; and the names that a mount would show.
 *
 * A fault is what some reader refuses or reads wrongly, or what contradicts the archive itself; a
 * note is what is merely unusual, and does not change the exit status.  An unknown key alone is
 * neither, because later versions of the format may add keys; but one that differs by one bit from
 * a missing one is a flipped bit, which no hash of an older archive would show.
 */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/entry.h"
#include "core/archive/frames.h"
#include "core/archive/shared.h"
#include "core/archive/toc.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "core/view/view.h"
#include "packer/cli/xalloc.h"

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
	/* of the raw table; each kind of finding is reported once */
	bool foreign_key, disorder;
};

/* Add a fault or a note, formatted as by printf. */
#define FAULT(c, ...) kp_faults_add(&(c)->out->faults, false, __VA_ARGS__)
#define NOTE(c, ...) kp_faults_add(&(c)->out->notes, false, __VA_ARGS__)

/* An escaped name for a message; long ones are cut. */
struct name {
	char text[512];
};

static const char *show_span(struct kp_span s, struct name *out)
{
	return kp_text_escape(s, out->text, sizeof(out->text));
}

/* --- the raw table: keys, their order, strings ---------------------------------------- */

enum meta_rule { META_TEXT, META_HASH, META_MODE, META_NUMBER };

/* The keys that a map may have. */
struct known_key {
	const char *name;
	enum meta_rule rule; /* of metadata */
};

static const struct known_key top_keys[] = {{.name = "format_version"},
					    {.name = "group_name"},
					    {.name = "gfx_arch_family"},
					    {.name = "gfx_arches"},
					    {.name = "compression_scheme"},
					    {.name = "toc"},
					    {.name = "blobs"},
					    {.name = "zstd_offset"},
					    {.name = "zstd_size"},
					    {.name = "frame_index"},
					    {.name = "piece_hashes"},
					    {.name = "table_hash"},
					    {0}};
static const struct known_key entry_keys[] = {{.name = "type"},
					      {.name = "ordinal"},
					      {.name = "original_size"},
					      {.name = "metadata"},
					      {0}};
static const struct known_key meta_keys[] = {
	{"path", META_TEXT},    {"target", META_TEXT},
	{"xxh3", META_HASH},    {"mode", META_MODE},
	{"chunk", META_NUMBER}, {"library", META_TEXT},
	{"role", META_TEXT},    {0}};

bool check_is_flipped(struct kp_span text, const char *known)
{
	int bits = 0;

	if (text.size != strlen(known))
		return false;
	for (size_t i = 0; i < text.size; i++)
		bits += __builtin_popcount(text.data[i] ^ (unsigned char)known[i]);
	return bits == 1;
}

/*
 * Step to the next key of M that is text, with its value next, of the *PAIRS that are left.
 * REPORT, unless it is NULL, gets a fault for keys that are no text.
 */
static bool next_text_key(struct check *report, struct kp_mp *m, uint32_t *pairs,
			  struct kp_span *key)
{
	for (; *pairs && !m->fault; --*pairs) {
		if (kp_mp_peek(m) == KP_MP_STR) {
			if (!kp_mp_str(m, key))
				break;
			--*pairs;
			return true;
		}
		if (report && !report->foreign_key) {
			FAULT(report, "toc: a key of a map is not a string");
			report->foreign_key = true;
		}
		kp_mp_skip(m);
		kp_mp_skip(m);
	}
	return false;
}

/*
 * Readers ignore keys that they do not know.  One that differs by a bit from a key that the
 * map lacks is a damaged one.  PLACE is where the map is, for messages.
 */
static void check_keys(struct check *c, struct kp_mp map, const struct known_key *known,
		       const char *place)
{
	struct kp_span key;
	uint32_t pairs = 0;
	unsigned found = 0; /* a bit for each of KNOWN */
	struct name text;

	if (kp_mp_peek(&map) != KP_MP_MAP)
		return;
	for (int pass = 0; pass < 2; pass++) {
		struct kp_mp m = map;

		kp_mp_map(&m, &pairs);
		for (; next_text_key(NULL, &m, &pairs, &key); kp_mp_skip(&m))
			for (size_t i = 0; known[i].name; i++) {
				if (pass == 0 && kp_span_is(key, known[i].name))
					found |= 1u << i;
				if (pass == 0 || found >> i & 1 ||
				    !check_is_flipped(key, known[i].name))
					continue;
				FAULT(c,
				      "toc: %s%s is missing, and the unknown key %s "
				      "differs from it by one bit",
				      place, known[i].name, show_span(key, &text));
			}
	}
}

/* Walk a map of LEVELS levels of names: binaries, then architectures. */
static void walk_names(struct check *c, struct kp_mp *m, int levels)
{
	struct kp_span key, last = {0};
	struct name a, b;
	uint32_t pairs;

	if (levels == 0)
		check_keys(c, *m, entry_keys, "an entry's ");
	if (levels == 0 || kp_mp_peek(m) != KP_MP_MAP) {
		kp_mp_skip(m);
		return;
	}
	kp_mp_map(m, &pairs);
	while (next_text_key(c, m, &pairs, &key)) {
		if (last.data && !c->disorder && kp_span_cmp(last, key) > 0) {
			NOTE(c, "toc: not in bytewise order: %s after %s",
			     show_span(key, &a), show_span(last, &b));
			c->disorder = true;
		}
		last = key;
		walk_names(c, m, levels - 1);
	}
}

/* Check BYTES, the whole table, before they are parsed, which changes them. */
static void check_raw_toc(struct check *c, struct kp_span bytes)
{
	struct kp_mp m = kp_mp_over(bytes);
	struct kp_mp_value v;
	struct kp_span key;
	uint32_t pairs = 0, point;
	struct name text;

	/* AMD's Python reader decodes every string of the table, used or not */
	while (m.pos != m.end && kp_mp_next(&m, &v)) {
		struct kp_span rest = v.type == KP_MP_STR ? v.span : (struct kp_span){0};
		size_t n = 1;

		while (rest.size && (n = kp_text_char(rest, &point)))
			rest = kp_span_tail(rest, n);
		if (n)
			continue;
		FAULT(c, "toc: offset %zu: a string that is not UTF-8: %s",
		      (size_t)(v.span.data - m.start), show_span(v.span, &text));
		break;
	}
	m = kp_mp_over(bytes);
	check_keys(c, m, top_keys, "");
	kp_mp_map(&m, &pairs);
	while (next_text_key(c, &m, &pairs, &key))
		if (kp_span_is(key, "toc"))
			walk_names(c, &m, 2);
		else
			kp_mp_skip(&m);
}

/* --- layout and fields ------------------------------------------------------------------ */

/* Where padding, blob and table lie: with no gap, no overlap, and nothing behind them. */
static void check_layout(struct check *c)
{
	const struct kp_toc *toc = &c->toc;
	uint64_t begin = UINT64_MAX, end = 0, toc_end = c->toc_offset + toc->used, padded;

	if (toc->scheme == KP_COMPRESSION_ZSTD_SHARED) {
		begin = toc->shared.offset;
		end = toc->shared.offset + toc->shared.size;
	} else if (toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		begin = toc->zstd_offset;
		end = toc->zstd_offset + toc->zstd_size;
	}
	for (uint32_t i = 0; i < toc->n_blobs && toc->scheme == KPACK_COMPRESSION_NOOP;
	     i++) {
		const struct kp_toc_blob *b = &toc->blobs[i];

		begin = b->offset < begin ? b->offset : begin;
		end = b->offset + b->size > end ? b->offset + b->size : end;
	}
	padded = c->toc_offset < begin ? c->toc_offset : begin;
	if (padded < BLOB_START)
		NOTE(c, "header: padding ends at byte %llu, not at 64", (ull)padded);
	for (uint64_t i = HEADER_SIZE; i < padded && i < BLOB_START; i++) {
		if (c->header[i] == 0)
			continue;
		FAULT(c, "header: padding byte %llu is not zero", (ull)i);
		break;
	}
	if (begin < HEADER_SIZE)
		FAULT(c, "blob: begins at %llu, inside the header", (ull)begin);
	if (begin < toc_end && end > c->toc_offset)
		FAULT(c, "blob: [%llu, %llu) overlaps the table of contents at %llu",
		      (ull)begin, (ull)end, (ull)c->toc_offset);
	else if (end && end < c->toc_offset)
		NOTE(c, "%llu unused bytes between the blob and the table of contents",
		     (ull)(c->toc_offset - end));
	if (toc->used < toc->size)
		FAULT(c, "toc: %zu bytes follow it", toc->size - toc->used);
}

/*
 * Fields of the table that our reader does without, but AMD's readers do not; and whether the
 * architectures that entries have are those that are listed, in their canonical spelling.
 */
static void check_fields(struct check *c)
{
	const struct kp_toc *toc = &c->toc;
	KP_AUTO_FREE bool *present = calloc(toc->n_strings + 1, sizeof(*present));
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
	char canonical[KP_TARGET_TEXT_MAX];
	struct kp_target t;
	struct name name;

	if (!present) {
		FAULT(c, "out of memory");
		return;
	}
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
	if (toc->copied_hashes)
		NOTE(c, "toc: its hashes are of another archive: a program that does not "
			"know them copied them; kpack merge writes new ones");
	else if (toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
		 !toc->frame_index.size)
		NOTE(c, "toc: no frame_index");
	/* an architecture is a string of the table, which binaries may have, too */
	for (size_t i = 0; i < toc->n_entries; i++)
		present[toc->entries[i].arch] = true;
	for (size_t s = 0; s < toc->n_strings; s++) {
		struct kp_span arch = toc->strings[s];
		bool listed = !toc->has_arches;

		if (!present[s])
			continue;
		for (size_t i = 0; i < toc->n_arches; i++)
			listed |= kp_span_eq(toc->arches[i], arch);
		if (!listed)
			FAULT(c, "toc: gfx_arches: %s has entries, but is not listed",
			      show_span(arch, &name));
		if (kp_target_parse(arch, &t, NULL)) {
			NOTE(c, "toc: architecture %s is no target ID",
			     show_span(arch, &name));
			continue;
		}
		kp_target_format(&t, canonical);
		if (!kp_span_is(arch, canonical))
			NOTE(c, "toc: architecture %s: its canonical spelling is %s",
			     show_span(arch, &name), canonical);
	}
	for (size_t i = 0; i < toc->n_arches; i++) {
		bool found = false;

		for (size_t s = 0; s < toc->n_strings && !found; s++)
			found = present[s] && kp_span_eq(toc->strings[s], toc->arches[i]);
		if (!found)
			NOTE(c, "toc: gfx_arches: %s has no entries",
			     show_span(toc->arches[i], &name));
	}
}

/* --- entries ------------------------------------------------------------------------------ */

/* Check the metadata BYTES of an entry that messages call ENTRY. */
static void check_meta(struct check *c, const struct kp_entry_info *info,
		       struct kp_span bytes, const char *entry)
{
	struct kp_mp m = kp_mp_over(bytes);
	struct kp_span key, path = {0}, library = {0}, type = info->type;
	struct kp_entry_info named;
	char place[1200];
	struct name text;
	uint32_t pairs;
	size_t index;
	bool typed;

	if (m.pos == m.end || !kp_mp_map(&m, &pairs))
		return;
	snprintf(place, sizeof(place), "%s: metadata.", entry);
	check_keys(c, kp_mp_over(bytes), meta_keys, place);
	for (; pairs; pairs--) {
		const struct known_key *known = meta_keys;
		struct kp_mp_value v;
		const char *fault = NULL;
		struct kp_mp at;

		if (kp_mp_peek(&m) != KP_MP_STR) {
			FAULT(c, "toc: %s: metadata: a key is not a string", entry);
			return;
		}
		kp_mp_str(&m, &key);
		at = m;
		if (!kp_mp_skip(&m))
			return;
		while (known->name && !kp_span_is(key, known->name))
			known++;
		if (!known->name || !kp_mp_next(&at, &v))
			continue;
		if (known->rule == META_TEXT && v.type != KP_MP_STR)
			fault = "is not a string";
		if (known->rule == META_HASH &&
		    (v.type != KP_MP_BIN || v.span.size != 16))
			fault = "is not 16 bytes";
		if (known->rule == META_MODE && (v.type != KP_MP_UINT || v.num > 07777))
			fault = "is no number of permission bits";
		if (known->rule == META_NUMBER && v.type != KP_MP_UINT)
			fault = "is no number";
		if (fault)
			FAULT(c, "toc: %s: metadata.%s %s", entry, known->name, fault);
		else if (kp_span_is(key, "path"))
			path = v.span;
		else if (kp_span_is(key, "library"))
			library = v.span;
	}
	if (!path.data || !library.data)
		return;
	/*
	 * A file of a database, which may have several keys; one of them is its path.  Its type is
	 * "bin", or stands after a dot in its name, before another dot or digits ("so" of
	 * libx.so.1).  Other writers may leave "hsaco" as the type of any entry.
	 */
	typed = kp_span_is(type, "bin") || kp_span_is(type, "hsaco");
	for (const uint8_t *p = path.data, *end = path.data + path.size;
	     !typed && (p = memchr(p, '.', (size_t)(end - p)));) {
		size_t left = (size_t)(end - ++p);

		typed = type.size <= left && memcmp(p, type.data, type.size) == 0 &&
			(type.size == left || strchr(".0123456789", p[type.size]));
	}
	if (!typed)
		FAULT(c, "toc: %s: type is %s, which is not in the file's name", entry,
		      show_span(type, &text));
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
	struct name key, arch;
	struct kp_meta meta;
	char text[1100];

	for (size_t i = 0; i < n; i++) {
		struct kp_span raw = kp_archive_meta_raw(c->a, i);

		kp_archive_entry(c->a, i, &info);
		kp_archive_meta(c->a, i, &meta);
		c->used[info.ordinal] = true;
		hashless += !meta.has_xxh3;
		empty += info.size == 0;
		if (raw.size == 0)
			continue;
		snprintf(text, sizeof(text), "%s %s", show_span(info.key, &key),
			 show_span(info.arch, &arch));
		check_meta(c, &info, raw, text);
	}
	if (hashless)
		NOTE(c, "toc: %zu of %zu entries without xxh3", hashless, n);
	if (empty)
		NOTE(c, "toc: %zu entries without bytes, which HRX refuses", empty);
	for (size_t i = 0; i < c->toc.n_entries; i++)
		if (c->toc.entries[i].size == KP_TOC_NO_SIZE)
			FAULT(c, "toc: %s: original_size is missing",
			      show_span(kp_toc_key(&c->toc, c->toc.entries[i].binary),
					&key));
}

/* --- the blob ----------------------------------------------------------------------------- */

/*
 * Walk the length words and headers of all frames.  The index of frames, if there is one, must say
 * where each of them is, and where the last ends; of what it says wrongly the first is reported.
 */
static void check_frames(struct check *c)
{
	KP_AUTO_FREE struct kp_window *w = xmalloc(sizeof(*w));
	uint32_t count = 0, sizeless = 0, unchecked = 0, foreign = 0, first_sizeless = 0;
	struct kp_span index = c->toc.frame_index;
	struct kpackx_error why = {0};
	bool index_ok = index.size > 0;
	struct kp_source blob;
	kpack_error_t err;
	const uint8_t *p;
	uint64_t at = 4;

	if (!kp_source_sub(&c->file, c->toc.zstd_offset, c->toc.zstd_size, &blob)) {
		FAULT(c, "blob: not inside the file");
		return;
	}
	kp_window_init(w, &blob);
	err = kp_window_get(w, 0, 4, &p, &why);
	if (!err)
		count = kp_le32(p);
	for (uint32_t i = 0; !err; i++) {
		struct kp_frame_header h;
		uint64_t left, size;

		if (index_ok && index.size < 8 * ((size_t)i + 1)) {
			FAULT(c, "frame_index: ends before frame %u", i);
			index_ok = false;
		} else if (index_ok && kp_frame_at(index.data, i) != at) {
			FAULT(c, "frame_index: %u is %llu, the blob says %llu", i,
			      (ull)kp_frame_at(index.data, i), (ull)at);
			index_ok = false;
		}
		if (i == count)
			break;
		err = kp_window_get(w, at, 4, &p, &why);
		if (err)
			break;
		size = kp_le32(p);
		left = blob.size - at - 4;
		if (size > left) {
			err = kp_fail(&why, KPACK_ERROR_INVALID_FORMAT,
				      "frame %u: %llu bytes, %llu are left", i, (ull)size,
				      (ull)left);
			break;
		}
		left = size < KP_FRAME_HEADER_MAX ? size : KP_FRAME_HEADER_MAX;
		err = kp_window_get(w, at + 4, (size_t)left, &p, &why);
		at += 4 + size;
		if (err)
			break;
		if (!kp_frame_header_read((struct kp_span){p, (size_t)left}, &h)) {
			foreign++;
			continue;
		}
		if ((h.skippable || h.content == KP_FRAME_SIZE_UNKNOWN) &&
		    sizeless++ == 0)
			first_sizeless = i;
		unchecked += !h.checksum;
	}
	if (err)
		FAULT(c, "blob: %s", why.text);
	else if (at < blob.size)
		NOTE(c, "blob: %llu bytes after the last frame", (ull)(blob.size - at));
	if (sizeless)
		FAULT(c,
		      "blob: %u frames do not state their content size (the first is "
		      "%u): the Python reader cannot decode them",
		      sizeless, first_sizeless);
	if (unchecked)
		NOTE(c, "blob: %u of %u frames without a checksum", unchecked, count);
	if (foreign)
		FAULT(c, "blob: %u of %u frames are no zstd frames", foreign, count);
}

/* Count the N of USED that are not; *FIRST is the first of them. */
static uint32_t count_unused(const bool *used, uint32_t n, uint32_t *first)
{
	uint32_t unused = 0;

	for (uint32_t i = n; i-- > 0;) {
		unused += !used[i];
		*first = used[i] ? *first : i;
	}
	return unused;
}

/* Decoding entries does not show what is wrong in objects and blocks that no entry needs. */
static void check_blob(struct check *c)
{
	const struct kp_shared *s = kp_archive_shared(c->a);
	bool zstd = c->toc.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL, trained;
	uint32_t n = kp_archive_ordinal_count(c->a), unused, first = 0;
	struct kpackx_error why = {0};

	if (zstd)
		check_frames(c);
	if (s) {
		uint32_t blocks = s->n_frames - s->first_block;
		KP_AUTO_FREE bool *used = xcalloc((size_t)blocks + 1, sizeof(*used));

		/*
		 * Our readers take every dictionary for content; a reader that lets zstd
		 * decide does not.  A dictionary that cannot be decoded is a fault of each
		 * entry.
		 */
		if (!kp_shared_is_trained(s, &trained, &why) && trained)
			FAULT(c, "dictionary: begins with 37 a4 30 ec, as zstd's trained "
				 "ones: other readers may not take it for content");
		for (uint32_t i = 0; i < s->n_objects; i++)
			if (c->used[i])
				kp_shared_mark_blocks(s, i, used);
		unused = count_unused(used, blocks, &first);
		if (unused)
			NOTE(c,
			     "blob: no entry has bytes of %u of %u blocks (the first is "
			     "%u)",
			     unused, blocks, first);
	}
	for (uint32_t i = 0; i < n && !s; i++)
		if (kp_archive_check_stored(c->a, i, &why))
			FAULT(c, "blob: object %u: %s", i, why.text);
	unused = count_unused(c->used, n, &first);
	if (unused)
		NOTE(c, "blob: no entry refers to %u of %u %s (the first is %u)", unused,
		     n,
		     zstd ? "frames"
		     : s  ? "objects"
			  : "blobs",
		     first);
}

/* --- all of it ---------------------------------------------------------------------------- */

void check_archive(struct kpack_archive *a, struct check_findings *out)
{
	struct check c = {.a = a, .out = out};
	struct kpackx_error why = {0};
	size_t kept, counted, n;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);
	struct kp_view *view = NULL;
	const char *const *conflicts;
	struct kp_source toc;
	uint8_t *bytes;
	struct stat st;

	*out = (struct check_findings){0};
	for (size_t i = 0; i < kept; i++)
		FAULT(&c, "%s", faults[i].text);
	out->faults.counted += counted - kept;
	/* not by its path, which may be another file's by now */
	if (kp_file_check(kp_archive_fd(a), &st, &why))
		goto fault;
	c.file = kp_source_fd(kp_archive_fd(a), 0, (uint64_t)st.st_size);
	n = c.file.size < BLOB_START ? (size_t)c.file.size : BLOB_START;
	if (kp_new(&c.used, (size_t)kp_archive_ordinal_count(a) + 1, "the check", &why) ||
	    kp_source_read(&c.file, 0, c.header, n, &why))
		goto fault;
	c.toc_offset = kp_le64(c.header + 8);
	if (c.toc_offset >= c.file.size ||
	    !kp_source_sub(&c.file, c.toc_offset, c.file.size - c.toc_offset, &toc)) {
		kp_fail(&why, KPACK_ERROR_IO_ERROR, "the file changed");
		goto fault;
	}
	/* the raw bytes first: the parser, which takes them, writes into them */
	if (kp_source_load(&toc, KP_TOC_SIZE_MAX, "the table of contents", &bytes, &why))
		goto fault;
	check_raw_toc(&c, (struct kp_span){bytes, (size_t)toc.size});
	if (kp_toc_parse(bytes, (size_t)toc.size, c.file.size, &c.toc, &why))
		goto fault;
	check_layout(&c);
	check_fields(&c);
	check_entries(&c);
	check_blob(&c);
	/* what a mount would not show, because two entries have one path */
	if (kp_view_new(&c.a, 1, NULL, &view, &why))
		goto fault;
	conflicts = kp_view_conflicts(view, &kept, &counted);
	for (size_t i = 0; i < kept; i++)
		FAULT(&c, "%s", conflicts[i]);
	out->faults.counted += counted - kept;
	kp_view_free(view);
	goto out;
fault:
	FAULT(&c, "%s", why.text);
out:
	kp_toc_fini(&c.toc);
	free(c.used);
}

void check_fini(struct check_findings *findings)
{
	kp_faults_fini(&findings->faults);
	kp_faults_fini(&findings->notes);
}
