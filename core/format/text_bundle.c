/* SPDX-License-Identifier: MIT */
/*
 * Entries are found by their markers (text_bundle.h); the text between is not looked at.  A marker
 * is a line of its own: a comment, the magic, START__ or END__, and the ID.
 *
 * The states of reading are: no entry is open, and all but a start marker is skipped; an entry is
 * open, and the next end marker ends it; an entry is open and another start marker was among its
 * contents, so that only an end marker with the entry's own ID ends it.
 *
 * Files have any size and no line needs to end, so the search goes through one window: the common
 * beginning of both markers is looked for, and what follows it is read as far as a valid line reaches.
 */
#include "text_bundle.h"
#include <inttypes.h>
#include <stdio.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/text.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE____"
#define START "START__ "
#define END "END__ "

/* Maximum size of a marker without its ID. */
#define MARKER_MAX 64

/* An ID followed by LF or CR LF. */
#define LINE_MAX_SIZE (KP_ENTRY_ID_MAX + 2)

const char *kp_text_bundle_comment(const char *type)
{
	struct kp_span t = kp_span_str(type);

	return kp_span_is_one_of(t, "i ii cui hipi") ? "//"
	       : kp_span_is_one_of(t, "d s")         ? "#"
	       : kp_span_is(t, "ll")                 ? ";"
						     : NULL;
}

/* ---- markers ---- */

/* A forward search for markers, in text of any length through one window. */
struct search {
	struct kp_window window;
	char needle[MARKER_MAX]; /* the common beginning of both markers */
	size_t needle_size;
};

struct marker {
	bool start;        /* true: start marker; false: end marker */
	bool whole;        /* its line ends, and the ID fits */
	uint64_t line;     /* offset of its comment */
	uint64_t contents; /* offset after its line feed */
	bool cr;           /* a carriage return precedes that line feed */
	size_t id_size;
	uint8_t id[KP_ENTRY_ID_MAX]; /* as much of the ID as fits */
};

static void search_init(struct search *s, const struct kp_source *src,
			const char *comment)
{
	kp_window_init(&s->window, src);
	snprintf(s->needle, sizeof(s->needle), "%s " MAGIC, comment);
	s->needle_size = strlen(s->needle);
}

/*
 * Find the next marker at *POS or after, and move *POS to its ID; *FOUND: whether one was
 * found.  What follows the common beginning is read as far as a valid line can reach.
 */
static kpack_error_t next_marker(struct search *s, uint64_t *pos, struct marker *m,
				 bool *found, struct kpackx_error *why)
{
	const size_t want = sizeof(START) + LINE_MAX_SIZE;
	struct kp_window *w = &s->window;
	const uint8_t *p, *hit, *lf;
	struct kp_span rest;
	size_t have, size;
	uint64_t left;

	*found = false;
	while (kp_range_ok(w->src.size, *pos, s->needle_size)) {
		KP_TRY(kp_window_get(w, *pos, s->needle_size, &p, why));
		have = w->size - (size_t)(p - w->buf);
		hit = memmem(p, have, s->needle, s->needle_size);
		if (!hit) {
			*pos += have - s->needle_size + 1;
			continue;
		}
		m->line = *pos + (size_t)(hit - p);
		*pos = m->line + s->needle_size;
		if (m->line > 0) {
			KP_TRY(kp_window_get(w, m->line - 1, 1, &p, why));
			if (*p != '\n')
				continue;
		}
		left = w->src.size - *pos;
		rest.size = left < want ? (size_t)left : want;
		KP_TRY(kp_window_get(w, *pos, rest.size, &rest.data, why));
		m->start = kp_span_take(&rest, START);
		if (!m->start && !kp_span_take(&rest, END))
			continue;
		*found = true;
		*pos += m->start ? strlen(START) : strlen(END);
		lf = memchr(rest.data, '\n', rest.size);
		size = lf ? (size_t)(lf - rest.data) : rest.size;
		m->contents = *pos + size + 1;
		m->cr = size && rest.data[size - 1] == '\r';
		m->id_size = size - m->cr;
		m->whole = lf && m->id_size <= KP_ENTRY_ID_MAX;
		if (m->id_size > KP_ENTRY_ID_MAX)
			m->id_size = KP_ENTRY_ID_MAX;
		memcpy(m->id, rest.data, m->id_size);
		return KPACK_SUCCESS;
	}
	return KPACK_SUCCESS;
}

/* ---- reading ---- */

static kpack_error_t fail_entry(const struct marker *start, const char *text,
				struct kpackx_error *why)
{
	char id[96];

	kp_text_escape((struct kp_span){start->id, start->id_size}, id, sizeof(id));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "entry %s at offset %" PRIu64 ": %s", id, start->line, text);
}

/*
 * List the entries.  A start marker among an entry's contents is text if an end marker with the
 * entry's own ID follows, as in a bundle of bundles; else the entry has no end.
 */
static kpack_error_t read_entries(const struct kp_source *src, const char *comment,
				  struct kp_container *c, struct kp_containers *list,
				  struct kpackx_error *why)
{
	bool found, open = false, another = false;
	struct marker start, m;
	struct search s;
	uint64_t pos = 0, size;
	const uint8_t *p;

