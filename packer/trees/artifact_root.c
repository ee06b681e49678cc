/* SPDX-License-Identifier: MIT */
#include "artifact_root.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"

void artifact_root_fini(struct artifact_root *a)
{
	prefixes_close(&a->prefixes);
	free(a->path);
	*a = (struct artifact_root){0};
}

void artifact_root_item(struct artifact_root *a, const struct tree_item *item)
{
	if (item->kind == TREE_DIR && !a->path && item->level <= 1) {
		if (!prefixes_open(item->path, true, &a->prefixes, NULL))
			a->path = xstrdup(item->path);
	} else if (item->kind != TREE_OTHER && item->kind != TREE_DIR && a->path &&
		   strcmp(a->path, item->path) == 0) {
		artifact_root_fini(a);
	}
}

const struct prefix *artifact_root_prefix(const struct artifact_root *a, const char *path,
					  const char *key, const char **rest)
{
	const char *relative = a->path ? kp_path_below(path, a->path) : NULL;

	for (size_t i = 0; relative && i < a->prefixes.count; i++) {
		const struct prefix *p = &a->prefixes.items[i];

		*rest = kp_path_below(relative, p->path);
		if (*rest && kp_path_below(key, p->path))
			return p;
	}
	return NULL;
}
