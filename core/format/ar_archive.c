/* SPDX-License-Identifier: MIT */
/*
 * Reading ar archives.  An archive is 8 bytes "!<arch>\n" and members.  A member is a
 * header of 60 characters and the member's bytes, padded to an even number with a line
 * feed:
 *
 *	0   16  name
 *	16  12  time, 6 user, 6 group, 8 mode
 *	48  10  size, decimal
 *	58  2   "`\n"
 *
 * Fields are filled with blanks.  GNU ends names with "/"; a name that does not fit is in
 * a member "//" and the field is "/N", N being the offset in that member.  BSD writes
 * "#1/N" and puts the N bytes of the name before the member's bytes.  A thin archive
 * begins with "!<thin>\n", and has the bytes of "/" and "//" only.
 */
#include "ar_archive.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"

#define MAGIC_SIZE 8
#define HEADER_SIZE 60
#define NAME_SIZE 16
#define SIZE_OFFSET 48
#define SIZE_DIGITS 10

struct reader {
	struct kp_window headers, names;
	struct kp_ar *ar;
	size_t cap;
	uint64_t names_size;               /* bytes of all names so far */
	uint64_t table_offset, table_size; /* of the member "//" */
};

/* A header that was read. */
struct header {
	uint64_t at;
	uint8_t name[NAME_SIZE];
	uint64_t offset, size; /* of the bytes */
};

bool kp_ar_probe(struct kp_span head)
{
	return kp_span_starts(head, "!<arch>\n", MAGIC_SIZE) ||
	       kp_span_starts(head, "!<thin>\n", MAGIC_SIZE);
}

/* True if the bytes of a member with that name field are in the archive. */
static bool has_bytes(const struct reader *r, const uint8_t name[NAME_SIZE])
{
	return !r->ar->thin || (name[0] == '/' && (name[1] == '/' || name[1] == ' ' ||
						   name[1] == 'S')); /* "/SYM64/" */
}

/* Parse decimal digits, followed by blanks up to the end of the field. */
static bool parse_number(const uint8_t *field, size_t size, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	for (; i < size && field[i] >= '0' && field[i] <= '9'; i++)
		*out = 10 * *out + (uint64_t)(field[i] - '0');
	if (i == 0)
		return false;
	while (i < size && field[i] == ' ')
		i++;
	return i == size;
}

static kpack_error_t read_header(struct reader *r, uint64_t pos, struct header *h,
				 struct kpackx_error *why)
{
	const uint8_t *p;

	KP_TRY(kp_window_get(&r->headers, pos, HEADER_SIZE, &p, why));
	if (p[58] != '`' || p[59] != '\n' ||
	    !parse_number(p + SIZE_OFFSET, SIZE_DIGITS, &h->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "offset %" PRIu64 ": no header of a member", pos);
	memcpy(h->name, p, NAME_SIZE);
	h->at = pos;
	h->offset = pos + HEADER_SIZE;
	if (has_bytes(r, h->name) &&
	    !kp_range_ok(r->headers.src.size, h->offset, h->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "member at offset %" PRIu64 ": %" PRIu64
			       " bytes pass the end at %" PRIu64,
			       pos, h->size, r->headers.src.size);
	return KPACK_SUCCESS;
}

static kpack_error_t add_member(struct reader *r, const struct header *h,
				struct kp_span name, struct kpackx_error *why)
{
	struct kp_ar *ar = r->ar;
	struct kp_ar_member *m;

	r->names_size += name.size + 1;
	if (ar->count >= KP_IMAGES_MAX || r->names_size > KP_IDS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d members, or %d bytes of names",
			       KP_IMAGES_MAX, KP_IDS_MAX);
	KP_TRY(kp_room(&ar->items, ar->count, &r->cap, "members", why));
	m = &ar->items[ar->count];
	*m = (struct kp_ar_member){strndup((const char *)name.data, name.size), h->at,
				   ar->thin ? 0 : h->offset, h->size};
	if (!m->name)
		return kp_fail_memory(why, name.size + 1, "the name of a member");
	ar->aligned = (ar->count == 0 || ar->aligned) && m->offset % 8 == 0;
	ar->count++;
	return KPACK_SUCCESS;
}

/* Return NAME up to its first NUL byte or line feed, which end names in "//" and BSD's. */
static struct kp_span cut_line(struct kp_span name)
{
	size_t n = 0;

	while (n < name.size && name.data[n] != '\0' && name.data[n] != '\n')
		n++;
	return kp_span_head(name, n);
}

static struct kp_span without_slash(struct kp_span name)
{
	return name.size > 1 && name.data[name.size - 1] == '/'
		       ? kp_span_head(name, name.size - 1)
		       : name;
}

/* Names of GNU archives end with a slash. */
bool kp_ar_is_bsd_index(struct kp_span name)
{
	static const char *const spellings[] = {"__.SYMDEF", "__.SYMDEF SORTED",
						"__.SYMDEF_64", "__.SYMDEF_64 SORTED"};

	name = cut_line(name);
	while (name.size && name.data[name.size - 1] == ' ')
		name.size--;
	for (size_t i = 0; i < KP_COUNT(spellings); i++) {
		if (kp_span_is(name, spellings[i]))
			return true;
	}
	return false;
}

/* Take a member "#1/N": its name is the first N bytes, padded with NULs. */
static kpack_error_t take_bsd(struct reader *r, struct header *h, uint64_t n,
			      struct kpackx_error *why)
{
	struct kp_span name;

	if (n > KP_NAME_MAX || n > h->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "member at offset %" PRIu64 ": a name of %" PRIu64
			       " bytes among %" PRIu64 ", at most %d",
			       h->offset, n, h->size, KP_NAME_MAX);
	KP_TRY(kp_window_get(&r->names, h->offset, (size_t)n, &name.data, why));
	name.size = (size_t)n;
	h->offset += n;
	h->size -= n;
	name = cut_line(name);
	return kp_ar_is_bsd_index(name) ? KPACK_SUCCESS : add_member(r, h, name, why);
}

/*
 * Take a member with one of GNU's special names: "/N", whose name is at offset N of "//";
 * "//"; or an index.
 */
static kpack_error_t take_slash(struct reader *r, const struct header *h,
				struct kpackx_error *why)
{
	struct kp_span name;
	uint64_t n;

	if (!parse_number(h->name + 1, NAME_SIZE - 1, &n)) {
		if (!has_bytes(r, h->name))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "member at offset %" PRIu64
				       ": member of another archive, in a thin archive",
				       h->offset);
		if (h->name[1] == '/') {
			r->table_offset = h->offset;
			r->table_size = h->size;
		}
		return KPACK_SUCCESS;
	}
	if (n >= r->table_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "member at offset %" PRIu64 ": name at %" PRIu64
			       " of %" PRIu64 " bytes of names",
			       h->offset, n, r->table_size);
	name.size = r->table_size - n < KP_NAME_MAX ? (size_t)(r->table_size - n)
						    : KP_NAME_MAX;
	KP_TRY(kp_window_get(&r->names, r->table_offset + n, name.size, &name.data, why));
	name = cut_line(name);
	if (name.size == KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "member at offset %" PRIu64 ": name of %d bytes or more",
			       h->offset, KP_NAME_MAX);
	return add_member(r, h, without_slash(name), why);
}

static kpack_error_t take_member(struct reader *r, struct header *h,
				 struct kpackx_error *why)
{
	struct kp_span name = {h->name, NAME_SIZE};
	uint64_t n;