	c->size = c->payload_size = src->size;
	search_init(&s, src, comment);
	for (;;) {
		struct kp_span id = {start.id, 0};

		KP_TRY(next_marker(&s, &pos, &m, &found, why));
		if (!found)
			return open ? fail_entry(&start, "it has no end marker", why)
				    : KPACK_SUCCESS;
		if (m.start) {
			another = open; /* stays until the entry ends */
			if (!open)
				start = m;
			if (!open && !m.whole)
				return fail_entry(
					&m, "its ID is too long or has no line feed",
					why);
			open = true;
			continue;
		}
		if (!open || m.line <= start.contents)
			continue;
		id.size = start.id_size;
		if (another && !kp_span_eq(id, (struct kp_span){m.id, m.id_size}))
			return fail_entry(&start, "another entry begins in it", why);
		/* the line feed before the end marker is not part of the contents */
		size = m.line - 1 - start.contents;
		/* line ends were converted to CR LF, including the one before the marker */
		if (start.cr && size) {
			KP_TRY(kp_window_get(&s.window, m.line - 2, 1, &p, why));
			size -= *p == '\r';
		}
		open = false;
		KP_TRY(kp_containers_add_image(list, c, id, start.contents, size, why));
	}
}

kpack_error_t kp_text_bundle_read(const struct kp_source *src, const char *comment,
				  struct kp_containers *out, struct kpackx_error *why)
{
	struct kp_container c = {.format = &kp_format_text_bundle,
				 .inside = KP_NOWHERE,
				 .next = KP_NOWHERE};
	kpack_error_t err;

	*out = (struct kp_containers){0};
	KP_TRY(kp_room(&out->items, 0, &out->cap, "a text bundle", why));
	err = read_entries(src, comment, &c, out, why);
	out->items[out->count++] = c;
	if (err)
		kp_containers_fini(out);
	return err;
}

/* ---- the format ---- */

/*
 * Return the comment of the start marker at the beginning of HEAD, after at most one line
 * end; or NULL.
 */
static const char *comment_of(struct kp_span head)
{
	static const char *const comments[] = {"//", "#", ";"};
	char needle[MARKER_MAX];
	size_t skip = 0;

	if (head.size > 1 && head.data[0] == '\r')
		skip++;
	if (skip < head.size && head.data[skip] == '\n')
		skip++;
	for (size_t i = 0; i < KP_COUNT(comments); i++) {
		snprintf(needle, sizeof(needle), "%s " MAGIC START, comments[i]);
		if (kp_span_starts(kp_span_tail(head, skip), needle, strlen(needle)))
			return comments[i];
	}
	return NULL;
}

static bool probe_text_bundle(struct kp_span head)
{
	return comment_of(head) != NULL;
}

static kpack_error_t parse_text_bundle(const struct kp_source *src,
				       struct kp_container *c, struct kp_containers *list,
				       struct kpackx_error *why)
{
	uint8_t bytes[MARKER_MAX];
	struct kp_span head;
	const char *comment;

	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	comment = comment_of(head);
	if (!comment)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "not a text bundle");
	return read_entries(src, comment, c, list, why);
}

const struct kp_format kp_format_text_bundle = {
	.name = "text-bundle",
	.probe = probe_text_bundle,
	.parse = parse_text_bundle,
};

/* ---- writing ---- */

/* The line feed in front belongs to the marker: contents need not end with one. */
static kpack_error_t write_marker(struct kp_sink *sink, const char *comment,
				  const char *which, struct kp_span id,
				  struct kpackx_error *why)
{
	char text[MARKER_MAX];

	snprintf(text, sizeof(text), "\n%s " MAGIC "%s", comment, which);
	KP_TRY(kp_sink_put(sink, text, strlen(text), why));
	if (id.size)
		KP_TRY(kp_sink_put(sink, id.data, id.size, why));
	return kp_sink_put(sink, "\n", 1, why);
}

kpack_error_t kp_text_bundle_write(const struct kp_text_entry *entries, size_t n,
				   const char *comment, struct kp_sink *sink,
				   struct kpackx_error *why)
{
	struct search s;

	/* a reader must find each entry unchanged */
	for (size_t i = 0; i < n; i++) {
		const struct kp_text_entry *entry = &entries[i];
		const char *fault = NULL;
		char shown[96];
		struct marker m;
		uint64_t pos = 0;
		bool found = true;

		if (entry->id.size > KP_ENTRY_ID_MAX)
			fault = "its ID is too long";
		for (size_t k = 0; k < entry->id.size && !fault; k++)
			if (memchr("\0\r\n", entry->id.data[k], 3))
				fault = "its ID has a line end or a NUL byte";
		search_init(&s, &entry->contents, comment);
		while (!fault && found) {
			KP_TRY(next_marker(&s, &pos, &m, &found, why));
			/* a start marker is allowed: an end marker with our ID follows */
			if (found && !m.start && m.line > 0)
				fault = "an end marker is among its contents";
		}
		if (!fault)
			continue;
		kp_text_escape(entry->id, shown, sizeof(shown));
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "entry %s: %s", shown,
			       fault);
	}
	for (size_t i = 0; i < n; i++) {
		KP_TRY(write_marker(sink, comment, START, entries[i].id, why));
		KP_TRY(kp_sink_copy(sink, &entries[i].contents, why));
		KP_TRY(write_marker(sink, comment, END, entries[i].id, why));
	}
	return KPACK_SUCCESS;
}
