/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include "log.h"
#include "sources.h"
#include "view.h"

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

/* Grow ARRAY by one element, by doubling at powers of two. */
static void *grown(void *array, size_t count, size_t element)
{
	if (count & (count - 1))
		return array;
	return reallocarray(array, count ? 2 * count : 1, element);
}

static bool refuse(struct sources *s, const char *path, const char *text)
{
	struct refused *list = grown(s->refused, s->n_refused, sizeof(*list));
	struct refused *r;

	log_about(LOG_ERR, path, text);
	if (!list)
		return fail_memory();
	s->refused = list;
	r = &list[s->n_refused];
	r->path = strdup(path);
	r->text = strdup(text);
	s->n_refused++;
	return r->path && r->text ? true : fail_memory();
}

static bool newer(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Let the directories look as ST does, too. */
static void blend(struct sources *s, const struct stat *st)
{
	mode_t mode = s->look.st_mode;

	if (s->count == 0)
		s->look = *st;
	else if (newer(st->st_mtim, s->look.st_mtim))
		s->look.st_mtim = st->st_mtim;
	s->look.st_mode = s->count ? mode | st->st_mode : st->st_mode;
}

static bool add(struct sources *s, struct kpack_archive *a)
{
	struct kpack_archive **list = grown(s->archives, s->count, sizeof(a));

	if (!list) {
		kp_archive_close(a);
		return fail_memory();
	}
	s->archives = list;
	blend(s, kp_archive_stat(a));
	s->bytes += (uint64_t)kp_archive_stat(a)->st_size;
	list[s->count++] = a;
	return true;
}

static bool open_archive(struct sources *s, const char *path)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a;

	if (kp_archive_open(path, &a, &why))
		return refuse(s, path, why.text);
	return add(s, a);
}

static bool open_source(struct sources *s, const char *source)
{
	struct kpackx_error why = {0};
	char **paths = NULL;
	size_t count = 0;
	bool ok = true;

	if (kp_view_sources(source, &paths, &count, &why)) {
		log_about(LOG_ERR, source, why.text);
		return false;
	}
	if (count == 0)
		log_about(LOG_WARNING, source, "no archives (*.kpack) here");
	for (size_t i = 0; i < count; i++) {
		ok = ok && open_archive(s, paths[i]);
		free(paths[i]);
	}
	free(paths);
	return ok;
}

bool sources_open(struct sources *s, char *const *paths, size_t n)
{
	*s = (struct sources){0};
	for (size_t i = 0; i < n; i++)
		if (!open_source(s, paths[i]))
			return false;
	if (s->count == 0 && s->n_refused) {
		log_print(LOG_ERR, "none of %zu archives can be served", s->n_refused);
		return false;
	}
	if (s->count == 0 && stat(paths[0], &s->look)) {
		log_about(LOG_ERR, paths[0], strerror(errno));
		return false;
	}
	return true;
}

void sources_close(struct sources *s)
{
	for (size_t i = 0; i < s->count; i++)
		kp_archive_close(s->archives[i]);
	for (size_t i = 0; i < s->n_refused; i++) {
		free(s->refused[i].path);
		free(s->refused[i].text);
	}
	free(s->archives);
	free(s->refused);
	*s = (struct sources){0};
}
