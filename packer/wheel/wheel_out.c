/* SPDX-License-Identifier: MIT */
/*
 * Writing a wheel in two passes.  First its files are hashed and compressed in pieces, on
 * several threads: each piece is deflated with the bytes before it as its dictionary and ends
 * at a byte boundary, so that the pieces behind each other are one stream.  The compressed
 * bytes wait in an unnamed file beside the wheel.  Then the members are put together, RECORD
 * last.  No member is ever in memory as a whole, and the number of threads changes no byte.
 *
 * Equal inputs give equal wheels: all members have one time, and the versions and the order of
 * fields are those that libzip would write.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "core/base/order.h"
#include "core/base/sink.h"
#include "packer/cli/options.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "wheel.h"

enum {
	MADE_BY = 3 << 8 | 63, /* Unix; version 6.3 */
	NEEDS_STORED = 10,
	NEEDS_DEFLATED = 20,
	NEEDS_ZIP64 = 45,
	UTF_8 = 1 << 11, /* of a member's flags: its name is not ASCII */
	EXTRA_ZIP64 = 1,
	LOCAL_MAX = 30 + 4 + 16, /* without the name */
	ENTRY_MAX = 46 + 4 + 24,
	END_MAX = 56 + 20 + 22,
};

enum {
	PIECE = 1 << 20,       /* large enough that what each costs does not matter */
	WINDOW = 32 << 10,     /* bytes before a piece to which deflate can refer */
	PIECES_PER_THREAD = 4, /* in memory: one being compressed, others waiting */
};

/* --- members ------------------------------------------------------------------------ */

/* The new member is valid until the next call. */
static struct wheel_out_member *add_member(struct wheel_out *o, const char *path,
					   unsigned mode)
{
	struct wheel_out_member *m;

	xgrow(&o->members, o->count, &o->cap, sizeof(*o->members));
	m = &o->members[o->count++];
	*m = (struct wheel_out_member){.path = xstrdup(path), .mode = mode & 0777};
	return m;
}

void wheel_out_add_text(struct wheel_out *o, const char *dir, const char *name,
			char *text, size_t size)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	struct wheel_out_member *m = add_member(o, path, 0644);

	m->bytes = (uint8_t *)text;
	m->size = size;
	o->size += size;
}

kpack_error_t wheel_out_add_file(struct wheel_out *o, const char *path, unsigned mode,
				 const char *file, struct kpackx_error *why)
{
	struct wheel_out_member *m = add_member(o, path, mode);
	struct stat st;
	int fd;

	KP_TRY(below_file_open_nofollow(file, &fd, &st, why));
	close(fd);
	m->file = xstrdup(file);
	m->identity = file_identity_of(&st);
	m->size = m->identity.size;
	o->size += m->size;
	return KPACK_SUCCESS;
}

void wheel_out_add_copy(struct wheel_out *o, const char *path, const struct wheel_in *w,
			size_t member, const uint8_t digest[32])
{
	struct wheel_out_member *m = add_member(o, path, w->members[member].mode);

	m->from = w;
	m->member = member;
	m->size = w->members[member].size;
	memcpy(m->digest, digest, sizeof(m->digest));
	o->size += m->size;
}

void wheel_out_fini(struct wheel_out *o)
{
	for (size_t i = 0; i < o->count; i++) {
		free(o->members[i].path);
		free(o->members[i].file);
		free(o->members[i].bytes);
	}
	free(o->members);
	*o = (struct wheel_out){0};
}

/*
 * Threads take pieces in any order, but they are committed in the order of the members, one at a
 * time: only then it is known where in the collected bytes a piece belongs, and the hash of a
 * member, which has no parallel form, is computed there.
 */

/* --- pressing ------------------------------------------------------------------------- */

struct piece {
	uint32_t member;
	uint32_t number; /* index in the member */
};

struct press {
	struct wheel_out *o;
	const struct wheel_out_options *how;
	struct piece *pieces;
	size_t count, cap;
	struct kp_outfile *collected; /* gets deflated bytes from END on */
	uint64_t end;
	struct digest hash; /* of the member whose pieces are being committed */
};

