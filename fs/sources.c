/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include "file.h"
#include "log.h"
#include "sources.h"

static bool open_archive(struct holdings *h, const char *path)
{
	struct kpackx_error why = {0};
	struct origin *o;
	struct stat st;
	int fd;

	if (kp_file_open(path, &fd, &st, &why) || origin_new(fd, path, &o, &why)) {
		log_about(LOG_ERR, path, why.text);
		return holdings_refuse(h, path, why.text);
	}
	return holdings_add(h, o);
}

static bool open_source(struct holdings *h, const char *source)
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
		ok = ok && open_archive(h, paths[i]);
		free(paths[i]);
	}
	free(paths);
	return ok;
}

bool sources_open(struct holdings *h, char *const *paths, size_t n)
{
	*h = (struct holdings){0};
	for (size_t i = 0; i < n; i++)
		if (!open_source(h, paths[i]))
			return false;
	if (h->count == 0 && h->n_refused) {
		log_print(LOG_ERR, "none of %zu archives can be served", h->n_refused);
		return false;
	}
	if (h->count == 0 && stat(paths[0], &h->look)) {
		log_about(LOG_ERR, paths[0], strerror(errno));
		return false;
	}
	return true;
}
