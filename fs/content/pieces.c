/* SPDX-License-Identifier: MIT */
/*
 * The life of a piece.  pieces_add puts it into the table, where readers find it.  It is
 * admitted at once, which charges its memory and pins it, or waits in one of three lists:
 * `queue` for what readers asked for, first come first served; `ahead` for what nobody
 * asked for yet; `joined` for segments that a busy pass will reach.  When its last pin
 * goes it rests in `spent`, if all its bytes were served, or in `rested`, and is evicted
 * from there: to make room, the spent ones first, or when its time is over.  What is dead
 * is freed when the lock is released, because that takes milliseconds.
 *
 * Memory is charged in bytes: `held` is the sum of all charged pieces, of what their
 * decoders hold besides, and of the passes.  If nothing can be freed and nothing is in
 * use, one piece is admitted whatever it takes: otherwise it could never be decoded.
 */
#include <stdlib.h>
#include "internal.h"
#include "core/archive/shared.h"
#include "fs/base/clock.h"

#define PAGE 4096
/* Seconds that an unused piece is kept: if all its bytes were served, and if not. */
#define SPENT_SECONDS 2
#define IDLE_SECONDS 60
/* Seconds without a read after which the reader of a part of a piece counts as gone. */
#define READ_SECONDS 5
/* Seconds that a pass may rest before it is dropped. */
#define PASS_SECONDS 60
/*
 * Bytes of pieces served whole that are kept for readers close behind; the oldest go
 * first.
 */
#define SPENT_MAX (4 << 20)
/* Seconds without a decode after which blocks kept for the next one are freed. */
#define KEEP_SECONDS 2

/*
 * A decoder is kept for the next decode if it has at most 1/KEPT_SHARE of the budget, and no
 * more than DECODER_KEEP_MAX bytes.  Blocks have room for ROOM_KEPT times as much.
 */
#define KEPT_SHARE 16
#define ROOM_KEPT 7
#define DECODER_KEEP_MAX (4 << 20)
/*
 * An entry that fits the budget may have a pass of at most 1/PASS_SHARE of the budget.
 */
#define PASS_SHARE 16
/* The most pieces that wait to be decoded ahead; the oldest are dropped first. */
#define AHEAD_WAITING 64
/*
 * Bytes for segments if passes take most of the memory: with fewer, readers of
 * neighbouring segments would displace each other's and cause restarts.
 */
#define BESIDE (4 << 20)
/* Decoded blocks of shared archives may take 1/BLOCKS_SHARE of the budget. */
#define BLOCKS_SHARE 4

/* Pieces of up to FAIR_MIN bytes are decoded whole, however small the budget is. */
#define FAIR_MIN (1 << 20)
/* Windows of up to WINDOW_MIN bytes are always allowed: zstd's levels use no larger one,
 * except the highest levels. */
#define WINDOW_MIN (8 << 20)

/* --- passes --------------------------------------------------------------------------- */

/* Bytes that a decoder holds besides its window: temporary blocks, tables. */
#define DECODER (512 << 10)

uint64_t pass_cost(uint64_t window)
{
	return window + DECODER;
}

struct pass *passes_nearest(const struct passes *ps, uint64_t entry, uint64_t number,
			    bool busy)
{
	struct pass *best = NULL;

	for (struct pass *p = ps->first; p; p = p->next)
		if (p->entry == entry && p->busy == busy && !p->ended &&
		    p->at <= number && (!best || p->at > best->at))
			best = p;
	return best;
}

bool passes_have(const struct passes *ps, uint64_t entry)
{
	for (const struct pass *p = ps->first; p; p = p->next)
		if (p->entry == entry)
			return true;
	return false;
}

/* The pass that has rested longest, other than EXCEPT; or NULL. */
static struct pass *passes_oldest(const struct passes *ps, const struct pass *except)
{
	struct pass *oldest = NULL;

	for (struct pass *p = ps->first; p; p = p->next)
		if (!p->busy && p != except)
			oldest = p;
	return oldest;
}

static void unlink_pass(struct passes *ps, struct pass *pass)
{
	struct pass **at = &ps->first;

	while (*at != pass)
		at = &(*at)->next;
	*at = pass->next;
}

