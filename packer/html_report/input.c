/* SPDX-License-Identifier: MIT */
#include "input.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/base/xalloc.h"
#include "packer/archives/operands.h"
#include "measure.h"
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

static void open_archive(struct page_input *in, const char *path, const char *name)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;

	if (kp_archive_open(path, &a, &why))
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
	size_t skip; /* bytes of paths before the part that is shown */
	struct linked *links;
	size_t n_links, links_cap;
	uint64_t n_archives;
};

static int by_file(const void *pa, const void *pb)
{
	const struct linked *a = pa, *b = pb;

	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	return (a->ino > b->ino) - (a->ino < b->ino);
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

static void count_file(struct walk *w, const FTSENT *e)
{
	struct page_input *in = w->in;

	if (e->fts_statp->st_nlink > 1)
		note_link(w, e->fts_statp);
	in->host_files++;
	in->host_bytes += (uint64_t)e->fts_statp->st_size;
}

static void visit_entry(struct walk *w, const FTSENT *e)
{
	const char *name = e->fts_path + w->skip;

	switch (e->fts_info) {
	case FTS_F:
		if (kp_is_archive_name(e->fts_name)) {
			open_archive(w->in, e->fts_path, name);
			w->n_archives++;
		} else {
			count_file(w, e);
		}
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		page_input_fault(w->in, name, strerror(e->fts_errno));
		break;
	default:
		break;
	}
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
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
	struct walk w = {.in = in, .skip = strlen(root)};
	char *const roots[] = {(char *)root, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	FTSENT *e;

	if (w.skip == 0 || root[w.skip - 1] != '/')
		w.skip++;
	while (fts && (errno = 0, e = fts_read(fts)))
		visit_entry(&w, e);
	if (errno)
		page_input_fault(in, page_name(root), strerror(errno));
	if (fts)
		fts_close(fts);
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

static bool is_archive(const char *path)
{
	char magic[4] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool yes = fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		   memcmp(magic, "KPAK", sizeof(magic)) == 0;

	if (fd >= 0)
		close(fd);
	return yes || kp_is_archive_name(path);
}

static void read_operand(struct page_input *in, const char *operand, bool quiet)
{
	const char *name = page_name(operand);
	uint64_t files = in->host_files, archives;
	struct stat st;

	if (stat(operand, &st) < 0) {
		page_input_fault(in, name, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		in->trees = true;
		archives = walk_tree(in, operand);
		if (in->host_files > files)
			page_measure(in, operand, name, archives ? PAGE_REST : PAGE_TREE,
				     quiet);
	} else if (is_archive(operand)) {
		open_archive(in, operand, name);
	} else {
		in->trees = true;
		in->host_files++;
		in->host_bytes += (uint64_t)st.st_size;
		page_measure(in, operand, name, PAGE_FILE, quiet);
	}
}

/* OPERAND without slashes at its end: "tree/" and "tree" are shown alike. */
static char *without_slashes(const char *operand)
{
	size_t n = strlen(operand);

	while (n > 1 && operand[n - 1] == '/')
		n--;
	return xstrndup(operand, n);
}

kpack_error_t page_input_open(int n, char **operands, bool quiet, struct page_input *out,
			      struct kpackx_error *why)
{
	(void)why;
	*out = (struct page_input){0};
	archives_allow_many();
	for (int i = 0; i < n; i++) {
		char *operand = without_slashes(operands[i]);

		read_operand(out, operand, quiet);
		free(operand);
	}
	return KPACK_SUCCESS;
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
