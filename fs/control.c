/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "control.h"
#include "text.h"

#define BUCKETS 64

/* Text of a file, shared by its snapshots. */
struct text {
	unsigned refs;
	char *bytes;
	size_t size;
};

struct snapshot {
	struct snapshot *next;
	uint64_t ino;
	uint64_t lookups;
	struct text *text;
	struct timespec made;
};

struct control {
	struct control_subject about;
	struct stat look;
	struct timespec started;

	pthread_mutex_t lock; /* everything below */
	uint64_t next_ino;
	struct snapshot *buckets[BUCKETS];
	struct edition *edition; /* of the kept texts; NULL when there is none */
	struct text *kept[5];    /* texts that stay the same, once they were asked for */
};

/* Texts. */

static void put_escaped(FILE *f, struct kp_span s)
{
	char *text = kp_text_escape_new(s);

	fputs(text ? text : "?", f);
	free(text);
}

static void put_string(FILE *f, const char *s)
{
	put_escaped(f, kp_span_str(s));
}

static void put_arches(FILE *f, struct kpack_archive *a)
{
	size_t count = 0;
	const char *arch;

	kpack_get_architecture_count(a, &count);
	for (size_t i = 0; i < count; i++) {
		if (kpack_get_architecture(a, i, &arch))
			continue;
		if (i)
			fputc(',', f);
		put_string(f, arch);
	}
}

