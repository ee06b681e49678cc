/* SPDX-License-Identifier: MIT */
#include "tree.h"
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/file.h"
#include "page.h"
#include "variants.h"
#include "packer/cli/report.h"
#include "packer/files/staging.h"

/* Every page that we write has this mark. */
static const char mark[] = "<meta name=\"generator\" content=\"kpack index\">";

enum { HEAD_MAX = 4096 };

struct tree {
	const char *root;  /* the directory for the pages */
	const char *above; /* relative path from a project's directory to the wheels */
};

typedef kpack_error_t write_page(FILE *out, const void *arg, struct kpackx_error *why);

static kpack_error_t write_text(const char *dir, const char *name, const char *text,
				size_t size, struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;

	KP_TRY(kp_outfile_open(&out, dir, name, 0666, why));
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
	FILE *out = open_memstream(&text, &size);
	kpack_error_t err;

	if (!out)
		return kp_fail_memory(why, 0, name);
	err = page(out, arg, why);
	if (fclose(out) && !err)
		err = kp_fail_memory(why, size, name);
	if (!err)
		err = write_text(dir, name, text, size, why);
	free(text);
	return err;
}

struct page {
	const struct tree *tree;
	const struct index_project *project;
};

static kpack_error_t project_html(FILE *out, const void *arg, struct kpackx_error *why)
{
	const struct page *page = arg;

	(void)why;
	index_page_project(out, page->project, page->tree->above);
	return KPACK_SUCCESS;
}

static kpack_error_t project_json(FILE *out, const void *arg, struct kpackx_error *why)
{
	const struct page *page = arg;

	return index_json_project(out, page->project, page->tree->above, why);
}

/* All wheels, sorted by project. */
struct all {
	const struct index_wheel *wheels;
	size_t count;
};

static kpack_error_t root_html(FILE *out, const void *arg, struct kpackx_error *why)
{
	const struct all *all = arg;

	(void)why;
	index_page_root(out, all->wheels, all->count);
	return KPACK_SUCCESS;
}

static kpack_error_t root_json(FILE *out, const void *arg, struct kpackx_error *why)
{
	const struct all *all = arg;

	return index_json_root(out, all->wheels, all->count, why);
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
	added = &p->extras[p->n_extras++];
	*added = extra;
	if (asprintf(&added->file, "%s-%s-variants.json", w->name.dist, w->name.version) <
	    0) {
		added->file = NULL;
		return kp_fail_memory(why, 0, "a path");
	}
	return digest_text(kp_span_str(added->text), added->sha256, why);
}

static kpack_error_t write_project(const struct tree *tree, const char *dir,
				   struct index_project *p, struct kpackx_error *why)
{
	const struct index_wheel **same = calloc(p->count, sizeof(*same));
	struct page page = {tree, p};
	kpack_error_t err = KPACK_SUCCESS;

	if (!same)
		return kp_fail_memory(why, p->count * sizeof(*same), "wheels");
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
	struct index_project p = {.wheels = wheels, .count = count};
	char *dir;
	kpack_error_t err;

	p.extras = calloc(count, sizeof(*p.extras));
	if (!p.extras || asprintf(&dir, "%s/%s", tree->root, wheels->project) < 0) {
		free(p.extras);
		return kp_fail_memory(why, 0, "a path");
	}
	err = kp_mkdirs(dir, 0777, why);
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

	KP_TRY(kp_mkdirs(tree->root, 0777, why));
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
	FILE *old;

	if (access(out, F_OK) != 0 || rmdir(out) == 0)
		return KPACK_SUCCESS;
	if (asprintf(&path, "%s/index.html", out) < 0)
		return kp_fail_memory(why, strlen(out), "a path");
	old = fopen(path, "re");
	if (old) {
		head[fread(head, 1, HEAD_MAX, old)] = '\0';
		fclose(old);
	}
	free(path);
	return strstr(head, mark)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				 "%s: exists and is not an index that kpack wrote", out);
}

/* The relative path from the directory FROM/x to TO, both real paths; on the heap. */
static char *relative_path(const char *from, const char *to)
{
	size_t same = 0, size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0;; i++) {
		bool from_ends = !from[i] || from[i] == '/';
		bool to_ends = !to[i] || to[i] == '/';

		if (from_ends && to_ends)
			same = i;
		if (!from[i] || !to[i] || from[i] != to[i])
			break;
	}
	if (!out)
		return NULL;
	fputs("..", out);
	for (const char *p = from + same; *p; p++)
		if (*p == '/' && p[1])
			fputs("/..", out);
	if (to[same])
		fputs(to[same] == '/' ? to + same : "", out);
	return fclose(out) ? NULL : text;
}

/* Write the index as the directory NAME in the directory BASE. */
static kpack_error_t write_in(const char *dir, const char *base, const char *name,
			      const struct all *all, struct kpackx_error *why)
{
	char *real_dir = realpath(dir, NULL), *real_base = realpath(base, NULL);
	char *final = NULL, *root = NULL, *above = NULL;
	struct staging staging;
	kpack_error_t err = staging_open(&staging, base, why);

	if (!err &&
	    (!real_dir || !real_base || asprintf(&final, "%s/%s", real_base, name) < 0 ||
	     asprintf(&root, "%s/%s", staging.path, name) < 0 ||
	     !(above = relative_path(final, real_dir))))
		err = kp_fail_memory(why, 0, "paths");
	if (!err)
		err = make_tree(&(struct tree){root, above}, all, why);
	if (!err)
		err = staging_publish(&staging, &name, 1, true, why);
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
	char *base = strdup(out), *name = strdup(out);
	kpack_error_t err = base && name ? check_old(out, why)
					 : kp_fail_memory(why, strlen(out), "a path");

	if (!err) {
		const char *parent = dirname(base);

		err = kp_mkdirs(parent, 0777, why);
		if (!err)
			err = write_in(dir, parent, basename(name), &all, why);
	}
	free(base);
	free(name);
	return err;
}