static void press_fini(struct press *p)
{
	free(p->pieces);
	digest_fini(&p->hash);
}

/* A piece that was read and compressed. */
struct pressed {
	uint8_t *plain; /* DATA, after the bytes before it for the dictionary */
	struct kp_span data;
	uint8_t *packed; /* NULL: it is stored */
	size_t packed_size;
	uint32_t crc;
};

static bool is_last(const struct wheel_out_member *m, struct piece piece)
{
	return ((uint64_t)piece.number + 1) * PIECE >= m->size;
}

static void discard_pressed(void *arg, void *result)
{
	struct pressed *r = result;

	(void)arg;
	free(r->plain);
	free(r->packed);
	free(r);
}

/* Read a piece and, if it will be deflated, the bytes before it; then deflate it. */
static kpack_error_t press_piece(void *arg, void *state, size_t job, void **result,
				 struct kpackx_error *why)
{
	const struct press *p = arg;
	struct piece piece = p->pieces[job];
	const struct wheel_out_member *m = &p->o->members[piece.member];
	uint64_t at = (uint64_t)piece.number * PIECE;
	size_t n = m->size - at < PIECE ? (size_t)(m->size - at) : PIECE;
	size_t before = m->deflated && at ? WINDOW : 0, room;
	struct kp_source src = kp_source_memory(m->bytes, (size_t)m->size);
	struct pressed *r = xcalloc(1, sizeof(*r));
	kpack_error_t err = KPACK_SUCCESS;
	KP_AUTO_CLOSE int fd = -1;
	z_stream *z = state;

	r->plain = xmalloc(before + n);
	r->data = (struct kp_span){r->plain + before, n};
	if (m->file) {
		err = below_file_open_again(m->file, &m->identity, &fd, why);
		src = kp_source_fd(fd, 0, m->size);
	}
	if (!err)
		err = kp_source_read(&src, at - before, r->plain, before + n, why);
	if (err) {
		discard_pressed(arg, r);
		return kp_fail_prefix(why, err, "%s", m->path);
	}
	r->crc = (uint32_t)crc32_z(0, r->data.data, n);
	*result = r;
	if (!m->deflated)
		return KPACK_SUCCESS;
	/* the bound is for a whole stream; a flush adds an empty block of five bytes */
	room = deflateBound(z, (uLong)n) + 16;
	r->packed = xmalloc(room);
	deflateReset(z);
	/* so that the piece compresses as well as if the bytes before it were in its stream */
	if (before)
		deflateSetDictionary(z, r->plain, WINDOW);
	z->next_in = r->plain + before;
	z->avail_in = (uInt)n;
	z->next_out = r->packed;
	z->avail_out = (uInt)room;
	deflate(z, is_last(m, piece) ? Z_FINISH : Z_SYNC_FLUSH);
	if (z->avail_in || !z->avail_out) {
		*result = NULL;
		discard_pressed(arg, r);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "deflate: no room");
	}
	r->packed_size = room - z->avail_out;
	return KPACK_SUCCESS;
}

/* Collect a piece; after its last one, a member that did not get smaller is stored. */
static kpack_error_t commit_piece(void *arg, size_t job, void *result,
				  struct kpackx_error *why)
{
	struct press *p = arg;
	struct pressed *r = result;
	struct wheel_out_member *m = &p->o->members[p->pieces[job].member];
	uint8_t digest[DIGEST_MAX];
	kpack_error_t err = KPACK_SUCCESS;

	if (p->pieces[job].number == 0) {
		digest_begin(&p->hash, DIGEST_SHA256);
		m->packed_at = p->end;
	}
	digest_add(&p->hash, r->data);
	/* unlike the hash, the CRC of the whole follows from those of its pieces */
	m->crc = (uint32_t)crc32_combine(m->crc, r->crc, (z_off_t)r->data.size);
	if (r->packed_size)
		err = kp_outfile_pwrite(p->collected, p->end, r->packed, r->packed_size,
					why);
	p->end += r->packed_size;
	m->packed += r->packed_size;
	progress_add(r->data.size);
	if (!err && is_last(m, p->pieces[job])) {
		err = digest_end(&p->hash, digest, why);
		if (!err)
			memcpy(m->digest, digest, sizeof(m->digest));
		/* the room of its deflated bytes is used again */
		if (m->deflated && m->packed >= m->size) {
			m->deflated = false;
			p->end = m->packed_at;
		}
	}
	discard_pressed(arg, r);
	return err;
}

