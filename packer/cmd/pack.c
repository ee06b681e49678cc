/* SPDX-License-Identifier: MIT */
/*
 * kpack pack: fat binaries in, archives and converted binaries out.  packer/pack/run.h does the
 * work; here it is begun, as a whole or as one shard of several, and reported.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "packer/cli/report.h"
#include "packer/cli/shell_word.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/pack/report.h"
#include "packer/trees/shard.h"

/* Whether an archive of the output has a file that is missing in a directory of the output. */
static bool has_missing_files(const struct packing *p)
{
	struct kpack_archive *a = NULL;
	char **paths = NULL, *prefix = xasprintf("%s/", p->args.prefix);
	size_t n_paths = 0, skip = *p->args.prefix ? strlen(prefix) : 0;
	bool missing = false;

	if (below_archives_find(p->archives, &paths, &n_paths, NULL))
		n_paths = 0;
	for (size_t i = 0; i < n_paths; i++) {
		/* one that cannot be read will not be mounted either */
		if (missing || below_archive_open(paths[i], &a, NULL))
			a = NULL;
		for (size_t k = 0; a && !missing && k < kp_archive_entry_count(a); k++) {
			struct kp_meta meta;
			struct stat st;
			char *file, *slash;

			kp_archive_meta(a, k, &meta);
			if (meta.path.size <= skip ||
			    !kp_span_starts(meta.path, prefix, skip))
				continue;
			file = xasprintf("%s/%.*s", p->args.output,
					 (int)(meta.path.size - skip),
					 (const char *)meta.path.data + skip);
			slash = strrchr(file, '/');
			if (below_lstat(file, &st) < 0 && errno == ENOENT) {
				*slash = '\0';
				missing = below_lstat(file, &st) == 0;
			}
			free(file);
		}
		kp_archive_close(a);
		free(paths[i]);
	}
	free(paths);
	free(prefix);
	return missing;
}

/* Write TEXT, the value of a mount option if COMMAS have to be escaped, as a word. */
static void put_word(FILE *out, const char *option, const char *text)
{
	char *whole = NULL, *word;
	size_t size;
	FILE *f = xmemstream(&whole, &size);

	fputs(option, f);
	for (; *text; text++) {
		if (*option && strchr(",\\", *text))
			fputc('\\', f);
		fputc(*text, f);
	}
	fclose(f);
	word = shell_word(whole);
	fprintf(out, " %s", word);
	free(word);
	free(whole);
}

/*
 * Set *OUT to the command that shows the packed files at their old places again, whichever run
 * packed them, on the heap; NULL: there are none.
 */
static kpack_error_t find_mount(const struct packing *p, char **out,
				struct kpackx_error *why)
{
	char *tree, *archives;
	size_t size;
	FILE *f;

	if (!has_missing_files(p))
		return KPACK_SUCCESS;
	tree = below_real(p->args.output);
	archives = below_real(p->archives);
	if (!tree || !archives) {
		free(tree);
		free(archives);
		return below_fail(why, "%s", p->args.output);
	}
	f = xmemstream(out, &size);
	fputs("kpackfs --in-place", f);
	if (*p->args.prefix) {
		fputs(" -o", f);
		put_word(f, "subdir=", p->args.prefix);
	}
	if (strcmp(p->args.archive_dir, KP_ARCHIVES_DIR) != 0)
		put_word(f, "", archives);
	put_word(f, "", tree);
	fclose(f);
	free(tree);
	free(archives);
	return KPACK_SUCCESS;
}

/* Print the report; the mount command comes last. */
static int print_report(const struct packing *p, bool done)
{
	struct pack_result result = {.done = done};
	struct kpackx_error why = {0};
	char *mount = NULL;

	if (p->args.mode != PACK_ARCHIVES) {
		if (!p->args.shard.count && find_mount(p, &mount, &why)) {
			report_why(NULL, &why);
			return EXIT_FAULT;
		}
		result.mount = mount;
		if (!done)
			pack_report_dispositions(&p->scan, &p->dispositions,
						 p->args.quiet);
	}
	pack_report(p, &result);
	free(mount);
	return EXIT_OK;
}

/* EXIT_LEFT: all is done but for damaged files. */
static int run_pack(struct packing *p, int argc, char **argv)
{
	struct bundle_sizes sizes = {0};
	bool finished = false; /* the part was there already */
	int status = pack_args_parse(&p->args, argc, argv);

	/* for the report */
	if (!p->args.quiet && !p->args.json)
		p->args.how.sizes = &sizes;
	if (!status)
		status = p->args.shard.count ? shard_pack(p, &finished) : packing_run(p);
	if (!status)
		status = print_report(p, finished);
	if (!status && scan_damaged(&p->scan))
		status = EXIT_LEFT;
	packing_close(p);
	return report_finish(status < 0 ? EXIT_OK : status);
}

int cmd_pack(int argc, char **argv)
{
	struct packing p = {0};
	int status = run_pack(&p, argc, argv);

	return status == EXIT_LEFT ? EXIT_FAULT : status;
}

int cmd_pack_changed(int argc, char **argv, const struct scan_skip *skip)
{
	struct packing p = {0};

	if (skip)
		p.scan.skip = *skip;
	return run_pack(&p, argc, argv);
}
