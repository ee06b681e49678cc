/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "control.h"
#include "texts.h"
#include "forget_names.h"
#include "core/archive/naming.h"

#define BUCKETS 64

/* The kernel is made to forget names whose text has at least this many bytes. */
#define LONG 65536

struct snapshot {
	struct snapshot *next;
	uint64_t ino;
	size_t file; /* position of its name */
	uint64_t lookups;
	struct text *text;
	struct timespec made;
};

struct control {
	struct inodes *inodes;
	struct texts *texts;
	struct forget_names *forgetter; /* NULL: the kernel is not made to forget names */
	struct timespec started;

	pthread_mutex_t lock; /* guards everything below */
	struct stat look;     /* attributes of the root */
	uint64_t next_ino;
	struct snapshot *buckets[BUCKETS];
};

static struct snapshot **find_snapshot(struct control *c, uint64_t ino)
{
	struct snapshot **at = &c->buckets[ino % BUCKETS];

	while (*at && (*at)->ino != ino)
		at = &(*at)->next;
	return at;
}

static uint64_t unused_ino(struct control *c)
{
	do {
		if (++c->next_ino >= CONTROL_END)
			c->next_ino = CONTROL_FIRST;
	} while (*find_snapshot(c, c->next_ino));
	return c->next_ino;
}

static void stat_common(const struct control *c, struct timespec when, struct stat *out)
{
	*out = (struct stat){
		.st_uid = c->look.st_uid,
		.st_gid = c->look.st_gid,
		.st_mode = c->look.st_mode & 0444,
		.st_blksize = 4096,
		.st_atim = when,
		.st_mtim = when,
		.st_ctim = when,
	};
}

static void stat_dir(const struct control *c, struct stat *out)
{
	stat_common(c, c->started, out);
	out->st_ino = CONTROL_DIR;
	out->st_nlink = 2;
	out->st_mode |= S_IFDIR | out->st_mode >> 2;
}

static void stat_snapshot(const struct control *c, const struct snapshot *s,
			  struct stat *out)
{
	stat_common(c, s->made, out);
	out->st_ino = CONTROL_LISTED + s->file;
	out->st_nlink = 1;
	out->st_mode |= S_IFREG;
	out->st_size = (off_t)text_size(s->text);
	out->st_blocks = (out->st_size + 511) / 512;
}

/* A snapshot of TEXT, the text of FILE; takes over the caller's reference. */
static struct snapshot *snapshot_new(struct text *text, size_t file)
{
	struct snapshot *s = text ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		if (text)
			text_unref(text);
		return NULL;
	}
	s->text = text;
	s->file = file;
	clock_gettime(CLOCK_REALTIME, &s->made);
	s->lookups = 1;
	return s;
}

static bool is_long(const struct control *c, const struct snapshot *s)
{
	return c->forgetter && text_size(s->text) >= LONG;
}

static void snapshot_free(struct control *c, struct snapshot *s)
{
	if (s && is_long(c, s))
		forget_names_gone(c->forgetter, texts_name(s->file));
	if (s)
		text_unref(s->text);
	free(s);
}

static void add_snapshot(struct control *c, struct snapshot *s)
{
	struct snapshot **at;

	s->ino = unused_ino(c);
	at = &c->buckets[s->ino % BUCKETS];
	s->next = *at;
	*at = s;
}

/* Take owner and read bits from the root. */
static void look_at_root(struct control *c)
{
	const struct edition *e = inodes_enter(c->inodes);
	struct stat look;

	tree_stat(e->tree, tree_root(e->tree), &look);
	inodes_leave(c->inodes);
	pthread_mutex_lock(&c->lock);
	c->look = look;
	pthread_mutex_unlock(&c->lock);
}

kpack_error_t control_new(const struct control_subject *about, struct control **out,
			  struct kpackx_error *why)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return kp_fail_memory(why, sizeof(*c), KP_CONTROL_NAME);
	c->inodes = about->inodes;
	c->next_ino = CONTROL_FIRST;
	clock_gettime(CLOCK_REALTIME, &c->started);
	pthread_mutex_init(&c->lock, NULL);
	c->texts = texts_new(about);
	if (about->take_back)
		c->forgetter = forget_names_new(about->take_back, about->user);
	if (!c->texts || (about->take_back && !c->forgetter)) {
		control_free(c);
		return kp_fail_memory(why, 0, KP_CONTROL_NAME);
	}
	look_at_root(c);
	*out = c;
	return KPACK_SUCCESS;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct snapshot *next;

		for (struct snapshot *s = c->buckets[i]; s; s = next) {
			next = s->next;
			snapshot_free(c, s);
		}
	}
	forget_names_free(c->forgetter);
	texts_free(c->texts);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

const char *control_name(size_t position)
{
	return texts_name(position);
}

void control_renew(struct control *c)
{
	look_at_root(c);
	texts_renew(c->texts);
}

void control_seen(struct control *c, bool fine)
{
	texts_seen(c->texts, fine);
}

void control_unwatched(struct control *c)
{
	texts_unwatched(c->texts);
}

/* The text is made without the lock, because that may take a while. */
int control_lookup(struct control *c, struct edition *e, struct kp_span name,
		   uint64_t *ino, struct stat *out)
{
	struct snapshot *s;
	size_t i = 0;

	while (texts_name(i) && !kp_span_is(name, texts_name(i)))
		i++;
	if (!texts_name(i))
		return ENOENT;
	s = snapshot_new(texts_get(c->texts, e, i), i);
	if (!s)
		return ENOMEM;
	if (is_long(c, s))
		forget_names_note(c->forgetter, texts_name(i));
	pthread_mutex_lock(&c->lock);
	add_snapshot(c, s);
	*ino = s->ino;
	stat_snapshot(c, s, out);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

bool control_stat(struct control *c, uint64_t ino, struct stat *out)
{
	struct snapshot *s = NULL;

	pthread_mutex_lock(&c->lock);
	if (ino == CONTROL_DIR)
		stat_dir(c, out);
	else if ((s = *find_snapshot(c, ino)))
		stat_snapshot(c, s, out);
	pthread_mutex_unlock(&c->lock);
	return ino == CONTROL_DIR || s;
}

bool control_again(struct control *c, uint64_t ino, struct stat *out)
{
	struct snapshot *s;

	if (ino == CONTROL_DIR)
		return control_stat(c, ino, out);
	pthread_mutex_lock(&c->lock);
	s = *find_snapshot(c, ino);
	if (s) {
		s->lookups++;
		stat_snapshot(c, s, out);
	}
	pthread_mutex_unlock(&c->lock);
	return s != NULL;
}

void control_forget(struct control *c, uint64_t ino, uint64_t n)
{
	struct snapshot **at, *gone = NULL;

	pthread_mutex_lock(&c->lock);
	at = find_snapshot(c, ino);
	if (*at && (*at)->lookups > n) {
		(*at)->lookups -= n;
	} else if (*at) {
		gone = *at;
		*at = gone->next;
	}
	pthread_mutex_unlock(&c->lock);
	snapshot_free(c, gone);
}

bool control_read(struct control *c, uint64_t ino, uint64_t off, size_t len, void *token)
{
	struct snapshot *s;
	struct text *text = NULL;
	uint64_t left;

	pthread_mutex_lock(&c->lock);
	s = *find_snapshot(c, ino);
	if (s)
		text = text_ref(s->text);
	pthread_mutex_unlock(&c->lock);
	if (!text)
		return false;
	left = off < text_size(text) ? text_size(text) - off : 0;
	text_read(text, off, left < len ? (size_t)left : len, token);
	text_unref(text);
	return true;
}