	if (!r->ar->thin && memcmp(h->name, "#1/", 3) == 0 &&
	    parse_number(h->name + 3, NAME_SIZE - 3, &n))
		return take_bsd(r, h, n, why);
	if (h->name[0] == '/')
		return take_slash(r, h, why);
	while (name.size && name.data[name.size - 1] == ' ')
		name.size--;
	name = cut_line(name);
	return kp_ar_is_bsd_index(name) ? KPACK_SUCCESS
					: add_member(r, h, without_slash(name), why);
}

/* As kp_ar_read, but on failure OUT holds the members before the damage. */
static kpack_error_t read_until_damage(const struct kp_source *src, struct kp_ar *out,
				       struct kpackx_error *why)
{
	KP_AUTO_FREE struct reader *r = NULL; /* windows are large */
	struct kp_span magic = {.size = MAGIC_SIZE};
	struct header h;

	*out = (struct kp_ar){0};
	KP_TRY(kp_new(&r, 1, "an archive", why));
	r->ar = out;
	kp_window_init(&r->headers, src);
	kp_window_init(&r->names, src);
	KP_TRY(kp_window_get(&r->headers, 0, MAGIC_SIZE, &magic.data, why));
	if (!kp_ar_probe(magic))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "not an ar archive");
	out->thin = memcmp(magic.data, "!<thin>", 7) == 0;
	for (uint64_t pos = MAGIC_SIZE, end; pos < src->size; pos = end) {
		KP_TRY(read_header(r, pos, &h, why));
		end = h.offset + (has_bytes(r, h.name) ? h.size : 0);
		end += end & 1;
		KP_TRY(take_member(r, &h, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_ar_read(const struct kp_source *src, struct kp_ar *out,
			 struct kpackx_error *why)
{
	kpack_error_t err = read_until_damage(src, out, why);

	if (err)
		kp_ar_fini(out);
	return err;
}

void kp_ar_fini(struct kp_ar *ar)
{
	for (size_t i = 0; i < ar->count; i++)
		free(ar->items[i].name);
	free(ar->items);
	*ar = (struct kp_ar){0};
}

/* ---- the format: static libraries, heterogeneous archives of bundles, of device code ---- */

/*
 * List the members that READ finds, of all of SRC.  After a failure, members before the
 * damage are listed.
 */
static kpack_error_t
list_members(const struct kp_source *src,
	     kpack_error_t (*read)(const struct kp_source *src, struct kp_ar *out,
				   struct kpackx_error *why),
	     struct kp_container *c, struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_image *image;
	struct kp_ar ar;
	kpack_error_t err = read(src, &ar, why);

	if (ar.count)
		err = KPACK_SUCCESS;
	if (!err && ar.thin)
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "a thin archive: its members are other files, which are "
			      "not looked for");
	c->size = c->payload_size = src->size;
	for (size_t i = 0; i < ar.count && !err; i++)
		err = kp_containers_add_named(list, c, kp_span_str(ar.items[i].name),
					      ar.items[i].offset, ar.items[i].size,
					      &image, why);
	kp_ar_fini(&ar);
	return err;
}

static kpack_error_t parse_archive(const struct kp_source *src, struct kp_container *c,
				   struct kp_containers *list, struct kpackx_error *why)
{
	return list_members(src, kp_ar_read, c, list, why);
}

static kpack_error_t salvage_archive(const struct kp_source *src, struct kp_container *c,
				     struct kp_containers *list, struct kpackx_error *why)
{
	return list_members(src, read_until_damage, c, list, why);
}

const struct kp_format kp_format_archive = {
	.name = "archive",
	.probe = kp_ar_probe,
	.parse = parse_archive,
	.salvage = salvage_archive,
};
