/* SPDX-License-Identifier: MIT */
/*
 * An operand is an archive, a file with device code, or a directory.  A directory is walked
 * once: its archives are opened, its other files counted.  What is left of device code in it
 * is then packed as `kpack pack --archives-only` does, into unnamed files, and these archives
 * count like the others.  In a directory that has archives only binaries are measured, because
 * its kernel databases may be in the archives and unpacked on purpose.
 */
#include "report.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/process.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/pack/run.h"

void report_input_fault(struct report_input *in, const char *name, const char *fmt, ...)
{
	KP_AUTO_FREE char *text = NULL;
	char shown[256];
	va_list args;

	va_start(args, fmt);
	text = xvasprintf(fmt, args);
	va_end(args);
	report_error(name, "%s", text);
	kp_faults_add(&in->faults, true, "%s: %s",
		      kp_text_escape(kp_span_str(name), shown, sizeof(shown)), text);
}

/*
 * Add the archive A under NAME.  IN owns it from now on; a file that IN has already, under
 * another name or given twice, counts once.
 */
static void add_archive(struct report_input *in, struct kpack_archive *a,
			const char *name)
{
	const struct stat *st = kp_archive_stat(a);
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	for (size_t i = 0; i < in->count; i++) {
		const struct stat *other = kp_archive_stat(in->archives[i].archive);

		if (other->st_ino == st->st_ino && other->st_dev == st->st_dev) {
			kp_archive_close(a);
			return;
		}
	}
	in->archives = xrealloc(in->archives, (in->count + 1) * sizeof(*in->archives));
	in->archives[in->count++] =
		(struct report_archive){a, xstrdup(name), (uint64_t)st->st_size};
	in->archive_bytes += (uint64_t)st->st_size;
	for (size_t i = 0; i < kept; i++)
		if (faults[i].refused)
			report_input_fault(in, name, "%s", faults[i].text);
	if (counted > kept)
		report_input_fault(in, name, "and %zu fault%s more", counted - kept,
				   plural(counted - kept));
}

/* Open the archive PATH; FD is its descriptor, or -1 to open it by name. */
static void open_archive(struct report_input *in, const char *path, int fd,
			 const char *name)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;

	if (fd < 0 ? below_archive_open(path, &a, &why)
		   : kp_archive_open_fd(fd, path, &a, &why))
		report_input_fault(in, name, "%s", why.text);
	else
		add_archive(in, a, name);
}

/* The last component of OPERAND: a page must not reveal more of its path. */
static const char *last_component(const char *operand)
{
	const char *slash = strrchr(operand, '/');

	return slash && slash[1] ? slash + 1 : operand;
}

/* ---- device code that is not packed ---- */

enum measured {
	MEASURE_FILE,
	MEASURE_TREE, /* without archives */
	MEASURE_REST, /* a tree with archives, in which some binaries may not be packed */
};

static void measure(struct report_input *in, const char *root, const char *name,
		    enum measured what, bool quiet)
{
	struct packing p = {0};
	struct kpackx_error why = {0};
	size_t faults = in->faults.counted, n = 0;
	uint64_t before = in->archive_bytes;
	const char *const *names = NULL;
	int status;

