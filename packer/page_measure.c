/* SPDX-License-Identifier: MIT */
#include "page_measure.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "command.h"
#include "packing.h"
#include "report.h"

/* The group of archives that are gone before anybody sees them. */
#define GROUP "measured"

/* Where archives of any size may be for a while. */
static char *temporary(void)
{
	const char *dir = getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/kpack-report-XXXXXX", dir && *dir ? dir : "/var/tmp") < 0)
		return NULL;
	if (mkdtemp(path))
		return path;
	report_error(path, "cannot make a directory: %s", strerror(errno));
	free(path);
	return NULL;
}

/* Open archives live on without their names. */
static void take_archives(struct page_input *in, const struct packing *p)
{
	size_t n = 0;
	const char *const *names = p->set ? archive_set_names(p->set, &n) : NULL;
	char *path;

	for (size_t i = 0; i < n; i++) {
		if (asprintf(&path, "%s/%s", p->archives, names[i]) < 0) {
			page_input_fault(in, names[i], "out of memory");
			continue;
		}
		page_input_archive(in, path, names[i]);
		unlink(path);
		free(path);
	}
	if (p->archives)
		rmdir(p->archives);
}

/* Of a binary its section goes, of anything else the file. */
static void count_inputs(struct page_input *in, const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_inputs; i++) {
		const struct input *file = scan->inputs[i];
		bool whole = file->objects || !input_is_host(file);

		in->coded_files++;
		in->coded_bytes +=
			whole ? (uint64_t)file->st.st_size : file->fat.source.size;
	}
}

static void measure(struct page_input *in, struct packing *p, const char *name)
{
	int status = packing_run(p);

	count_inputs(in, &p->scan);
	take_archives(in, p);
	/* a tree without device code is no fault: there is nothing to measure */
	if (status && (p->scan.n_inputs || p->scan.n_faults))
		page_input_fault(in, name, "its device code could not be measured");
}

void page_measure(struct page_input *in, const char *root, const char *name, bool quiet)
{
	struct kpackx_error why = {0};
	struct packing p = {0};
	char *dir = temporary();

	in->measured = true;
	if (!dir) {
		page_input_fault(in, name, "no temporary directory to measure it");
		return;
	}
	pack_args_init(&p.args);
	p.args.input = root;
	p.args.output = dir;
	p.args.mode = PACK_ARCHIVES;
	p.args.quiet = quiet;
	p.args.group = strdup(GROUP);
	p.args.prefix = strdup("");
	if (!p.args.group || !p.args.prefix)
		page_input_fault(in, name, "out of memory");
	else if (library_set_open(NULL, NULL, &p.args.libraries, &why))
		page_input_fault(in, name, why.text);
	else
		measure(in, &p, name);
	packing_close(&p);
	rmdir(dir);
	free(dir);
}