static uint64_t piece_cost(void *arg, size_t job)
{
	(void)arg, (void)job;
	return PIECE;
}

static kpack_error_t begin_thread(void *arg, void **state, struct kpackx_error *why)
{
	const struct press *p = arg;
	z_stream *z = xcalloc(1, sizeof(*z));

	(void)why;
	/* negative: raw deflate without a header, as in zip */
	if (deflateInit2(z, p->how->level, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		xalloc_fail(0);
	*state = z;
	return KPACK_SUCCESS;
}

static void end_thread(void *state)
{
	deflateEnd(state);
	free(state);
}

/* Hash and compress the members from FIRST on, but those copied from a wheel. */
static kpack_error_t press_members(struct press *p, size_t first,
				   struct kpackx_error *why)
{
	/* compressed formats: deflate would only cost time */
	static const char *const ends[] = {".kpack", ".zip",  ".whl",   ".gz",   ".tgz",
					   ".bz2",   ".xz",   ".zst",   ".lz4",  ".7z",
					   ".br",    ".png",  ".jpg",   ".jpeg", ".gif",
					   ".webp",  ".woff", ".woff2", ".mp4"};
	unsigned threads = p->how->threads;
	struct pipeline pipeline = {
		.threads = threads,
		.budget = (uint64_t)threads * PIECES_PER_THREAD * PIECE,
		.arg = p,
		.begin = begin_thread,
		.end = end_thread,
		.cost = piece_cost,
		.work = press_piece,
		.commit = commit_piece,
		.discard = discard_pressed,
	};

	p->count = 0;
	for (size_t i = first; i < p->o->count; i++) {
		struct wheel_out_member *m = &p->o->members[i];
		bool more = !m->from;

		m->deflated = more && p->how->level && m->size;
		for (size_t k = 0; k < KP_COUNT(ends); k++)
			m->deflated &= !kp_span_ends(kp_span_str(m->path), ends[k]);
		/* an empty member has one piece */
		for (struct piece piece = {(uint32_t)i, 0}; more; piece.number++) {
			xgrow(&p->pieces, p->count, &p->cap, sizeof(piece));
			p->pieces[p->count++] = piece;
			more = !is_last(m, piece);
		}
	}
	pipeline.n_jobs = p->count;
	return pipeline_run(&pipeline, NULL, why);
}

/* --- the archive ---------------------------------------------------------------------- */

/* 1980-01-01 00:00:00 and 2107-12-31 23:59:58 */
#define DOS_FIRST INT64_C(315532800)
#define DOS_LAST INT64_C(4354819198)

kpack_error_t dos_time_read(const char *epoch, struct dos_time *out,
			    struct kpackx_error *why)
{
	uint64_t seconds = 0;
	time_t clamped;
	struct tm tm;

	if (epoch && *epoch &&
	    (strspn(epoch, "0123456789") != strlen(epoch) ||
	     !options_number(epoch, 0, INT64_MAX, &seconds)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "SOURCE_DATE_EPOCH is not a number of seconds: '%.40s'",
			       epoch);
	clamped = seconds < DOS_FIRST  ? DOS_FIRST
		  : seconds > DOS_LAST ? DOS_LAST
				       : (time_t)seconds;
	gmtime_r(&clamped, &tm);
	out->date =
		(uint16_t)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday);
	out->time = (uint16_t)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2);
	return KPACK_SUCCESS;
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	*p++ = (uint8_t)v;
	*p++ = (uint8_t)(v >> 8);
	return p;
}

static uint8_t *put32(uint8_t *p, uint64_t v)
{
	kp_put_le32(p, (uint32_t)v);
	return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	kp_put_le64(p, v);
	return p + 8;
}

/* A field of 32 bits, all ones if the zip64 field has its value. */
static uint8_t *put_small(uint8_t *p, uint64_t v)
{
	return put32(p, v < UINT32_MAX ? v : UINT32_MAX);
}

/* An archive that is written from front to back: members, then the directory. */
struct zip_writer {
	struct kp_sink sink;
	struct dos_time time; /* of all members */
	uint8_t *directory;   /* the entries so far */
	size_t size, cap, count;
	bool zip64; /* a member needs it */
};

static void zip_writer_fini(struct zip_writer *w)
{
	free(w->directory);
}

static unsigned version_needed(bool zip64, unsigned method)
{
	return zip64                    ? NEEDS_ZIP64
	       : method == ZIP_DEFLATED ? NEEDS_DEFLATED
					: NEEDS_STORED;
}

/* Write a member's header and bytes, and add its entry to the directory. */
static kpack_error_t put_member(struct zip_writer *w, const struct wheel_out_member *m,
				const struct kp_outfile *collected,
				struct kpackx_error *why)
{
	struct kp_source bytes = kp_source_memory(m->bytes, (size_t)m->size);
	const struct wheel_member *from = m->from ? &m->from->members[m->member] : NULL;
	size_t name_size = strlen(m->path), large = 0;
	KP_AUTO_FREE uint8_t *header = xmalloc(LOCAL_MAX + name_size);
	unsigned method = ZIP_STORED, flags = 0;
	uint8_t common[12], *p = common;
	KP_AUTO_CLOSE int fd = -1;
	bool zip64;

	if (!m->size) {
		from = NULL; /* stored, whatever it was */
	} else if (from) {
		method = from->method;
		flags = from->flags & ZIP_DATA;
		bytes = wheel_in_bytes(m->from, m->member);
	} else if (m->deflated) {
		method = ZIP_DEFLATED;
		bytes = kp_source_fd(collected->fd, m->packed_at, m->packed);
	} else if (m->file) {
		KP_TRY(below_file_open_again(m->file, &m->identity, &fd, why));
		bytes = kp_source_fd(fd, 0, m->size);
	}
	for (const char *c = m->path; *c; c++)
		flags |= *c & 0x80 ? UTF_8 : 0;
	p = put16(put16(p, flags), method);
	p = put16(put16(p, w->time.time), w->time.date);
	put32(p, from ? from->crc : m->crc);

	/* the entry: a number that is too large is all ones there, and in the zip64 field */
	uint64_t values[] = {m->size, bytes.size, w->sink.size};

	for (size_t i = 0; i < KP_COUNT(values); i++)
		large += values[i] >= UINT32_MAX;
	while (w->cap - w->size < ENTRY_MAX + name_size) {
		w->cap = w->cap ? 2 * w->cap : 4096;
		w->directory = xrealloc(w->directory, w->cap);
	}
	p = put16(put32(w->directory + w->size, ZIP_ENTRY), MADE_BY);
	p = put16(p, version_needed(large > 0, method));
	p = mempcpy(p, common, sizeof(common));
	p = put_small(put_small(p, bytes.size), m->size);
	p = put16(put16(p, (unsigned)name_size), large ? (unsigned)(4 + 8 * large) : 0);
	p = put16(put16(p, 0), 0); /* comment, disk */
	p = put16(p, from && from->text);
	p = put_small(put32(p, (uint64_t)(S_IFREG | m->mode) << 16), w->sink.size);
	p = mempcpy(p, m->path, name_size);
	if (large)
		p = put16(put16(p, EXTRA_ZIP64), (unsigned)(8 * large));
	for (size_t i = 0; i < KP_COUNT(values); i++)
		if (values[i] >= UINT32_MAX)
			p = put64(p, values[i]);
	w->size = (size_t)(p - w->directory);
	w->zip64 |= large > 0;
	w->count++;

	/* the header in front of the bytes, which has both sizes in its zip64 field or none */
	zip64 = m->size >= UINT32_MAX || bytes.size >= UINT32_MAX;
	p = put16(put32(header, ZIP_LOCAL), version_needed(zip64, method));
	p = mempcpy(p, common, sizeof(common));
	p = put32(p, zip64 ? UINT32_MAX : bytes.size);
	p = put32(p, zip64 ? UINT32_MAX : m->size);
	p = put16(put16(p, (unsigned)name_size), zip64 ? 20 : 0);
	p = mempcpy(p, m->path, name_size);
	if (zip64)
		p = put64(put64(put16(put16(p, EXTRA_ZIP64), 16), m->size), bytes.size);
	KP_TRY(kp_sink_put(&w->sink, header, (size_t)(p - header), why));
	return kp_sink_copy(&w->sink, &bytes, why);
}

/* --- all ------------------------------------------------------------------------------- */

kpack_error_t wheel_out_write(struct wheel_out *o, const struct wheel_out_options *how,
			      const char *dist_info, struct kpackx_error *why)
{
	KP_AUTO(kp_outfile) out = {.fd = -1}, collected = {.fd = -1};
	KP_AUTO(press) p = {.o = o, .how = how, .collected = &collected};
	KP_AUTO(zip_writer) zip = {.sink = {.out = &out}};
	KP_AUTO_FREE char *path = xasprintf("%s/RECORD", dist_info);
	size_t n = o->count, size;
	KP_AUTO_FREE const char **paths = xmalloc((n + 1) * sizeof(*paths));
	uint8_t end[END_MAX], *e = end;
	uint64_t offset;
	char *text;
	FILE *record;

	KP_TRY(dos_time_read(secure_getenv("SOURCE_DATE_EPOCH"), &zip.time, why));
	KP_TRY(below_outfile_open_in(&out, how->dir, how->name, 0666, why));
	KP_TRY(below_outfile_open_in(&collected, how->dir, ".kpack-wheel", 0600, why));
	KP_TRY(press_members(&p, 0, why));
	/* RECORD needs the hashes of all members before it */
	record = xmemstream(&text, &size);
	for (size_t i = 0; i < n; i++) {
		record_put(record, o->members[i].path, o->members[i].digest,
			   o->members[i].size);
		paths[i] = o->members[i].path;
	}
	record_put(record, path, NULL, 0);
	fclose(record);
	wheel_out_add_text(o, dist_info, "RECORD", text, size);
	paths[n] = path;
	kp_sort(paths, o->count, KP_AS_TEXT);
	for (size_t i = 1; i < o->count; i++)
		if (strcmp(paths[i - 1], paths[i]) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%.150s: added twice", paths[i]);
	KP_TRY(press_members(&p, n, why));
	for (size_t i = 0; i < o->count; i++) {
		if (o->members[i].from)
			progress_add(o->members[i].size);
		KP_TRY(put_member(&zip, &o->members[i], &collected, why));
	}

	/* the directory, and where it is */
	offset = zip.sink.size;
	KP_TRY(kp_sink_put(&zip.sink, zip.directory, zip.size, why));
	if (zip.zip64 || zip.count > UINT16_MAX || offset > UINT32_MAX) {
		e = put64(put32(e, ZIP_END64), 44);
		e = put16(put16(e, NEEDS_ZIP64), NEEDS_ZIP64);
		e = put32(put32(e, 0), 0); /* disks */
		e = put64(put64(e, zip.count), zip.count);
		e = put64(put64(e, zip.size), offset);
		e = put32(put32(e, ZIP_LOCATOR), 0);
		e = put32(put64(e, zip.sink.size), 1);
	}
	e = put16(put16(put32(e, ZIP_END), 0), 0);
	for (int i = 0; i < 2; i++)
		e = put16(e, zip.count < UINT16_MAX ? (unsigned)zip.count : UINT16_MAX);
	e = put_small(put_small(e, zip.size), offset);
	e = put16(e, 0); /* comment */
	KP_TRY(kp_sink_put(&zip.sink, end, (size_t)(e - end), why));
	KP_TRY(kp_outfile_sync(&out, why));
	return kp_outfile_publish(&out, why);
}