	pack_args_init(&p.args);
	p.args.input = root;
	p.args.output = tmpdir(LARGE_TEMPORARY_DIR);
	p.args.mode = PACK_ARCHIVES;
	p.kind = PACKING_MEASURED;
	p.archives = xstrdup(p.args.output);
	p.args.quiet = quiet;
	p.scan.progress = !quiet;
	p.args.group = xstrdup("measured"); /* nobody sees it */
	p.args.prefix = xstrdup("");
	if (library_set_open(NULL, NULL, &p.args.libraries, &why) ||
	    scan_open(root, "", what == MEASURE_FILE ? SCAN_ALL_CODE : SCAN_TO_MEASURE,
		      what == MEASURE_REST ? NULL : &p.args.libraries, SCAN_PACK, &p.scan,
		      &why)) {
		report_input_fault(in, name, "%s", why.text);
		goto out;
	}
	if (what == MEASURE_REST)
		p.args.databases = DATABASES_PLAIN;
	/* report what cannot be packed, and forget these faults, so that the rest is measured */
	for (size_t i = 0; i < p.scan.n_entries; i++) {
		struct scan_entry *e = &p.scan.entries[i];

		if (e->left == SCAN_LEFT_UNSUPPORTED)
			continue;
		if (e->fault)
			report_input_fault(in, e->relative, "%s", e->fault);
		if (e->fault || e->converted)
			e->note = NULL;
	}
	if (p.scan.n_faults)
		report_input_fault(in, name, "could not look at %zu file%s of it",
				   p.scan.n_faults, plural(p.scan.n_faults));
	p.scan.n_faults = 0;
	in->measured |= what != MEASURE_REST || p.scan.n_inputs;
	if (!p.scan.n_inputs && (what == MEASURE_REST || in->faults.counted != faults))
		goto out;
	status = packing_plan(&p);
	if (!status && packing_write(&p, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	}
	for (size_t i = 0; i < p.scan.n_inputs; i++) {
		const struct input *file = p.scan.inputs[i];
		const struct kp_containers *list = &file->fat.containers;
		bool nested =
			file->kind != INPUT_HOST && file->fat.kind == KP_FATBIN_NESTED;

		/*
		 * A binary's section; the containers in other sections, such as CUDA's, but not
		 * those inside them; of anything else the whole file.
		 */
		in->coded_files++;
		if (!nested)
			in->coded_bytes += file->kind == INPUT_HOST
						   ? file->fat.source.size
						   : (uint64_t)file->st.st_size;
		for (size_t k = 0; nested && k < list->count; k++)
			if (list->items[k].inside == KP_NOWHERE)
				in->coded_bytes += list->items[k].size;
	}
	/* the archives have no name on disk: they are opened again by their descriptors */
	if (p.set)
		names = archive_set_names(p.set, &n);
	for (size_t i = 0; i < n; i++) {
		struct kpack_archive *a = NULL;

		if (archive_set_reopen(p.set, names[i], &a, &why))
			report_input_fault(in, names[i], "%s", why.text);
		else
			add_archive(in, a, names[i]);
	}
	in->measured_bytes += in->archive_bytes - before;
	/* a tree without device code is not a fault: there is nothing to measure */
	if (status && p.scan.n_inputs)
		report_input_fault(in, name, "its device code could not be measured");
out:
	packing_close(&p);
}

/* ---- operands ---- */

/* A file with several names. */
struct linked_file {
	uint64_t dev, ino, size;
};

/*
 * Walk the tree ROOT: open its archives, count its other files; of a file with several names
 * only one.  Returns the number of archives.
 */
static uint64_t walk_tree(struct report_input *in, const char *root)
{
	KP_AUTO_FREE struct linked_file *links = NULL;
	size_t n_links = 0, cap = 0;
	uint64_t archives = 0;
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;

	while (tree_list_next(list, &item)) {
		const char *name = item.level ? item.rest : last_component(item.path);
		const struct stat *st = &item.st;

		if (item.kind == TREE_FAULT) {
			report_input_fault(in, name, "%s", strerror(item.error));
		} else if (item.kind != TREE_OTHER || !S_ISREG(st->st_mode)) {
			continue;
		} else if (kp_is_archive_name(item.name)) {
			open_archive(in, item.path, -1, name);
			archives++;
		} else {
			if (st->st_nlink > 1) {
				xgrow(&links, n_links, &cap, sizeof(*links));
				links[n_links++] = (struct linked_file){
					st->st_dev, st->st_ino, (uint64_t)st->st_size};
			}
			in->host_files++;
			in->host_bytes += (uint64_t)st->st_size;
		}
	}
	tree_list_close(list);
	kp_sort(links, n_links, KP_BY_NUMBER(struct linked_file, dev),
		KP_BY_NUMBER(struct linked_file, ino));
	for (size_t i = 1; i < n_links; i++) {
		if (links[i].dev != links[i - 1].dev || links[i].ino != links[i - 1].ino)
			continue;
		in->host_files--;
		in->host_bytes -= links[i].size;
	}
	return archives;
}

void report_input_open(int n, char **operands, bool quiet, struct report_input *in)
{
	*in = (struct report_input){0};
	for (int i = 0; i < n; i++) {
		KP_AUTO_FREE char *path = xstrdup(operands[i]);
		const char *name;
		uint64_t files = in->host_files;
		struct kpackx_error why = {0};
		struct stat st = {0};
		int missing = below_stat(path, &st), fd = -1;
		char magic[4] = "";

		/* "tree/" and "tree" are shown alike */
		for (size_t end = strlen(path);
		     !missing && S_ISDIR(st.st_mode) && end > 1 && path[end - 1] == '/';
		     end--)
			path[end - 1] = '\0';
		name = last_component(path);
		if (below_root_if_directory(path, &why)) {
			report_input_fault(in, name, "%s", why.text);
			continue;
		}
		if (below_stat(path, &st) < 0) {
			report_input_fault(in, name, "%s", strerror(errno));
			continue;
		}
		if (S_ISDIR(st.st_mode)) {
			uint64_t archives = walk_tree(in, path);

			in->trees = true;
			if (in->host_files > files)
				measure(in, path, name,
					archives ? MEASURE_REST : MEASURE_TREE, quiet);
			continue;
		}
		/* what cannot be opened is reported by what needs it; an archive may have any name */
		if (below_file_open(path, &fd, &st, NULL)) {
			fd = -1;
			st.st_size = 0;
		}
		if (kp_is_archive_name(path) ||
		    (fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		     memcmp(magic, "KPAK", sizeof(magic)) == 0)) {
			open_archive(in, path, fd, name);
			continue;
		}
		if (fd >= 0)
			close(fd);
		in->trees = true;
		in->host_files++;
		in->host_bytes += (uint64_t)st.st_size;
		measure(in, path, name, MEASURE_FILE, quiet);
	}
}

void report_input_close(struct report_input *in)
{
	for (size_t i = 0; i < in->count; i++) {
		kp_archive_close(in->archives[i].archive);
		free(in->archives[i].name);
	}
	free(in->archives);
	kp_faults_fini(&in->faults);
	*in = (struct report_input){0};
}
