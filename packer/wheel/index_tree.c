/* SPDX-License-Identifier: MIT */
#include "index_tree.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "index_page.h"
#include "index_variants.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"

/* Every page that we write has this mark. */
static const char mark[] = "<meta name=\"generator\" content=\"kpack index\">";

enum { HEAD_MAX = 4096 };

struct tree {
	const char *root;  /* the directory for the pages */
	const char *above; /* relative path from a project's directory to the wheels */
};

typedef void write_page(FILE *out, const void *arg);

static kpack_error_t write_text(const char *dir, const char *name, const char *text,
				size_t size, struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;

	KP_TRY(below_outfile_open_in(&out, dir, name, 0666, why));
	out.lazy = true; /* the whole tree is flushed before it appears */
	err = kp_outfile_pwrite(&out, 0, text, size, why);
	if (!err)
		err = kp_outfile_publish(&out, why);
	kp_outfile_close(&out);
	return err;
}

static kpack_error_t write_file(const char *dir, const char *name, write_page *page,
				const void *arg, struct kpackx_error *why)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = xmemstream(&text, &size);
	kpack_error_t err;

	page(out, arg);
	fclose(out);
	err = write_text(dir, name, text, size, why);
	free(text);
	return err;
}

struct page {
	const struct tree *tree;
	const struct index_project *project;
};

static void project_html(FILE *out, const void *arg)
{
	const struct page *page = arg;

	index_page_project(out, page->project, page->tree->above);
}

static void project_json(FILE *out, const void *arg)
{
	const struct page *page = arg;

	index_json_project(out, page->project, page->tree->above);
}

/* All wheels, sorted by project. */
struct all {
	const struct index_wheel *wheels;
	size_t count;
};

static void root_html(FILE *out, const void *arg)
{
	const struct all *all = arg;

	index_page_root(out, all->wheels, all->count);
}

static void root_json(FILE *out, const void *arg)
{
	const struct all *all = arg;

	index_json_root(out, all->wheels, all->count);
}

/* Write the HTML page and the JSON page. */
static kpack_error_t write_pages(const char *dir, write_page *html, write_page *json,
				 const void *arg, struct kpackx_error *why)
{
	KP_TRY(write_file(dir, "index.html", html, arg, why));
	return write_file(dir, "index.json", json, arg, why);
}

/* Add the file of variants for the version of wheel I, if I is the version's first. */
static kpack_error_t add_variants(struct index_project *p, size_t i,
				  const struct index_wheel **same,
				  struct kpackx_error *why)
{
	const struct index_wheel *w = &p->wheels[i];
	struct index_extra extra = {0}, *added;
	size_t n = 0;

	for (size_t k = 0; k < p->count; k++)
		if (strcmp(p->wheels[k].name.version, w->name.version) == 0) {
			if (k < i)
				return KPACK_SUCCESS;
			same[n++] = &p->wheels[k];
		}
	KP_TRY(index_variants(same, n, &extra.text, why));
	if (!extra.text)
		return KPACK_SUCCESS;
	extra.file = xasprintf("%s-%s-variants.json", w->name.dist, w->name.version);
	added = &p->extras[p->n_extras++];
	*added = extra;
	return digest_text(kp_span_str(added->text), added->sha256, why);
}

static kpack_error_t write_project(const struct tree *tree, const char *dir,
				   struct index_project *p, struct kpackx_error *why)
{
	const struct index_wheel **same = xmalloc(p->count * sizeof(*same));
	struct page page = {tree, p};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; !err && i < p->count; i++)
		err = add_variants(p, i, same, why);
	free(same);
	for (size_t i = 0; !err && i < p->n_extras; i++)
		err = write_text(dir, p->extras[i].file, p->extras[i].text,
				 strlen(p->extras[i].text), why);
	return err ? err : write_pages(dir, project_html, project_json, &page, why);
}

static kpack_error_t make_project(const struct tree *tree,
				  const struct index_wheel *wheels, size_t count,
				  struct kpackx_error *why)
{
	struct index_project p = {.wheels = wheels,
				  .count = count,
				  .extras = xcalloc(count, sizeof(*p.extras))};
	char *dir = xasprintf("%s/%s", tree->root, wheels->project);
	kpack_error_t err = below_mkdirs(dir, 0777, why);

