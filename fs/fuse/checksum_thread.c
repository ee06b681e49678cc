/* SPDX-License-Identifier: MIT */
#include "checksum_thread.h"
#include "fs/content/bundle_read.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

/* Bytes of content that are read at a time. */
#define STEP (256 << 10)

/* A read that waits for digests. */
struct request {
	struct request *next;
	struct checksums *sums;
	uint64_t off;
	size_t len;
	void *token;
};

/* A read of content that the thread waits for. */
struct step {
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t done;
	bool answered, failed;
	size_t size;
	uint8_t bytes[STEP];
};

struct checksum_thread {
	struct content *content;
	content_answer *answer;
	pthread_mutex_t lock; /* guards the fields below and all digests */
	pthread_cond_t work;
	struct request *first, **last;
	pthread_t thread;
	bool running, stop;

	struct step step; /* used by the thread only */
};

static void take_step(void *token, const void *data, size_t size,
		      const struct kpackx_error *why)
{
	struct step *s = token;

	pthread_mutex_lock(&s->lock);
	s->failed = why != NULL || size > sizeof(s->bytes);
	s->size = s->failed ? 0 : size;
	if (s->size)
		memcpy(s->bytes, data, s->size);
	s->answered = true;
	pthread_cond_signal(&s->done);
	pthread_mutex_unlock(&s->lock);
}

/* Read up to STEP bytes at OFF, and wait for them; false: they cannot be read. */
static bool read_step(struct checksum_thread *h, const struct file_content *what,
		      uint64_t off)
{
	struct step *s = &h->step;

	s->answered = false;
	if (what->bundle)
		content_read_bundle(h->content, what->bundle, off, sizeof(s->bytes),
				    take_step, s);
	else
		content_read_to(h->content, what->entry, off, sizeof(s->bytes), take_step,
				s);
	pthread_mutex_lock(&s->lock);
	while (!s->answered)
		pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return !s->failed;
}

static bool is_stopped(struct checksum_thread *h)
{
	bool stop;

	pthread_mutex_lock(&h->lock);
	stop = h->stop;
	pthread_mutex_unlock(&h->lock);
	return stop;
}

static bool add_bytes(struct checksum_thread *h, const struct file_content *what,
		      EVP_MD_CTX *hash)
{
	struct step *s = &h->step;
	uint64_t size = file_content_size(what);

	for (uint64_t off = 0; off < size; off += s->size)
		if (is_stopped(h) || !read_step(h, what, off) || s->size == 0 ||
		    EVP_DigestUpdate(hash, s->bytes, s->size) != 1)
			return false;
	return true;
}

/* Compute the digest of LINE of SUMS; zeros if its file cannot be read. */
static void compute_digest(struct checksum_thread *h, const struct checksums *sums,
			   uint32_t line, char digits[CHECKSUM_DIGITS + 1])
{
	struct file_content what = {0};
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	unsigned char bytes[CHECKSUM_DIGITS / 2] = {0};

	if (!hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1 ||
	    !checksums_file(sums, line, &what) || !add_bytes(h, &what, hash) ||
	    EVP_DigestFinal_ex(hash, bytes, NULL) != 1)
		memset(bytes, 0, sizeof(bytes));
	EVP_MD_CTX_free(hash);
	file_content_unref(&what);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
}

/*
 * Wait for the oldest read.  If all its digests are known, READY is set and the read is
 * removed from the queue; else LINE is a line whose digest it needs.  NULL: stopped.
 */
static struct request *next_read(struct checksum_thread *h, uint32_t *line, bool *ready)
{
	struct request *r;

	while (!h->first && !h->stop)
		pthread_cond_wait(&h->work, &h->lock);
	r = h->stop ? NULL : h->first;
	if (!r)
		return NULL;
	*ready = !checksums_unknown(r->sums, r->off, r->len, line);
	if (*ready) {
		h->first = r->next;
		if (!h->first)
			h->last = &h->first;
	}
	return r;
}

static void reply_read(struct checksum_thread *h, struct request *r)
{
	h->answer(r->token, checksums_text(r->sums) + r->off, r->len, NULL);
	checksums_unref(r->sums);
	free(r);
}

static void answer_reads(struct checksum_thread *h)
{
	char digits[CHECKSUM_DIGITS + 1];
	struct request *r;
	uint32_t line;
	bool ready;

	pthread_mutex_lock(&h->lock);
	while ((r = next_read(h, &line, &ready))) {
		pthread_mutex_unlock(&h->lock);
		if (ready)
			reply_read(h, r);
		else
			compute_digest(h, r->sums, line, digits);
		pthread_mutex_lock(&h->lock);
		if (!ready && !h->stop)
			checksums_set(r->sums, line, digits);
	}
	pthread_mutex_unlock(&h->lock);
}

static void *run_thread(void *arg)
{
	/* without its configuration file, because no file may be opened any more */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	answer_reads(arg);
	return NULL;
}

struct checksum_thread *checksum_thread_new(struct content *content,
					    content_answer *answer)
{
	struct checksum_thread *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->content = content;
	h->answer = answer;
	h->last = &h->first;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->work, NULL);
	pthread_mutex_init(&h->step.lock, NULL);
	pthread_cond_init(&h->step.done, NULL);
	return h;
}

static void fail_read(struct checksum_thread *h, void *token, kpack_error_t code,
		      const char *text)
{
	struct kpackx_error why = {0};

	kp_fail(&why, code, "%s", text);
	h->answer(token, NULL, 0, &why);
}

void checksum_thread_free(struct checksum_thread *h)
{
	struct request *next;

	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->work);
	pthread_mutex_unlock(&h->lock);
	if (h->running)
		pthread_join(h->thread, NULL);
	for (struct request *r = h->first; r; r = next) {
		next = r->next;
		fail_read(h, r->token, KPACK_ERROR_IO_ERROR, "unmounted");
		checksums_unref(r->sums);
		free(r);
	}
	pthread_cond_destroy(&h->step.done);
	pthread_mutex_destroy(&h->step.lock);
	pthread_cond_destroy(&h->work);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/*
 * Start the thread, with all signals blocked: the thread with the main loop takes them.
 */
static bool start_thread(struct checksum_thread *h)
{
	sigset_t all, old;

	if (h->running)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	h->running = pthread_create(&h->thread, NULL, run_thread, h) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return h->running;
}

static bool park_read(struct checksum_thread *h, struct checksums *s, uint64_t off,
		      size_t len, void *token)
{
	struct request *r = start_thread(h) ? malloc(sizeof(*r)) : NULL;

	if (!r)
		return false;
	*r = (struct request){NULL, checksums_ref(s), off, len, token};
	*h->last = r;
	h->last = &r->next;
	pthread_cond_signal(&h->work);
	return true;
}

void checksum_thread_read(struct checksum_thread *h, struct checksums *s, uint64_t off,
			  size_t len, void *token)
{
	uint32_t line;
	bool ready, parked = false;

	pthread_mutex_lock(&h->lock);
	ready = !checksums_unknown(s, off, len, &line);
	if (!ready)
		parked = park_read(h, s, off, len, token);
	pthread_mutex_unlock(&h->lock);
	if (ready)
		h->answer(token, checksums_text(s) + off, len, NULL);
	else if (!parked)
		fail_read(h, token, KPACK_ERROR_OUT_OF_MEMORY, "no memory for checksums");
}
