/* SPDX-License-Identifier: MIT */
#include "report_measure.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/tmpdir.h"
#include "packer/cli/xalloc.h"
#include "packer/pack/run.h"

/* The group name of the archives; nobody sees it. */
#define GROUP "measured"

static void take_archives(struct page_input *in, const struct packing *p)
{
	size_t n = 0;
	const char *const *names = p->set ? archive_set_names(p->set, &n) : NULL;

	for (size_t i = 0; i < n; i++) {
		struct kpackx_error why = {0};
		struct kpack_archive *a = NULL;

		if (archive_set_reopen(p->set, names[i], &a, &why))
			page_input_fault(in, names[i], why.text);
		else
			page_input_take(in, a, names[i]);
	}
}

/* The bytes of containers that are not in another one. */
static uint64_t size_of_containers(const struct kp_fatbin *fat)
{
	uint64_t size = 0;

	for (size_t i = 0; i < fat->containers.count; i++)
		if (fat->containers.items[i].inside == KP_NOWHERE)
			size += fat->containers.items[i].size;
	return size;
}

/*
 * The bytes of code in a file: a binary's section; the containers in other sections, such
 * as CUDA's; of anything else the whole file.
 */
static uint64_t size_of_code(const struct input *file)
{
	if (file->kind == INPUT_HOST)
		return file->fat.source.size;
	return file->fat.kind == KP_FATBIN_NESTED ? size_of_containers(&file->fat)
						  : (uint64_t)file->st.st_size;
}

/* Count what packing stores of files. */
static void count_inputs(struct page_input *in, const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_inputs; i++) {
		const struct input *file = scan->inputs[i];
		in->coded_files++;
		in->coded_bytes += size_of_code(file);
	}
}

/*
 * Report files that cannot be packed and leave them out.  Returns whether there were any.
 */
static bool leave_faults(struct page_input *in, struct scan *scan, const char *name)
{
	size_t before = in->faults.counted;
	char text[64];

	for (size_t i = 0; i < scan->n_entries; i++) {
		struct scan_entry *e = &scan->entries[i];

		if (e->left == SCAN_LEFT_UNSUPPORTED)
			continue;
		if (e->fault)
			page_input_fault(in, e->relative, e->fault);
		if (e->fault || e->converted)
			e->note = NULL;
	}
	if (scan->n_faults) {
		snprintf(text, sizeof(text), "could not look at %zu file%s of it",
			 scan->n_faults, scan->n_faults == 1 ? "" : "s");
		page_input_fault(in, name, text);
	}
	scan->n_faults = 0;
	return in->faults.counted > before;
}

static kpack_error_t pack_unnamed(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(packing_open_set(p, NULL, true, why));
	KP_TRY(packing_store(p, why));
	return archive_set_publish(p->set, why);
}

static void measure_inputs(struct page_input *in, struct packing *p, const char *name)
{
	uint64_t archives = in->archive_bytes;
	int status = packing_prepare(p);
	struct kpackx_error why = {0};

	if (!status)
		status = packing_status(pack_unnamed(p, &why), &why);
	count_inputs(in, &p->scan);
	take_archives(in, p);
	in->measured_bytes += in->archive_bytes - archives;
	/* a tree without device code is not a fault: there is nothing to measure */
	if (status && p->scan.n_inputs)
		page_input_fault(in, name, "its device code could not be measured");
}

/*
 * Scan the input and measure it.  In a tree with archives, database files are not
 * measured: they may be in the archives and stay on purpose.
 */
static void scan_and_measure(struct page_input *in, struct packing *p, const char *name,
			     enum page_measured what)
{
	struct kpackx_error why = {0};
	const struct library_set *libraries =
		what == PAGE_REST ? NULL : &p->args.libraries;
	bool faulty;

	if (library_set_open(NULL, NULL, &p->args.libraries, &why) ||
	    scan_open(p->args.input, "",
		      what == PAGE_FILE ? SCAN_ALL_CODE : SCAN_TO_MEASURE, libraries,
		      SCAN_PACK, &p->scan, &why)) {
		page_input_fault(in, name, why.text);
		return;
	}
	if (what == PAGE_REST)
		p->args.databases = DATABASES_PLAIN;
	faulty = leave_faults(in, &p->scan, name);
	in->measured |= what != PAGE_REST || p->scan.n_inputs;
	if (p->scan.n_inputs || (what != PAGE_REST && !faulty))
		measure_inputs(in, p, name);
}

void page_measure(struct page_input *in, const char *root, const char *name,
		  enum page_measured what, bool quiet)
{
	struct packing p = {0};

	pack_args_init(&p.args);
	p.args.input = root;
	p.args.output = tmpdir(LARGE_TEMPORARY_DIR);
	p.args.mode = PACK_ARCHIVES;
	p.archives = xstrdup(p.args.output);
	p.args.quiet = quiet;
	p.args.group = xstrdup(GROUP);
	p.args.prefix = xstrdup("");
	scan_and_measure(in, &p, name, what);
	packing_close(&p);
}
