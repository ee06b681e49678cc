/* SPDX-License-Identifier: MIT */
/*
 * The format of a manifest, and the rules for names, are described in artifact.h.  Manifests
 * come with builds, and their paths are walked: each must stay inside the tree, so links
 * on the way to a prefix are refused.
 */
#include "artifact.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Manifests are written by hand or by a build; these limits are far above real ones. */
enum { MANIFEST_MAX = 4 << 20, PREFIXES_MAX = 65536 };

/* --- manifests --------------------------------------------------------------------- */

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Parse the lines of a manifest into OUT, sorted; on failure OUT is to be closed. */
static kpack_error_t parse_lines(struct kp_span text, struct prefixes *out,
				 struct kpackx_error *why)
{
	size_t cap = 0;

	*out = (struct prefixes){.manifest = true};
	for (size_t number = 1; text.size; number++) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		size_t n = end ? (size_t)(end - text.data) : text.size;
		struct kp_span line = {text.data, n};
		const char *fault;
		char shown[200];

		n += end ? 1 : 0;
		text = (struct kp_span){text.data + n, text.size - n};
		while (line.size && is_blank(line.data[0]))
			line = (struct kp_span){line.data + 1, line.size - 1};
		while (line.size && is_blank(line.data[line.size - 1]))
			line.size--;
		while (line.size > 1 && line.data[line.size - 1] == '/')
			line.size--;
		if (!line.size)
			continue;
		fault = kp_path_fault(line);
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "line %zu: '%s': %s", number,
				       kp_text_escape(line, shown, sizeof(shown)), fault);
		if (out->count >= PREFIXES_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "line %zu: more than %d prefixes", number,
				       PREFIXES_MAX);
		xgrow(&out->items, out->count, &cap, sizeof(*out->items));
		out->items[out->count++] = (struct prefix){
			.path = xstrndup((const char *)line.data, line.size)};
	}
	kp_sort(out->items, out->count, KP_BY_TEXT(struct prefix, path));
	return KPACK_SUCCESS;
}

bool prefixes_has(const struct prefixes *p, const char *path)
{
	struct prefix probe = {.path = (char *)path};

	return kp_find(p->items, p->count, &probe, KP_BY_TEXT(struct prefix, path)) !=
	       NULL;
}

/* A file in two prefixes would be in the output twice. */
static kpack_error_t check_apart(const struct prefixes *p, struct kpackx_error *why)
{
	if (p->count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "names no prefix");
	for (size_t i = 0; i < p->count; i++) {
		char *path = p->items[i].path;

		if (i && strcmp(p->items[i - 1].path, path) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: is listed twice", path);
		for (char *slash = path; (slash = strchr(slash, '/')); slash++) {
			char *parent = xstrndup(path, (size_t)(slash - path));
			kpack_error_t err = KPACK_SUCCESS;

			if (prefixes_has(p, parent))
				err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					      "%s: is inside another prefix, %s", path,
					      parent);
			free(parent);
			KP_TRY(err);
		}
	}
	return KPACK_SUCCESS;
}

kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why)
{
	kpack_error_t err = parse_lines(text, out, why);

	if (!err)
		err = check_apart(out, why);
	if (err)
		prefixes_close(out);
	return err;
}

kpack_error_t prefixes_list(const char *path, struct prefixes *out,
			    struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *text;
	size_t size;

	*out = (struct prefixes){0};
	KP_TRY(below_file_load(path, MANIFEST_MAX, "the manifest", &text, &size, why));
	err = parse_lines((struct kp_span){text, size}, out, why);
	free(text);
	if (err)
		prefixes_close(out);
	return err;
}

/* Check that no component of a prefix leads out of the tree; note whether it is absent. */
static kpack_error_t check_prefix(const char *root, struct prefix *p,
				  struct kpackx_error *why)
{
	size_t skip = strlen(root) + 1;
	kpack_error_t err = KPACK_SUCCESS;
	char *path = xasprintf("%s/%s", root, p->path);
	struct stat st;

	for (char *end = path + skip; end && !err && !p->absent;) {
		end = strchr(end, '/');
		if (end)
			*end = '\0';
		if (below_lstat(path, &st) < 0) {
			p->absent = errno == ENOENT;
			if (!p->absent)
				err = below_fail(why, "%s", path + skip);
		} else if (!S_ISDIR(st.st_mode)) {
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s",
				      path + skip,
				      S_ISLNK(st.st_mode) ? "is a symbolic link"
							  : "is not a directory");
		}
		if (end)
			*end++ = '/';
	}
	free(path);
	return err;
}

kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why)
{
	char *path = xasprintf("%s/" ARTIFACT_MANIFEST, root);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	*out = (struct prefixes){0};
	if (below_lstat(path, &st) < 0 && (errno != ENOENT || !required)) {
		if (errno != ENOENT) {
			err = below_fail(why, "cannot look at it");
		} else {
			out->items = xcalloc(1, sizeof(*out->items));
			out->items[out->count++].path = xstrdup("");
		}
		goto out;
	}
	err = prefixes_list(path, out, why);
	if (!err)
		err = check_apart(out, why);
	for (size_t i = 0; i < out->count && !err; i++)
		err = check_prefix(root, &out->items[i], why);
out:
	if (err) {
		prefixes_close(out);
		kp_fail_prefix(why, err, "%s", path);
	}
	free(path);
	return err;
}

void prefixes_close(struct prefixes *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->items[i].path);
	free(p->items);
	*p = (struct prefixes){0};
}

/* --- names and places -------------------------------------------------------------- */

size_t artifact_component_size(const char *name)
{
	size_t size = strlen(name), generic = strlen("_" KP_ARCH_GENERIC), last = 0;

	if (size > generic && strcmp(name + size - generic, "_" KP_ARCH_GENERIC) == 0)
		return size - generic;
	for (size_t i = 1; i + 4 < size; i++)
		if (strncmp(name + i, "_gfx", 4) == 0 && name[i + 4] >= '0' &&
		    name[i + 4] <= '9')
			last = i;
	return last;
}

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