/* Path, scheme, architectures, entries, bytes; or path and why it is refused. */
static void put_archives(struct control *c, const struct edition *e, FILE *f)
{
	const struct holdings *h = &e->holdings;

	(void)c;
	for (size_t i = 0; i < h->count; i++) {
		struct kpack_archive *a = e->archives[i];

		put_string(f, kp_archive_path(a));
		fprintf(f, "\t%s\t", kp_archive_scheme(a));
		put_arches(f, a);
		fprintf(f, "\t%zu\t%lld\n", kp_archive_entry_count(a),
			(long long)kp_archive_stat(a)->st_size);
	}
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs("\trefused: ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

static void put_more(FILE *f, size_t kept, size_t counted)
{
	if (counted > kept)
		fprintf(f, "and %zu more\n", counted - kept);
}

static void put_faults(FILE *f, const struct kpack_archive *a)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	for (size_t i = 0; i < kept; i++) {
		if (!faults[i].refused)
			continue;
		put_string(f, kp_archive_path(a));
		fputs(": ", f);
		put_string(f, faults[i].text);
		fputc('\n', f);
	}
	put_more(f, kept, counted);
}

static void put_conflicts(struct control *c, const struct edition *e, FILE *f)
{
	const struct holdings *h = &e->holdings;
	size_t kept, counted;
	const char *const *lines = kp_view_conflicts(e->view, &kept, &counted);

	(void)c;
	for (size_t i = 0; i < kept; i++)
		fprintf(f, "%s\n", lines[i]);
	put_more(f, kept, counted);
	for (size_t i = 0; i < h->count; i++)
		put_faults(f, e->archives[i]);
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs(": ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

static void put_stats(struct control *c, const struct edition *e, FILE *f)
{
	struct content_stats stats;
	size_t entries = 0;

	content_stats(c->about.content, &stats);
	for (size_t i = 0; i < e->holdings.count; i++)
		entries += kp_archive_entry_count(e->archives[i]);
	fprintf(f,
		"{\"archives\": %zu, \"refused_archives\": %zu, \"entries\": %zu, "
		"\"files\": %" PRIu32 ", \"directories\": %" PRIu32 ", ",
		e->holdings.count, e->holdings.n_refused, entries,
		tree_file_count(e->tree), tree_dir_count(e->tree));
	fprintf(f,
		"\"reads\": %" PRIu64 ", \"bytes_served\": %" PRIu64
		", \"decodes\": %" PRIu64 ", \"bytes_decoded\": %" PRIu64
		", \"cache_bytes\": %" PRIu64 ", \"errors\": %" PRIu64 "}\n",
		stats.reads, stats.bytes_served, stats.decodes, stats.bytes_decoded,
		stats.held, stats.errors);
}

static void put_chosen_arches(struct control *c, const struct edition *e, FILE *f)
{
	(void)e;
	arches_put(c->about.arches, f);
}

static void put_version(struct control *c, const struct edition *e, FILE *f)
{
	(void)c;
	(void)e;
	fputs("kpackfs " KP_VERSION "\n", f);
}

static const struct control_file {
	const char *name;
	void (*put)(struct control *c, const struct edition *e, FILE *f);
	bool changes;
} files[] = {
	{"archives", put_archives, false},   {"arches", put_chosen_arches, false},
	{"conflicts", put_conflicts, false}, {"stats", put_stats, true},
	{"version", put_version, false},
};

#define N_FILES (sizeof(files) / sizeof(*files))

static void text_drop(struct text *t)
{
	if (!t || --t->refs)
		return;
	free(t->bytes);
	free(t);
}

static struct text *text_new(struct control *c, const struct edition *e,
			     const struct control_file *file)
{
	struct text *t = calloc(1, sizeof(*t));
	FILE *f;
	bool failed;

	if (!t)
		return NULL;
	t->refs = 1;
	f = open_memstream(&t->bytes, &t->size);
	if (!f)
		goto fail;
	file->put(c, e, f);
	failed = ferror(f) != 0;
	if (fclose(f) || failed)
		goto fail;
	return t;
fail:
	text_drop(t);
	return NULL;
}

static void drop_kept(struct control *c)
{
	for (size_t i = 0; i < N_FILES; i++) {
		text_drop(c->kept[i]);
		c->kept[i] = NULL;
	}
	edition_unref(c->edition);
	c->edition = NULL;
}

/* Texts are kept as long as the edition they are of. */
static void keep_for_now(struct control *c)
{
	struct edition *e = inodes_edition(c->about.inodes);

	if (e == c->edition) {
		edition_unref(e);
		return;
	}
	drop_kept(c);
	c->edition = e;
}

/* The text of file number I, with a reference for the caller. */
static struct text *text_get(struct control *c, size_t i)
{
	struct text *t;

	keep_for_now(c);
	t = c->kept[i];
	if (!t)
		t = text_new(c, c->edition, &files[i]);
	if (!t || files[i].changes)
		return t;
	c->kept[i] = t;
	t->refs++;
	return t;
}

/* Snapshots. */

static struct snapshot **find(struct control *c, uint64_t ino)
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
	} while (*find(c, c->next_ino));
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
	out->st_ino = s->ino;
	out->st_nlink = 1;
	out->st_mode |= S_IFREG;
	out->st_size = (off_t)s->text->size;
	out->st_blocks = (blkcnt_t)((s->text->size + 511) / 512);
}

static struct snapshot *snapshot_new(struct control *c, size_t file)
{
	struct snapshot *s = calloc(1, sizeof(*s)), **at;

	if (!s)
		return NULL;
	s->text = text_get(c, file);
	if (!s->text) {
		free(s);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &s->made);
	s->ino = unused_ino(c);
	s->lookups = 1;
	at = &c->buckets[s->ino % BUCKETS];
	s->next = *at;
	*at = s;
	return s;
}

static void snapshot_free(struct snapshot *s)
{
	text_drop(s->text);
	free(s);
}

kpack_error_t control_new(const struct control_subject *about, struct control **out,
			  struct kpackx_error *why)
{
	struct control *c = calloc(1, sizeof(*c));
	const struct edition *e;

	if (!c)
		return kp_fail_memory(why, sizeof(*c), CONTROL_NAME);
	c->about = *about;
	e = inodes_enter(about->inodes);
	tree_stat(e->tree, tree_root(e->tree), &c->look);
	inodes_leave(about->inodes);
	c->next_ino = CONTROL_FIRST;
	clock_gettime(CLOCK_REALTIME, &c->started);
	pthread_mutex_init(&c->lock, NULL);
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
			snapshot_free(s);
		}
	}
	drop_kept(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

const char *control_name(size_t position)
{
	return position < N_FILES ? files[position].name : NULL;
}

void control_renew(struct control *c)
{
	pthread_mutex_lock(&c->lock);
	drop_kept(c);
	pthread_mutex_unlock(&c->lock);
}

int control_lookup(struct control *c, struct kp_span name, struct stat *out)
{
	struct snapshot *s;
	size_t i = 0;

	while (i < N_FILES && !kp_span_is(name, files[i].name))
		i++;
	if (i == N_FILES)
		return ENOENT;
	pthread_mutex_lock(&c->lock);
	s = snapshot_new(c, i);
	if (s)
		stat_snapshot(c, s, out);
	pthread_mutex_unlock(&c->lock);
	return s ? 0 : ENOMEM;
}

bool control_stat(struct control *c, uint64_t ino, struct stat *out)
{
	struct snapshot *s;

	if (ino == CONTROL_DIR) {
		stat_dir(c, out);
		return true;
	}
	pthread_mutex_lock(&c->lock);
	s = *find(c, ino);
	if (s)
		stat_snapshot(c, s, out);
	pthread_mutex_unlock(&c->lock);
	return s != NULL;
}

bool control_again(struct control *c, uint64_t ino, struct stat *out)
{
	struct snapshot *s;

	if (ino == CONTROL_DIR)
		return control_stat(c, ino, out);
	pthread_mutex_lock(&c->lock);
	s = *find(c, ino);
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
	at = find(c, ino);
	if (*at && (*at)->lookups > n) {
		(*at)->lookups -= n;
	} else if (*at) {
		gone = *at;
		*at = gone->next;
		snapshot_free(gone);
	}
	pthread_mutex_unlock(&c->lock);
}

bool control_read(struct control *c, uint64_t ino, uint64_t off, void *buf, size_t *size)
{
	struct snapshot *s;

	pthread_mutex_lock(&c->lock);
	s = *find(c, ino);
	if (s) {
		uint64_t left = off < s->text->size ? s->text->size - off : 0;

		*size = left < *size ? (size_t)left : *size;
		if (*size)
			memcpy(buf, s->text->bytes + off, *size);
	}
	pthread_mutex_unlock(&c->lock);
	return s != NULL;
}
