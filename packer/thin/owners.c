/* SPDX-License-Identifier: MIT */
#include "owners.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Mark the paths that a line of the list OPEN names; returns how many there are. */
static size_t mark_paths(FILE *open, const char *const *paths, size_t n, bool *owned)
{
	size_t cap = 0, found = 0;
	char *line = NULL;
	ssize_t size;

	while ((size = getline(&line, &cap, open)) > 0) {
		const char *const *at;

		if (line[size - 1] == '\n')
			line[size - 1] = '\0';
		at = bsearch(&line, paths, n, sizeof(*paths), by_text);
		if (!at)
			continue;
		owned[at - paths] = true;
		found++;
	}
	free(line);
	return found;
}

/* "librocblas4:amd64.list" -> "librocblas4"; NULL: not a list. */
static char *package_of(const char *name)
{
	static const char suffix[] = ".list";
	size_t n = strlen(name);

	if (n < sizeof(suffix) || strcmp(name + n - (sizeof(suffix) - 1), suffix) != 0)
		return NULL;
	return xstrndup(name, strcspn(name, ":") < n - (sizeof(suffix) - 1)
				      ? strcspn(name, ":")
				      : n - (sizeof(suffix) - 1));
}

static void read_list(const char *dir, const char *name, const char *const *paths,
		      size_t n, bool *owned, struct owners *out)
{
	char *package = package_of(name), *path;
	size_t found = 0;
	FILE *open;
	int fd;

	if (!package)
		return;
	path = xasprintf("%s/%s", dir, name);
	fd = below_open_following(path, O_RDONLY | O_NONBLOCK);
	open = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (open) {
		found = mark_paths(open, paths, n, owned);
		fclose(open);
	} else if (fd >= 0) {
		close(fd);
	}
	free(path);
	if (!found) {
		free(package);
		return;
	}
	out->names = xrealloc(out->names, (out->count + 1) * sizeof(*out->names));
	out->names[out->count++] = package;
}

void owners_find(const char *dir, const char *const *paths, size_t n, struct owners *out)
{
	bool *owned = xcalloc(n, sizeof(*owned));
	struct dirent **names;
	size_t kept = 0;
	int count = below_scandir(dir, &names, NULL);

	*out = (struct owners){0};
	for (int i = 0; i < count; i++) {
		read_list(dir, names[i]->d_name, paths, n, owned, out);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	qsort(out->names, out->count, sizeof(*out->names), by_text);
	for (size_t i = 0; i < out->count; i++) {
		if (kept && strcmp(out->names[kept - 1], out->names[i]) == 0)
			free(out->names[i]);
		else
			out->names[kept++] = out->names[i];
	}
	out->count = kept;
	for (size_t i = 0; i < n; i++)
		out->unowned += !owned[i];
	free(owned);
}

void owners_fini(struct owners *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->names[i]);
	free(o->names);
	*o = (struct owners){0};
}
