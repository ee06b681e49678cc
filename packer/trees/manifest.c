/* SPDX-License-Identifier: MIT */
#include "manifest.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "tree_name.h"

/* Manifests are written by hand or by a build; these limits are far above real ones. */
enum { MANIFEST_MAX = 4 << 20, PREFIXES_MAX = 65536 };

/* --- the text ---------------------------------------------------------------------- */

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct kp_span trim_line(struct kp_span line)
{
	while (line.size && is_blank(line.data[0]))
		line = (struct kp_span){line.data + 1, line.size - 1};
	while (line.size && is_blank(line.data[line.size - 1]))
		line.size--;
	while (line.size > 1 && line.data[line.size - 1] == '/')
		line.size--;
	return line;
}

static kpack_error_t add_line(struct prefixes *p, struct kp_span line, size_t number,
			      size_t *cap, struct kpackx_error *why)
{
	const char *fault = kp_path_fault(line);
	char shown[200];

	if (fault)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: '%s': %s",
			       number, kp_text_escape(line, shown, sizeof(shown)), fault);
	if (p->count >= PREFIXES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "line %zu: more than %d prefixes", number, PREFIXES_MAX);
	xgrow(&p->items, p->count, cap, sizeof(*p->items));
	p->items[p->count++] =
		(struct prefix){.path = xstrndup((const char *)line.data, line.size)};
	return KPACK_SUCCESS;
}

/*
 * Compare as if both ended in a slash, so that a directory's contents directly follow it.
 */
static int compare_dirs(const char *a, const char *b)
{
	size_t i = 0;
	uint8_t x, y;

	while (a[i] && a[i] == b[i])
		i++;
	x = a[i] ? (uint8_t)a[i] : '/';
	y = b[i] ? (uint8_t)b[i] : '/';
	if (x != y)
		return KP_ORDER(x, y);
	return (a[i] != 0) - (b[i] != 0);
}

static int by_dir(const void *a, const void *b, void *arg)
{
	const struct prefix *items = arg;

	return compare_dirs(items[*(const size_t *)a].path,
			    items[*(const size_t *)b].path);
}

static int by_path(const void *a, const void *b, void *arg)
{
	const struct prefix *items = arg;

	return strcmp(items[*(const size_t *)a].path, items[*(const size_t *)b].path);
}

static size_t *sort_prefixes(const struct prefixes *p,
			     int (*by)(const void *, const void *, void *))
{
	size_t *order = xmalloc(p->count * sizeof(*order));

	for (size_t i = 0; i < p->count; i++)
		order[i] = i;
	qsort_r(order, p->count, sizeof(*order), by, p->items);
	return order;
}

bool prefixes_has(const struct prefixes *p, const char *path)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(path, p->items[p->sorted[mid]].path);

		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

/* A file in two prefixes would be in the output twice. */
static kpack_error_t check_apart(const struct prefixes *p, struct kpackx_error *why)
{
	size_t *order = sort_prefixes(p, by_dir);
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 1; i < p->count && !err; i++) {
		const char *a = p->items[order[i - 1]].path, *b = p->items[order[i]].path;
		size_t n = strlen(a);

		if (strcmp(a, b) == 0)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: is listed twice", a);
		else if (strncmp(a, b, n) == 0 && b[n] == '/')
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: is inside another prefix, %s", b, a);
	}
	free(order);
	return err;
}

static kpack_error_t parse_lines(struct kp_span text, struct prefixes *out,
				 struct kpackx_error *why)
{
	size_t number = 0, cap = 0;

	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		size_t n = end ? (size_t)(end - text.data) : text.size;
		struct kp_span line = trim_line((struct kp_span){text.data, n});

		number++;
		if (line.size)
			KP_TRY(add_line(out, line, number, &cap, why));
		n += end ? 1 : 0;
		text = (struct kp_span){text.data + n, text.size - n};
	}
	return KPACK_SUCCESS;
}

static kpack_error_t sort_and_check(struct prefixes *p, struct kpackx_error *why)
{
	if (p->count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "names no prefix");
	p->sorted = sort_prefixes(p, by_path);
	return check_apart(p, why);
}

kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct prefixes){.manifest = true};
	err = parse_lines(text, out, why);
	if (!err)
		err = sort_and_check(out, why);
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
	out->manifest = true;
	err = parse_lines((struct kp_span){text, size}, out, why);
	free(text);
	if (err)
		prefixes_close(out);
	return err;
}

/* --- the tree ---------------------------------------------------------------------- */

/* Check that no component of a prefix leads out of the tree; set P's absent. */
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
		if (below_lstat(path, &st) < 0 && errno == ENOENT)
			p->absent = true;
		else if (below_lstat(path, &st) < 0)
			err = below_fail(why, "%s", path + skip);
		else if (!S_ISDIR(st.st_mode))
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s",
				      path + skip,
				      S_ISLNK(st.st_mode) ? "is a symbolic link"
							  : "is not a directory");
		if (end)
			*end++ = '/';
	}
	free(path);
	return err;
}

static void only_root(struct prefixes *out)
{
	*out = (struct prefixes){.items = xcalloc(1, sizeof(*out->items)),
				 .count = 1,
				 .sorted = xcalloc(1, sizeof(*out->sorted))};
	out->items[0].path = xstrdup("");
}

static kpack_error_t open_manifest(const char *root, const char *path, bool required,
				   struct prefixes *out, struct kpackx_error *why)
{
	struct stat st;

	if (below_lstat(path, &st) < 0) {
		if (errno != ENOENT)
			return below_fail(why, "cannot look at it");
		if (!required) {
			only_root(out);
			return KPACK_SUCCESS;
		}
	}
	KP_TRY(prefixes_list(path, out, why));
	KP_TRY(sort_and_check(out, why));
	for (size_t i = 0; i < out->count; i++)
		KP_TRY(check_prefix(root, &out->items[i], why));
	return KPACK_SUCCESS;
}

kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why)
{
	char *path = xasprintf("%s/" ARTIFACT_MANIFEST, root);
	kpack_error_t err;

	*out = (struct prefixes){0};
	err = open_manifest(root, path, required, out, why);
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
	free(p->sorted);
	*p = (struct prefixes){0};
}