/* Called without a lock.  DECODERS: where the pass has its decoder from. */
static void pass_free(struct pass *pass, struct decoders *decoders)
{
	decoders_close(decoders, pass->decoder);
	origin_unref(pass->origin);
	free(pass);
}

/* Lists. */

static void list_add(struct piece_list *l, struct piece *p)
{
	p->list = l;
	p->prev = l->last;
	p->next = NULL;
	*(l->last ? &l->last->next : &l->first) = p;
	l->last = p;
	l->length++;
}

static void list_remove(struct piece *p)
{
	struct piece_list *l = p->list;

	if (!l)
		return;
	*(p->prev ? &p->prev->next : &l->first) = p->next;
	*(p->next ? &p->next->prev : &l->last) = p->prev;
	p->list = NULL;
	l->length--;
}

static void wake(struct pieces *ps, enum executor_job job)
{
	ps->executor->wake(ps->executor, job);
}

/* The lock.  Buffers are freed without it, because that takes milliseconds. */

void pieces_enter(struct pieces *ps)
{
	pthread_mutex_lock(&ps->lock);
}

void pieces_leave(struct pieces *ps)
{
	struct piece *p = ps->dead, *next;
	struct pass *pass = ps->dead_passes, *next_pass;
	bool frees = p || pass;

	ps->dead = NULL;
	ps->dead_passes = NULL;
	if (frees)
		ps->freeing++;
	pthread_mutex_unlock(&ps->lock);
	for (; p; p = next) {
		next = p->next;
		buffers_put(&ps->buffers, p->buffer);
		if (p->origin)
			origin_unref(p->origin);
		free(p);
	}
	for (; pass; pass = next_pass) {
		next_pass = pass->next;
		pass_free(pass, &ps->decoders);
	}
	if (frees)
		ps->freeing--;
}

/* The table of pieces. */

static size_t bucket_of(uint64_t entry, uint64_t number)
{
	uint64_t h = (entry + number * UINT64_C(0xff51afd7ed558ccd)) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return h >> (64 - BUCKETS_LOG2);
}

struct piece *pieces_find(const struct pieces *ps, uint64_t entry, uint64_t unit,
			  uint64_t number)
{
	struct piece *p = ps->buckets[bucket_of(entry, number)];

	while (p && (p->entry != entry || p->number != number || p->unit != unit))
		p = p->same_bucket;
	return p;
}

struct piece *pieces_add(struct pieces *ps, uint64_t entry, uint64_t unit,
			 uint64_t number, uint64_t size)
{
	struct piece *p = calloc(1, sizeof(*p)), **at;

	if (!p)
		return NULL;
	p->entry = entry;
	p->unit = unit;
	p->number = number;
	p->size = size;
	at = &ps->buckets[bucket_of(entry, number)];
	p->same_bucket = *at;
	*at = p;
	return p;
}

static void forget_piece(struct pieces *ps, struct piece *p)
{
	struct piece **at = &ps->buckets[bucket_of(p->entry, p->number)];

	while (*at != p)
		at = &(*at)->same_bucket;
	*at = p->same_bucket;
}

/* Memory.  A piece is charged from its admission until it is buried. */

