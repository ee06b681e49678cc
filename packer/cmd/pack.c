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
#include "packer/cli/process.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/pack/report.h"
#include "packer/trees/shard.h"

/*
 * Whether the archive at PATH has a file that is missing in a directory of the output.  One that
 * cannot be read has none: it will not be mounted either.
 */
static bool has_missing_files(const struct packing *p, const char *path)
{
	KP_AUTO_FREE char *prefix = xasprintf("%s/", p->args.prefix);
	size_t skip = *p->args.prefix ? strlen(prefix) : 0;
	struct kpack_archive *a = NULL;
	bool missing = false;

	if (below_archive_open(path, &a, NULL))
		return false;
	for (size_t k = 0; !missing && k < kp_archive_entry_count(a); k++) {
		KP_AUTO_FREE char *file = NULL;
		struct kp_meta meta;
		struct stat st;

		kp_archive_meta(a, k, &meta);
		if (meta.path.size <= skip || !kp_span_starts(meta.path, prefix, skip))
			continue;
		file = xasprintf("%s/%.*s", p->args.output, (int)(meta.path.size - skip),
				 (const char *)meta.path.data + skip);
		if (below_lstat(file, &st) < 0 && errno == ENOENT) {
			*strrchr(file, '/') = '\0';
			missing = below_lstat(file, &st) == 0;
		}
	}
	kp_archive_close(a);
	return missing;
}

/* Write TEXT as a word of a shell. */
static void put_word(FILE *out, const char *text)
{
	KP_AUTO_FREE char *word = shell_word(text);

	fprintf(out, " %s", word);
}

/*
 * Set *OUT to the command that shows the packed files at their old places again, whichever run
 * packed them, on the heap; NULL: there are none.
 */
static kpack_error_t find_mount(const struct packing *p, char **out,
				struct kpackx_error *why)
{
	KP_AUTO_FREE char *tree = NULL, *archives = NULL, *subdir = NULL;
	char **paths = NULL;
	size_t n = 0, size, subdir_size;
	bool missing = false;
	FILE *f;

	if (below_archives_find(p->archives, &paths, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		missing = missing || has_missing_files(p, paths[i]);
		free(paths[i]);
	}
	free(paths);
	if (!missing)
		return KPACK_SUCCESS;
	tree = below_real(p->args.output);
	archives = below_real(p->archives);
	if (!tree || !archives)
		return below_fail(why, "%s", p->args.output);
	f = xmemstream(out, &size);
	fputs("kpackfs --in-place", f);
	if (*p->args.prefix) {
		FILE *option = xmemstream(&subdir, &subdir_size);

		fputs("subdir=", option);
		for (const char *c = p->args.prefix; *c; c++)
			/* the value of a mount option ends at a comma */
			fprintf(option, "%s%c", strchr(",\\", *c) ? "\\" : "", *c);
		fclose(option);
		fputs(" -o", f);
		put_word(f, subdir);
	}
	if (strcmp(p->args.archive_dir, KP_ARCHIVES_DIR) != 0)
		put_word(f, archives);
	put_word(f, tree);
	fclose(f);
	return KPACK_SUCCESS;
}

/* Print the report; the mount command comes last. */
static int print_report(const struct packing *p, bool done)
{
	struct pack_result result = {.done = done};
	struct kpackx_error why = {0};
	KP_AUTO_FREE char *mount = NULL;

	if (p->args.mode != PACK_ARCHIVES) {
		if (!p->args.shard.count && find_mount(p, &mount, &why))
			return report_why(NULL, &why);
		result.mount = mount;
		if (!done)
			pack_report_dispositions(&p->scan, &p->dispositions,
						 p->args.quiet);
	}
	pack_report(p, &result);
	return EXIT_OK;
}

/*
 * Do the work and report it: of a whole run, or of one shard, which may have been finished by an
 * earlier run.
 */
int cmd_pack_changed(int argc, char **argv, const struct scan_skip *skip)
{
	struct packing p = {0};
	struct bundle_sizes sizes = {0};
	bool finished = false; /* the part was there already */
	int status = pack_args_parse(&p.args, argc, argv);

	if (skip)
		p.scan.skip = *skip;
	/* for the report */
	if (!p.args.quiet && !p.args.json)
		p.args.how.sizes = &sizes;
	if (!status)
		status = p.args.shard.count ? shard_pack(&p, &finished) : packing_run(&p);
	if (!status)
		status = print_report(&p, finished);
	if (!status && scan_damaged(&p.scan))
		status = EXIT_LEFT;
	packing_close(&p);
	return report_finish(status);
}

/*
 * A damaged file that was left alone is a fault for whoever calls this command, but not for kpack
 * apply.
 */
int cmd_pack(int argc, char **argv)
{
	int status = cmd_pack_changed(argc, argv, NULL);

	return status == EXIT_LEFT ? EXIT_FAULT : status;
}
