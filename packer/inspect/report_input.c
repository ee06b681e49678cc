/* SPDX-License-Identifier: MIT */
#include "report_input.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/archives/operands.h"
#include "report_measure.h"
#include "packer/cli/report.h"
#include "core/base/text.h"
#include "core/archive/naming.h"

void page_input_fault(struct page_input *in, const char *name, const char *text)
{
	char shown[256];

	report_error(name, "%s", text);
	kp_faults_add(&in->faults, true, "%s: %s",
		      kp_text_escape(kp_span_str(name), shown, sizeof(shown)), text);
}

/* --- archives ----------------------------------------------------------------------- */

/* Whether IN has the file already: under another name or given twice, it counts once. */
static bool is_known(const struct page_input *in, const struct stat *st)
{
	for (size_t i = 0; i < in->count; i++) {
		const struct stat *other = kp_archive_stat(in->archives[i].archive);

		if (other->st_ino == st->st_ino && other->st_dev == st->st_dev)
			return true;
	}
	return false;
}

static void take_faults(struct page_input *in, const struct kpack_archive *a,
			const char *name)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);
	char more[64];

	for (size_t i = 0; i < kept; i++)
		if (faults[i].refused)
			page_input_fault(in, name, faults[i].text);
	if (counted == kept)
		return;
	snprintf(more, sizeof(more), "and %zu faults more", counted - kept);
	page_input_fault(in, name, more);
}

void page_input_take(struct page_input *in, struct kpack_archive *a, const char *name)
{
	const struct stat *st = kp_archive_stat(a);
	uint64_t bytes = (uint64_t)st->st_size;

	if (is_known(in, st)) {
		kp_archive_close(a);
		return;
	}
	in->archives = xrealloc(in->archives, (in->count + 1) * sizeof(*in->archives));
	in->archives[in->count++] = (struct page_archive){a, xstrdup(name), bytes};
	in->archive_bytes += bytes;
	take_faults(in, a, name);
}

/* Open the archive PATH, which is open at FD, or at -1 not yet. */
static void open_archive(struct page_input *in, const char *path, int fd,
			 const char *name)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;

	if (fd < 0 ? below_archive_open(path, &a, &why)
		   : kp_archive_open_fd(fd, path, &a, &why))
		page_input_fault(in, name, why.text);
	else
		page_input_take(in, a, name);
}

/* --- trees -------------------------------------------------------------------------- */

/* A file with several names. */
struct linked {
	dev_t dev;
	ino_t ino;
	uint64_t size;
};

struct walk {
	struct page_input *in;
	struct linked *links;
	size_t n_links, links_cap;
	uint64_t n_archives;
};

static int by_file(const void *pa, const void *pb)
{
	const struct linked *a = pa, *b = pb;

	if (a->dev != b->dev)
		return KP_ORDER(a->dev, b->dev);
	return KP_ORDER(a->ino, b->ino);
}

/*
 * Remember a file with several names; uncount_links corrects the counts when all are
 * known.
 */
static void note_link(struct walk *w, const struct stat *st)
{
	xgrow(&w->links, w->n_links, &w->links_cap, sizeof(*w->links));
	w->links[w->n_links++] =
		(struct linked){st->st_dev, st->st_ino, (uint64_t)st->st_size};
}

static void count_file(struct walk *w, const struct stat *st)
{
	struct page_input *in = w->in;

	if (st->st_nlink > 1)
		note_link(w, st);
	in->host_files++;
	in->host_bytes += (uint64_t)st->st_size;
}

static void visit_item(struct walk *w, const struct tree_item *item)
{
	const char *name = item->level ? item->rest : page_name(item->path);

	if (item->kind == TREE_FAULT) {
		page_input_fault(w->in, name, below_strerror(item->error));
	} else if (item->kind == TREE_OTHER && S_ISREG(item->st.st_mode)) {
		if (kp_is_archive_name(item->name)) {
			open_archive(w->in, item->path, -1, name);
			w->n_archives++;
		} else {
			count_file(w, &item->st);
		}
	}
}

/* Subtract what was counted for further names of a file. */
static void uncount_links(struct walk *w)
{
	if (w->n_links)
		qsort(w->links, w->n_links, sizeof(*w->links), by_file);
	for (size_t i = 1; i < w->n_links; i++) {
		if (by_file(&w->links[i - 1], &w->links[i]) != 0)
			continue;
		w->in->host_files--;
		w->in->host_bytes -= w->links[i].size;
	}
}

/* Read the tree ROOT; returns the number of archives in it. */
static uint64_t walk_tree(struct page_input *in, const char *root)
{
	struct walk w = {.in = in};
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;

	while (tree_list_next(list, &item))
		visit_item(&w, &item);
	tree_list_close(list);
	uncount_links(&w);
	free(w.links);
	return w.n_archives;
}

/* --- operands ----------------------------------------------------------------------- */

const char *page_name(const char *operand)
{
	const char *slash = strrchr(operand, '/');

	return slash && slash[1] ? slash + 1 : operand;
}

/* Whether PATH, which is open at FD, or at -1 could not be opened, is an archive. */
static bool is_archive(int fd, const char *path)
{
	char magic[4] = "";

	return (fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		memcmp(magic, "KPAK", sizeof(magic)) == 0) ||
	       kp_is_archive_name(path);
}

static void read_file(struct page_input *in, const char *operand, const char *name,
		      bool quiet)
{
	struct stat st = {0};
	int fd = -1;

	/* what cannot be opened is reported by what needs it */
	below_file_open(operand, &fd, &st, NULL);
	if (is_archive(fd, operand)) {
		open_archive(in, operand, fd, name);
		return;
	}
	if (fd >= 0)
		close(fd);
	in->trees = true;
	in->host_files++;
	in->host_bytes += (uint64_t)st.st_size;
	page_measure(in, operand, name, PAGE_FILE, quiet);
}

static void read_operand(struct page_input *in, const char *operand, bool quiet)
{
	const char *name = page_name(operand);
	uint64_t files = in->host_files, archives;
	struct kpackx_error why = {0};
	struct stat st;

	if (below_root_if_directory(operand, &why)) {
		page_input_fault(in, name, why.text);
	} else if (below_stat(operand, &st) < 0) {
		page_input_fault(in, name, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		in->trees = true;
		archives = walk_tree(in, operand);
		if (in->host_files > files)
			page_measure(in, operand, name, archives ? PAGE_REST : PAGE_TREE,
				     quiet);
	} else {
		read_file(in, operand, name, quiet);
	}
}

/* A directory OPERAND without slashes at its end: "tree/" and "tree" are shown alike. */
static char *without_slashes(const char *operand)
{
	size_t n = strlen(operand);
	struct stat st;

	if (below_stat(operand, &st) < 0 || !S_ISDIR(st.st_mode))
		return xstrdup(operand);
	while (n > 1 && operand[n - 1] == '/')
		n--;
	return xstrndup(operand, n);
}

void page_input_open(int n, char **operands, bool quiet, struct page_input *out)
{
	*out = (struct page_input){0};
	for (int i = 0; i < n; i++) {
		char *operand = without_slashes(operands[i]);

		read_operand(out, operand, quiet);
		free(operand);
	}
}

void page_input_close(struct page_input *in)
{
	for (size_t i = 0; i < in->count; i++) {
		kp_archive_close(in->archives[i].archive);
		free(in->archives[i].name);
	}
	free(in->archives);
	kp_faults_fini(&in->faults);
	*in = (struct page_input){0};
}