static uint64_t round_up(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static uint64_t piece_cost(const struct piece *p)
{
	return round_up(p->size) + p->beside;
}

uint64_t pieces_held(struct pieces *ps)
{
	uint64_t held = ps->held + kp_pool_held();

	if (held > ps->held_most)
		ps->held_most = held;
	return held;
}

static void charge_bytes(struct pieces *ps, uint64_t bytes)
{
	ps->held += bytes;
	pieces_held(ps);
}

/* Memory may be kept for the next decode: let pieces_tend free it if there is none. */
static void expect_kept(struct pieces *ps)
{
	if (!ps->keeping)
		wake(ps, JOB_TEND);
	ps->keeping = true;
}

static void bury_piece(struct pieces *ps, struct piece *p)
{
	expect_kept(ps);
	if (p->charged)
		ps->held -= piece_cost(p);
	p->next = ps->dead;
	ps->dead = p;
	if (ps->queue.first)
		wake(ps, JOB_DECODE);
}

/* Remove P from its list, if it is in one. */
static void unlist_piece(struct pieces *ps, struct piece *p)
{
	if (p->list == &ps->spent)
		ps->spent_bytes -= piece_cost(p);
	list_remove(p);
}

static void evict_piece(struct pieces *ps, struct piece *p)
{
	unlist_piece(ps, p);
	forget_piece(ps, p);
	bury_piece(ps, p);
}

static void drop_pass(struct pieces *ps, struct pass *pass)
{
	struct passes *all = &ps->passes;

	expect_kept(ps);
	unlink_pass(all, pass);
	all->bytes -= pass_cost(pass->window);
	if (!pass->ended)
		all->dropped[all->n_dropped++ % PASSES_DROPPED] = pass->entry;
	ps->held -= pass_cost(pass->window);
	pass->next = ps->dead_passes;
	ps->dead_passes = pass;
	if (ps->queue.first)
		wake(ps, JOB_DECODE);
}

/* The bytes of the budget that decoded blocks of shared archives take. */
static uint64_t blocks_held(const struct pieces *ps)
{
	uint64_t held = kp_pool_held(), most = ps->budget / BLOCKS_SHARE;

	return held < most ? held : most;
}

/*
 * The limit of held bytes, which the blocks of shared archives move at any moment.  If passes
 * take most of the budget, segments get BESIDE bytes more.
 */
static uint64_t held_limit(const struct pieces *ps)
{
	uint64_t passes = ps->passes.bytes;

	if (passes <= ps->budget / 2)
		return ps->budget - blocks_held(ps);
	return (passes > ps->budget ? passes : ps->budget) + BESIDE;
}

static bool is_within(const struct pieces *ps, uint64_t more, uint64_t most)
{
	return ps->held <= most && more <= most - ps->held;
}

/* Drop an unused piece, preferably one that was served whole, to make room; false: none. */
static bool crowd_out(struct pieces *ps)
{
	struct piece *p = ps->spent.first ? ps->spent.first : ps->rested.first;

	if (!p)
		return false;
	ps->n_crowded_out++;
	evict_piece(ps, p);
	return true;
}

/* Drop pieces and passes until MORE bytes fit in MOST; the pass KEPT is not dropped. */
static bool make_room(struct pieces *ps, uint64_t more, uint64_t most,
		      const struct pass *kept)
{
	struct pass *pass;

	while (!is_within(ps, more, most) && crowd_out(ps))
		continue;
	while (!is_within(ps, more, most) && (pass = passes_oldest(&ps->passes, kept)))
		drop_pass(ps, pass);
	return is_within(ps, more, most);
}

static void begin_piece(struct pieces *ps, struct piece *p)
{
	charge_bytes(ps, piece_cost(p));
	p->charged = true;
	ps->active++;
	p->pins++;
}

/* Admit P if there is room, or if no piece is in use; the pass KEPT is not dropped. */
static bool admit_piece(struct pieces *ps, struct piece *p, const struct pass *kept)
{
	if (!make_room(ps, piece_cost(p), held_limit(ps), kept) && ps->active)
		return false;
	begin_piece(ps, p);
	return true;
}

bool pieces_admit(struct pieces *ps, struct piece *p)
{
	return !ps->starved && admit_piece(ps, p, NULL);
}

struct piece *pieces_add_spare(struct pieces *ps, uint64_t entry, uint64_t unit,
			       uint64_t number, uint64_t size)
{
	uint64_t most = held_limit(ps), cost = round_up(size);
	struct piece *p;

	if (ps->queue.first || ps->held + cost > most + ps->spent_bytes)
		return NULL;
	while (!is_within(ps, cost, most))
		crowd_out(ps); /* what was served whole is enough */
	p = pieces_add(ps, entry, unit, number, size);
	if (p)
		begin_piece(ps, p);
	return p;
}

bool pieces_is_crowded(const struct pieces *ps, uint64_t size)
{
	uint64_t most = held_limit(ps), in_use = ps->held - ps->spent_bytes;
	time_t before = clock_seconds() - READ_SECONDS;

	if (round_up(size) > most)
		return true;
	for (const struct piece *p = ps->rested.first;
	     p && p->used < before && in_use > most - round_up(size); p = p->next)
		in_use -= piece_cost(p);
	return in_use > most - round_up(size);
}

uint64_t pieces_fair(const struct pieces *ps)
{
	uint64_t budget = ps->budget;

	return budget < 2 * FAIR_MIN ? FAIR_MIN : budget - budget / 8;
}

bool pieces_may_begin(const struct pieces *ps, uint64_t window)
{
	uint64_t cost = pass_cost(window);

	return cost <= ps->budget / PASS_SHARE &&
	       ps->passes.bytes + cost <= ps->budget / 4;
}

uint64_t pieces_window(const struct pieces *ps)
{
	return ps->most > WINDOW_MIN ? ps->most : WINDOW_MIN;
}

bool pieces_back(struct pieces *ps, struct piece *p)
{
	return buffers_get(&ps->buffers, p->size, &p->buffer);
}

void pieces_done(struct pieces *ps, struct piece *p, bool failed)
{
	ps->decoded = clock_seconds();
	expect_kept(ps);
	p->failed = failed;
	ps->held -= p->beside;
	p->beside = 0;
	if (failed)
		forget_piece(ps, p);
	else
		p->ready = p->size;
}

/* Pins. */

void pieces_pin(struct pieces *ps, struct piece *p)
{
	unlist_piece(ps, p);
	ps->active += p->pins == 0;
	p->pins++;
}

void pieces_unpin(struct pieces *ps, struct piece *p)
{
	bool first = !ps->spent.first && !ps->rested.first;
	bool spent = p->served >= p->size;

	if (--p->pins)
		return;
	ps->active--;
	if (p->failed) {
		bury_piece(ps, p);
	} else if (spent && p->size <= INLINE_MAX && p->kind != PIECE_SEGMENT) {
		evict_piece(ps, p); /* it is cheap to decode again */
	} else {
		p->used = clock_seconds();
		list_add(spent ? &ps->spent : &ps->rested, p);
		if (first)
			wake(ps, JOB_TEND);
		if (spent)
			ps->spent_bytes += piece_cost(p);
		while (spent && ps->spent_bytes > SPENT_MAX && ps->spent.first != p)
			crowd_out(ps);
	}
	if (ps->starved)
		wake(ps, JOB_DECODE);
}

/* The queue. */

void pieces_queue(struct pieces *ps, struct piece *p)
{
	list_add(&ps->queue, p);
	wake(ps, JOB_DECODE);
}

bool pieces_are_idle(const struct pieces *ps, uint64_t bytes)
{
	return !ps->queue.first && ps->budget >= AHEAD_BUDGET &&
	       is_within(ps, bytes, ps->budget / 2);
}

void pieces_queue_ahead(struct pieces *ps, struct piece *p)
{
	list_add(&ps->ahead, p);
	if (ps->ahead.length > AHEAD_WAITING)
		evict_piece(ps, ps->ahead.first);
	wake(ps, JOB_DECODE);
}

bool pieces_want(struct pieces *ps, struct piece *p)
{
	p->ahead = 0;
	if (p->list != &ps->ahead)
		return false;
	list_remove(p);
	return true;
}

bool pieces_catch(struct pieces *ps, struct piece *p)
{
	if (p->list != &ps->queue && p->list != &ps->joined && p->list != &ps->ahead)
		return false;
	list_remove(p);
	make_room(ps, piece_cost(p), held_limit(ps), NULL);
	begin_piece(ps, p);
	return true;
}

void pieces_defer(struct pieces *ps, struct piece *p, uint64_t window)
{
	buffers_put(&ps->buffers, p->buffer);
	p->buffer = (struct buffer){0};
	ps->held -= piece_cost(p);
	p->charged = false;
	p->window = window;
	p->pass = NULL;
	p->pins--;
	ps->active--;
	if (p->ahead)
		pieces_queue_ahead(ps, p);
	else
		pieces_queue(ps, p);
}

bool pieces_add_beside(struct pieces *ps, struct piece *p, uint64_t bytes)
{
	bool room;

	if (p->ahead)
		room = pieces_are_idle(ps, bytes);
	else
		room = make_room(ps, bytes, held_limit(ps), NULL) || ps->active == 1;
	if (room)
		charge_bytes(ps, bytes);
	else
		pieces_defer(ps, p, p->window);
	p->beside = bytes;
	return room;
}

enum start { STARTED, JOINED, NO_ROOM };

/*
 * Admit P.  A segment gets a pass that rests before it, or joins one that will reach it, or
 * begins one, with at most half of the budget for all passes that are not busy; if there is no
 * memory for that, it has none.
 */
static enum start start_piece(struct pieces *ps, struct piece *p)
{
	struct passes *all = &ps->passes;
	struct pass *busy, *idle, *oldest;
	uint64_t most, more;
	bool again;

	if (p->kind != PIECE_SEGMENT)
		return admit_piece(ps, p, NULL) ? STARTED : NO_ROOM;
	busy = passes_nearest(all, p->entry, p->number, true);
	idle = passes_nearest(all, p->entry, p->number, false);
	if (busy && (!idle || idle->at < busy->at)) {
		list_remove(p);
		list_add(&ps->joined, p);
		return JOINED;
	}
	if (idle) {
		if (!admit_piece(ps, p, idle))
			return NO_ROOM;
		idle->busy = true;
		p->pass = idle;
		return STARTED;
	}

	most = pieces_window(ps);
	most = p->window < most ? p->window : most;
	more = pass_cost(most);
	while (all->bytes + more > ps->budget / 2 && (oldest = passes_oldest(all, NULL)))
		drop_pass(ps, oldest);
	if (!make_room(ps, more + piece_cost(p), ps->budget - blocks_held(ps), NULL) &&
	    ps->active)
		return NO_ROOM;
	again = passes_have(all, p->entry);
	for (unsigned i = 0; i < PASSES_DROPPED; i++)
		again = again || all->dropped[i] == p->entry;
	p->pass = calloc(1, sizeof(*p->pass));
	if (p->pass) {
		*p->pass = (struct pass){.next = all->first,
					 .entry = p->entry,
					 .origin = origin_ref(p->origin),
					 .window = most,
					 .busy = true};
		all->first = p->pass;
		all->bytes += more;
		all->begun++;
		all->restarts += again;
		charge_bytes(ps, more);
	}
	begin_piece(ps, p);
	return STARTED;
}

/*
 * The next piece that may be decoded now, or NULL: of those that are asked for, else of those
 * to be decoded ahead, which are dropped if there is no room.
 */
static struct piece *next_job(struct pieces *ps)
{
	enum start started = NO_ROOM;
	struct piece *p;

	while ((p = ps->queue.first) && (started = start_piece(ps, p)) == JOINED)
		continue;
	ps->starved = p && started == NO_ROOM;
	if (ps->starved)
		return NULL;
	while (!p && (p = ps->ahead.first)) {
		started = NO_ROOM;
		if (pieces_are_idle(ps, piece_cost(p) + pass_cost(p->window)))
			started = start_piece(ps, p);
		if (started == NO_ROOM)
			evict_piece(ps, p);
		if (started != STARTED)
			p = NULL;
	}
	if (!p)
		return NULL;
	list_remove(p);
	if (ps->queue.first || ps->ahead.first)
		wake(ps, JOB_DECODE);
	return p;
}

void pieces_release(struct pieces *ps, struct pass *pass)
{
	struct piece *p = ps->joined.first, *next;

	/* the segments that joined it go to the end of the queue: other pieces waited
	 * longer */
	for (; p; p = next) {
		next = p->next;
		if (p->entry != pass->entry)
			continue;
		list_remove(p);
		list_add(&ps->queue, p);
	}
	/* it rests as the most recently used */
	unlink_pass(&ps->passes, pass);
	pass->next = ps->passes.first;
	ps->passes.first = pass;
	pass->busy = false;
	pass->used = clock_seconds();
	if (pass->ended || atomic_load(&pass->origin->idle))
		drop_pass(ps, pass);
	wake(ps, JOB_TEND);
	if (ps->queue.first)
		wake(ps, JOB_DECODE);
}

bool pieces_take(struct pieces *ps, struct piece **out)
{
	struct executor *e = ps->executor;
	bool stopped;

	pieces_enter(ps);
	stopped = e->stopped;
	*out = stopped ? NULL : next_job(ps);
	/* pieces_leave frees what is dead before the wait. */
	if (!stopped && !*out && !ps->dead && !ps->dead_passes)
		e->wait(e, JOB_DECODE, &ps->lock, 0);
	pieces_leave(ps);
	return !stopped;
}

/* Time. */

static void expire_pieces(struct pieces *ps, struct piece_list *l, time_t before)
{
	for (; l->first && l->first->used <= before; ps->n_expired++)
		evict_piece(ps, l->first);
}

/* Free what is kept for the next decode. */
static void trim_memory(struct pieces *ps)
{
	buffers_trim(&ps->buffers);
	decoders_trim(&ps->decoders);
}

bool pieces_tend(struct pieces *ps)
{
	struct executor *e = ps->executor;
	bool trim, stopped;
	struct pass *pass;

	pieces_enter(ps);
	if (!e->stopped) {
		bool leftovers = ps->spent.first || ps->rested.first || ps->keeping ||
				 passes_oldest(&ps->passes, NULL);

		e->wait(e, JOB_TEND, &ps->lock, leftovers ? 1 : 0);
	}
	stopped = e->stopped;
	expire_pieces(ps, &ps->spent, clock_seconds() - SPENT_SECONDS);
	expire_pieces(ps, &ps->rested, clock_seconds() - IDLE_SECONDS);
	while ((pass = passes_oldest(&ps->passes, NULL)) &&
	       pass->used <= clock_seconds() - PASS_SECONDS)
		drop_pass(ps, pass);
	trim = ps->keeping && !ps->freeing &&
	       ps->decoded < clock_seconds() - KEEP_SECONDS;
	ps->keeping = ps->keeping && !trim;
	pieces_leave(ps);
	if (trim)
		trim_memory(ps);
	return !stopped;
}

void pieces_shrink(struct pieces *ps, unsigned percent)
{
	uint64_t budget = ps->most / 100 * percent + ps->most % 100 * percent / 100;
	struct pass *pass;

	pieces_enter(ps);
	ps->budget = percent >= 100 ? ps->most : budget;
	kp_pool_limit(ps->budget / BLOCKS_SHARE);
	while (percent < 100 && crowd_out(ps))
		continue;
	while (percent < 100 && (pass = passes_oldest(&ps->passes, NULL)))
		drop_pass(ps, pass);
	if (ps->queue.first)
		wake(ps, JOB_DECODE);
	pieces_leave(ps);
	if (percent < 100)
		trim_memory(ps);
}

void pieces_forget(struct pieces *ps, const struct origin *o)
{
	struct pass *next;

	for (struct pass *pass = ps->passes.first; pass; pass = next) {
		next = pass->next;
		if (pass->origin != o)
			continue;
		pass->ended = true;
		if (!pass->busy)
			drop_pass(ps, pass);
	}
}

void pieces_init(struct pieces *ps, uint64_t budget, struct executor *executor)
{
	*ps = (struct pieces){.most = budget, .budget = budget, .executor = executor};
	kp_pool_limit(budget / BLOCKS_SHARE);
	buffers_init(&ps->buffers, budget / KEPT_SHARE * ROOM_KEPT);
	decoders_init(&ps->decoders, budget / KEPT_SHARE < DECODER_KEEP_MAX
					     ? budget / KEPT_SHARE
					     : DECODER_KEEP_MAX);
	pthread_mutex_init(&ps->lock, NULL);
}

void pieces_fini(struct pieces *ps)
{
	for (size_t i = 0; i < KP_COUNT(ps->buckets); i++) {
		struct piece *p = ps->buckets[i], *next;

		for (; p; p = next) {
			next = p->same_bucket;
			buffers_put(&ps->buffers, p->buffer);
			free(p);
		}
	}
	for (struct pass *p = ps->passes.first, *next; p; p = next) {
		next = p->next;
		pass_free(p, &ps->decoders);
	}
	buffers_fini(&ps->buffers);
	decoders_fini(&ps->decoders);
	pthread_mutex_destroy(&ps->lock);
}
