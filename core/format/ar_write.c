/* SPDX-License-Identifier: MIT */
/*
 * Writing ar archives.  The order is: "/" with the index, or "/SYM64/" if an offset needs
 * 64 bits; "//" with the names that do not fit into a header; the members.  The index is
 * the number of symbols, for each symbol the offset of its member's header, both
 * big-endian, and the symbols' names: those that the members define, ELF64 or bitcode.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ar_archive.h"
#include "bitcode.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "format.h"
#include "sections.h"

#define MAGIC "!<arch>\n"
#define MAGIC_SIZE 8
#define HEADER_SIZE 60

/* Maximum length of a name in a header. */
#define SHORT_NAME_MAX 15

/* The largest size: a number of 10 digits. */
#define MEMBER_MAX UINT64_C(9999999999)

/* Zero bytes that LLVM writes as the names of an index without symbols. */
#define NO_NAMES_SIZE 3

/* ---- the symbols of members ---- */

/* Names of several objects, each followed by a NUL. */
struct symbols {
	char *names;
	size_t size, cap; /* bytes */
	size_t count;
	bool object; /* true if at least one was an object, even one without names */
};

static kpack_error_t put_symbol(void *arg, struct kp_span name, struct kpackx_error *why)
{
	struct symbols *s = arg;

	if (name.size >= KP_INDEX_MAX - s->size)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "names of symbols of more than %d bytes", KP_INDEX_MAX);
	KP_TRY(kp_room(&s->names, s->size + name.size, &s->cap, "names of symbols", why));
	if (name.size)
		memcpy(s->names + s->size, name.data, name.size);
	s->names[s->size + name.size] = '\0';
	s->size += name.size + 1;
	s->count++;
	return KPACK_SUCCESS;
}

/* Append the name of an ELF's symbol, if it is one that others can use. */
static kpack_error_t visit_symbol(void *arg, const uint8_t *symbol, const char *name,
				  uint64_t names_size, struct kpackx_error *why)
{
	uint8_t info = symbol[offsetof(Elf64_Sym, st_info)];

	if (ELF64_ST_BIND(info) == STB_LOCAL || ELF64_ST_TYPE(info) == STT_FILE ||
	    ELF64_ST_TYPE(info) == STT_SECTION ||
	    kp_le16(symbol + offsetof(Elf64_Sym, st_shndx)) == SHN_UNDEF)
		return KPACK_SUCCESS;
	if (!name)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a symbol's name passes the end of the names at %" PRIu64,
			       names_size);
	return put_symbol(arg, kp_span_str(name), why);
}

/*
 * Append the names that the member SRC defines, in the order of its symbol table: nothing
 * for what is no object, or cannot be read.
 */
static kpack_error_t put_symbols(const struct kp_source *src, struct symbols *out,
				 struct kpackx_error *why)
{
	size_t count = out->count, size = out->size;
	uint8_t bytes[20];
	struct kp_span head;
	const struct kp_section *table;
	struct kp_sections sections;
	bool bitcode;
	kpack_error_t err;

	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	bitcode = kp_format_bitcode.probe(head);
	if (!bitcode && !kp_elf_probe(head, NULL))
		return KPACK_SUCCESS;
	if (bitcode) {
		err = kp_bitcode_symbols(src, put_symbol, out, why);
	} else {
		err = kp_sections_read(src, &sections, why);
		table = kp_sections_first(&sections, SHT_SYMTAB);
		if (!err && table)
			err = kp_symbols_each(src, &sections, table, visit_symbol, out,
					      why);
		kp_sections_fini(&sections);
	}
	out->object |= bitcode || !err;
	if (err != KPACK_ERROR_INVALID_FORMAT)
		return err;
	out->count = count;
	out->size = size;
	return KPACK_SUCCESS;
}

/* ---- the archive ---- */

/* What is known of a member before the first byte is written. */
struct row {
	size_t defined;   /* number of its symbols */
	size_t same_name; /* index of the first member with its name */
	uint64_t name_at; /* offset of a long name in "//" */
};

struct writer {
	const struct kp_ar_input *members;
	struct row *rows;
	size_t n;
	struct kp_sink *sink;
	struct symbols symbols;
	uint64_t names_size; /* of "//", without padding */
	uint64_t index_size; /* of "/", with padding; 0: none */
	unsigned width;      /* bytes of an offset in the index */
	uint64_t first;      /* where the first member's header begins */
};

static void writer_fini(struct writer *w)
{
	free(w->rows);
	free(w->symbols.names);
}

static bool is_long(struct kp_span name)
{
	return name.size > SHORT_NAME_MAX ||
	       (name.size && memchr(name.data, '/', name.size));
}

static uint64_t even_size(uint64_t n)
{
	return n + (n & 1);
}

struct named {
	struct kp_span name;
	size_t member;
};

/* Check the members, collect their symbols, and find out which have the same name. */
static kpack_error_t look_at_members(struct writer *w, struct kpackx_error *why)
{
	KP_AUTO_FREE struct named *sorted = NULL;

	KP_TRY(kp_new(&sorted, w->n, "members", why));
	for (size_t i = 0; i < w->n; i++) {
		const struct kp_ar_input *m = &w->members[i];
		size_t before = w->symbols.count;
		char shown[96];

		kp_text_escape(m->name, shown, sizeof(shown));
		if (m->name.size == 0 || m->name.size > KP_NAME_MAX - 2 ||
		    memchr(m->name.data, '\n', m->name.size) ||
		    memchr(m->name.data, '\0', m->name.size))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "member %s: its name is empty, has a line feed or "
				       "a NUL byte, or more than %d bytes",
				       shown, KP_NAME_MAX - 2);
		if (m->bytes.size > MEMBER_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "member %s: %" PRIu64 " bytes, at most %" PRIu64,
				       shown, m->bytes.size, MEMBER_MAX);
		KP_TRY(put_symbols(&m->bytes, &w->symbols, why));
		w->rows[i].defined = w->symbols.count - before;
		sorted[i] = (struct named){m->name, i};
	}
	kp_sort(sorted, w->n, KP_BY_SPAN(struct named, name),
		KP_BY_NUMBER(struct named, member));
	for (size_t i = 0; i < w->n; i++) {
		bool same = i && kp_span_eq(sorted[i - 1].name, sorted[i].name);

		w->rows[sorted[i].member].same_name =
			same ? w->rows[sorted[i - 1].member].same_name : sorted[i].member;
	}
	return KPACK_SUCCESS;
}

