/* SPDX-License-Identifier: MIT */
#include "press.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include "deflate_piece.h"
#include "packer/cli/digest.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Pieces in memory per thread: one being compressed, others waiting for their turn. */
enum { PIECES_PER_THREAD = 4 };

struct piece {
	uint32_t member;
	uint32_t number; /* index in the member */
};

struct pressing {
	const struct wheel_press *p;
	struct piece *pieces;
	size_t count, cap;
	struct digest hash; /* of the member whose pieces are being committed */
};

struct result {
	uint8_t *plain; /* DATA, after the bytes before it for the dictionary */
	struct kp_span data;
	uint8_t *packed;
	size_t packed_size;
	uint32_t crc;
};

bool wheel_press_stores(const char *path)
{
	static const char *const ends[] = {".kpack", ".zip",  ".whl",   ".gz",   ".tgz",
					   ".bz2",   ".xz",   ".zst",   ".lz4",  ".7z",
					   ".br",    ".png",  ".jpg",   ".jpeg", ".gif",
					   ".webp",  ".woff", ".woff2", ".mp4"};

	for (size_t i = 0; i < KP_COUNT(ends); i++)
		if (kp_span_ends(kp_span_str(path), ends[i]))
			return true;
	return false;
}

static bool is_last(const struct wheel_out_member *m, struct piece piece)
{
	uint64_t end = ((uint64_t)piece.number + 1) * DEFLATE_PIECE_MAX;

	return end >= m->size;
}

static kpack_error_t open_bytes(const struct wheel_out_member *m, struct kp_source *src,
				struct kpackx_error *why)
{
	int fd;

	*src = kp_source_memory(m->bytes, (size_t)m->size);
	if (!m->file)
		return KPACK_SUCCESS;
	KP_TRY(below_file_open_again(m->file, &m->identity, &fd, why));
	*src = kp_source_fd(fd, 0, m->size);
	return KPACK_SUCCESS;
}

/* Read the piece and the bytes before it that deflate refers to. */
static kpack_error_t read_piece(const struct wheel_out_member *m, struct piece piece,
				struct result *r, struct kp_span *before,
				struct kpackx_error *why)
{
	uint64_t at = (uint64_t)piece.number * DEFLATE_PIECE_MAX;
	size_t n = m->size - at < DEFLATE_PIECE_MAX ? (size_t)(m->size - at)
						    : DEFLATE_PIECE_MAX;
	size_t n_before = m->deflated && at ? DEFLATE_BEFORE_MAX : 0;
	struct kp_source src;
	kpack_error_t err;

	KP_TRY(open_bytes(m, &src, why));
	r->plain = xmalloc(n_before + n);
	err = kp_source_read(&src, at - n_before, r->plain, n_before + n, why);
	if (src.fd >= 0)
		close(src.fd);
	*before = (struct kp_span){r->plain, n_before};
	r->data = (struct kp_span){r->plain + n_before, n};
	return err ? kp_fail_prefix(why, err, "%s", m->path) : KPACK_SUCCESS;
}

static void discard_result(void *arg, void *result)
{
	struct result *r = result;

	(void)arg;
	if (!r)
		return;
	free(r->plain);
	free(r->packed);
	free(r);
}

static kpack_error_t press_piece(void *arg, void *state, size_t job, void **result,
				 struct kpackx_error *why)
{
	const struct pressing *pressing = arg;
	struct piece piece = pressing->pieces[job];
	const struct wheel_out_member *m = &pressing->p->members[piece.member];
	struct result *r = xcalloc(1, sizeof(*r));
	struct kp_span before;
	kpack_error_t err = read_piece(m, piece, r, &before, why);

	if (!err) {
		r->crc = (uint32_t)crc32_z(0, r->data.data, r->data.size);
		if (m->deflated)
			err = deflate_piece_run(state, before, r->data, is_last(m, piece),
						&r->packed, &r->packed_size, why);
	}
	if (err)
		discard_result(arg, r);
	else
		*result = r;
	return err;
}

/* Complete a member after its last piece. */
static kpack_error_t finish_member(struct pressing *pressing, struct wheel_out_member *m,
				   struct kpackx_error *why)
{
	uint8_t digest[DIGEST_MAX];

	KP_TRY(digest_end(&pressing->hash, digest, why));
	memcpy(m->digest, digest, sizeof(m->digest));
	if (m->deflated && m->packed >= m->size) {
		m->deflated = false;
		*pressing->p->end = m->packed_at;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t take_piece(struct pressing *pressing, struct piece piece,
				const struct result *r, struct kpackx_error *why)
{
	const struct wheel_press *p = pressing->p;
	struct wheel_out_member *m = &p->members[piece.member];

	if (piece.number == 0) {
		digest_begin(&pressing->hash, DIGEST_SHA256);
		m->packed_at = *p->end;
	}
	digest_add(&pressing->hash, r->data);
	m->crc = (uint32_t)crc32_combine(m->crc, r->crc, (z_off_t)r->data.size);
	if (r->packed_size)
		KP_TRY(kp_outfile_pwrite(p->collected, *p->end, r->packed, r->packed_size,
					 why));
	*p->end += r->packed_size;
	m->packed += r->packed_size;
	if (p->progress)
		p->progress(p->arg, r->data.size);
	return is_last(m, piece) ? finish_member(pressing, m, why) : KPACK_SUCCESS;
}

static kpack_error_t commit_piece(void *arg, size_t job, void *result,
				  struct kpackx_error *why)
{
	struct pressing *pressing = arg;
	kpack_error_t err = take_piece(pressing, pressing->pieces[job], result, why);

	discard_result(arg, result);
	return err;
}

static uint64_t piece_cost(void *arg, size_t job)
{
	(void)arg, (void)job;
	return DEFLATE_PIECE_MAX;
}

static kpack_error_t begin_thread(void *arg, void **state, struct kpackx_error *why)
{
	const struct pressing *pressing = arg;
	int level = pressing->p->level;

	(void)why;
	*state = level ? deflate_piece_new(level) : NULL;
	return KPACK_SUCCESS;
}

static void end_thread(void *state)
{
	deflate_piece_free(state);
}

/* List the pieces of all members; an empty member has one piece. */
static void list_pieces(struct pressing *pressing)
{
	const struct wheel_press *p = pressing->p;

	for (size_t i = p->first; i < p->count; i++) {
		struct wheel_out_member *m = &p->members[i];
		struct piece piece = {(uint32_t)i, 0};
		bool more = !m->from;

		m->deflated =
			!m->from && p->level && m->size && !wheel_press_stores(m->path);
		for (; more; piece.number++) {
			xgrow(&pressing->pieces, pressing->count, &pressing->cap,
			      sizeof(piece));
			pressing->pieces[pressing->count++] = piece;
			more = !is_last(m, piece);
		}
	}
}

kpack_error_t wheel_press_run(const struct wheel_press *p, struct kpackx_error *why)
{
	struct pressing pressing = {.p = p};
	struct pipeline pipeline = {
		.threads = p->threads,
		.budget = (uint64_t)p->threads * PIECES_PER_THREAD * DEFLATE_PIECE_MAX,
		.arg = &pressing,
		.begin = begin_thread,
		.end = end_thread,
		.cost = piece_cost,
		.work = press_piece,
		.commit = commit_piece,
		.discard = discard_result,
	};
	kpack_error_t err;

	list_pieces(&pressing);
	pipeline.n_jobs = pressing.count;
	err = pipeline_run(&pipeline, NULL, why);
	free(pressing.pieces);
	digest_fini(&pressing.hash);
	return err;
}