	if (!err)
		err = write_project(tree, dir, &p, why);
	for (size_t i = 0; i < p.n_extras; i++) {
		free(p.extras[i].file);
		free(p.extras[i].text);
	}
	free(p.extras);
	free(dir);
	return err;
}

static kpack_error_t make_tree(const struct tree *tree, const struct all *all,
			       struct kpackx_error *why)
{
	size_t first = 0;

	KP_TRY(below_mkdirs(tree->root, 0777, why));
	for (size_t i = 1; i <= all->count; i++) {
		if (i < all->count &&
		    strcmp(all->wheels[i].project, all->wheels[first].project) == 0)
			continue;
		KP_TRY(make_project(tree, all->wheels + first, i - first, why));
		first = i;
	}
	return write_pages(tree->root, root_html, root_json, all, why);
}

/* Fail unless OUT is missing, empty or an index that we wrote. */
static kpack_error_t check_old(const char *out, struct kpackx_error *why)
{
	char *path, head[HEAD_MAX + 1] = "";
	struct stat st;
	int old;

	if (below_stat(out, &st) < 0 || below_rmdir(out) == 0)
		return KPACK_SUCCESS;
	path = xasprintf("%s/index.html", out);
	if (!below_file_open(path, &old, &st, NULL)) {
		size_t size = st.st_size < HEAD_MAX ? (size_t)st.st_size : HEAD_MAX;

		if (kp_file_pread(old, 0, head, size, NULL))
			*head = '\0';
		close(old);
	}
	free(path);
	return strstr(head, mark)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				 "%s: exists and is not an index that kpack wrote", out);
}

/*
 * The relative path from the directory FROM/x to TO, both real paths.  The caller frees it.
 */
static char *relative_path(const char *from, const char *to)
{
	size_t same = 0, size;
	char *text;
	FILE *out = xmemstream(&text, &size);

	for (size_t i = 0;; i++) {
		bool from_ends = !from[i] || from[i] == '/';
		bool to_ends = !to[i] || to[i] == '/';

		if (from_ends && to_ends)
			same = i;
		if (!from[i] || !to[i] || from[i] != to[i])
			break;
	}
	fputs("..", out);
	for (const char *p = from + same; *p; p++)
		if (*p == '/' && p[1])
			fputs("/..", out);
	if (to[same])
		fputs(to[same] == '/' ? to + same : "", out);
	fclose(out);
	return text;
}

static kpack_error_t find_real_path(const char *path, char **out,
				    struct kpackx_error *why)
{
	*out = below_real(path);
	return *out ? KPACK_SUCCESS : below_fail(why, "%s: cannot be resolved", path);
}

/* Write the index as the directory NAME in the directory BASE. */
static kpack_error_t write_in(const char *dir, const char *base, const char *name,
			      const struct all *all, struct kpackx_error *why)
{
	char *real_dir = NULL, *real_base = NULL;
	char *final = NULL, *root = NULL, *above = NULL;
	struct staging staging;
	kpack_error_t err;

	KP_TRY(staging_open(&staging, base, why));
	err = find_real_path(dir, &real_dir, why);
	if (err)
		goto out;
	err = find_real_path(base, &real_base, why);
	if (err)
		goto out;
	final = xasprintf("%s/%s", real_base, name);
	root = xasprintf("%s/%s", staging.path, name);
	above = relative_path(final, real_dir);
	err = make_tree(&(struct tree){root, above}, all, why);
	if (!err)
		err = staging_publish(&staging, &name, 1, true, why);
out:
	staging_close(&staging);
	free(real_dir);
	free(real_base);
	free(final);
	free(root);
	free(above);
	return err;
}

kpack_error_t index_tree_write(const char *dir, const char *out,
			       const struct index_wheel *wheels, size_t count,
			       struct kpackx_error *why)
{
	struct all all = {wheels, count};
	char *base = xstrdup(out), *name = xstrdup(out);
	const char *parent = dirname(base);
	kpack_error_t err = check_old(out, why);

	if (!err)
		err = below_make_root(parent, 0777, why);
	if (!err)
		err = write_in(dir, parent, basename(name), &all, why);
	free(base);
	free(name);
	return err;
}