/* True if "//" gets the name of member I, not only that of a member before it. */
static bool owns_name(const struct writer *w, size_t i)
{
	return is_long(w->members[i].name) && w->rows[i].same_name == i;
}

/* Write a header; with OWNER "" the time, user and group are blank. */
static kpack_error_t put_header(struct writer *w, const char *name, const char *owner,
				const char *mode, uint64_t size, struct kpackx_error *why)
{
	char text[2 * HEADER_SIZE];
	int n = snprintf(text, sizeof(text), "%-16s%-12s%-6s%-6s%-8s%-10" PRIu64 "`\n",
			 name, owner, owner, owner, mode, size);

	if (n != HEADER_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%.16s: %" PRIu64 " bytes: an archive's header has ten "
			       "digits for them",
			       name, size);
	return kp_sink_put(w->sink, text, HEADER_SIZE, why);
}

static void put_big(uint8_t *p, uint64_t value, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		p[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
}

kpack_error_t kp_ar_write(const struct kp_ar_input *members, size_t n,
			  struct kp_sink *sink, struct kpackx_error *why)
{
	KP_AUTO(writer) all = {.members = members, .n = n, .sink = sink};
	struct writer *w = &all;
	uint64_t last = 0, begin, pos, symbols, names;
	char name[32];
	uint8_t be[8];

	KP_TRY(kp_new(&w->rows, n, "members", why));
	KP_TRY(look_at_members(w, why));

	/* long names in the order of members, each once; the members, with offsets of 4 bytes
	 * in the index, or of 8 if the last member's header needs them */
	symbols = w->symbols.count;
	names = symbols ? w->symbols.size : NO_NAMES_SIZE;
	for (size_t i = 0; i < w->n; i++) {
		if (i + 1 < w->n)
			last += HEADER_SIZE + even_size(w->members[i].bytes.size);
		w->rows[i].name_at = w->rows[w->rows[i].same_name].name_at;
		if (!owns_name(w, i))
			continue;
		w->rows[i].name_at = w->names_size;
		w->names_size += w->members[i].name.size + 2;
	}
	for (w->width = 4;; w->width = 8) {
		w->first = MAGIC_SIZE;
		if (w->names_size)
			w->first += HEADER_SIZE + even_size(w->names_size);
		if (w->symbols.object) {
			w->index_size = even_size(w->width + symbols * w->width + names);
			w->first += HEADER_SIZE + w->index_size;
		}
		if (w->width == 8 || w->first + last <= UINT32_MAX)
			break;
	}
	pos = w->first;

	/* the index, in which a symbol's row is the offset of its member's header; the long names;
	 * and the members.  Headers say owner 0, time 0 and mode 644, so that the same members give
	 * the same archive */
	KP_TRY(kp_sink_put(w->sink, MAGIC, MAGIC_SIZE, why));
	if (w->index_size) {
		KP_TRY(put_header(w, w->width == 4 ? "/" : "/SYM64/", "0", "0",
				  w->index_size, why));
		begin = w->sink->size;
		put_big(be, w->symbols.count, w->width);
		KP_TRY(kp_sink_put(w->sink, be, w->width, why));
		for (size_t i = 0; i < w->n; i++) {
			put_big(be, pos, w->width);
			for (size_t k = 0; k < w->rows[i].defined; k++)
				KP_TRY(kp_sink_put(w->sink, be, w->width, why));
			pos += HEADER_SIZE + even_size(w->members[i].bytes.size);
		}
		if (w->symbols.count)
			KP_TRY(kp_sink_put(w->sink, w->symbols.names, w->symbols.size,
					   why));
		KP_TRY(kp_sink_fill(w->sink, 0, w->index_size - (w->sink->size - begin),
				    why));
	}
	if (w->names_size)
		KP_TRY(put_header(w, "//", "", "", even_size(w->names_size), why));
	for (size_t i = 0; i < w->n; i++) {
		struct kp_span text = w->members[i].name;

		if (!owns_name(w, i))
			continue;
		KP_TRY(kp_sink_put(w->sink, text.data, text.size, why));
		KP_TRY(kp_sink_put(w->sink, "/\n", 2, why));
	}
	KP_TRY(kp_sink_fill(w->sink, '\n', w->names_size & 1, why));
	for (size_t i = 0; i < w->n; i++) {
		const struct kp_ar_input *m = &w->members[i];

		if (is_long(m->name))
			snprintf(name, sizeof(name), "/%" PRIu64, w->rows[i].name_at);
		else
			snprintf(name, sizeof(name), "%.*s/", (int)m->name.size,
				 (const char *)m->name.data);
		KP_TRY(put_header(w, name, "0", "644", m->bytes.size, why));
		KP_TRY(kp_sink_copy(w->sink, &m->bytes, why));
		KP_TRY(kp_sink_fill(w->sink, '\n', m->bytes.size & 1, why));
	}
	return KPACK_SUCCESS;
}
