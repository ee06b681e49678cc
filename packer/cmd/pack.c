/* SPDX-License-Identifier: MIT */
/*
 * kpack pack: fat binaries in, archives and converted binaries out; or with --undo the other way.
 * packer/pack/run.h and undo.h do the work; here it is begun, as a whole or as one shard of several,
 * and reported.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "packer/cli/process.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/pack/undo.h"
#include "packer/thin/policy.h"
#include "packer/trees/shard.h"

/*
 * Set the commands of R that show the packed files at their old places again, whichever run packed them,
 * now and at every boot; on the heap; NULL: there are none.
 */
static kpack_error_t find_mount(const struct packing *p, struct pack_result *r,
				struct kpackx_error *why)
{
	KP_AUTO_FREE char *tree = NULL, *archives = NULL, *text = NULL, *word = NULL;
	bool elsewhere = strcmp(p->args.archive_dir, KP_ARCHIVES_DIR) != 0;
	KP_AUTO_FREE char *prefix = xasprintf("%s/", p->args.prefix);
	size_t skip = *p->args.prefix ? strlen(prefix) : 0, size, text_size;
	struct shown_files shown = {0};
	bool missing = false;
	FILE *f, *command;

	/* an archive that cannot be read is not mounted either */
	if (shown_files_open(p->archives, &shown, NULL))
		shown.n = 0;
	for (size_t i = 0; i < shown.n && !missing; i++) {
		struct kp_span path = shown.items[i].path;
		KP_AUTO_FREE char *file = NULL;
		struct stat st;

		if (path.size <= skip || !kp_span_starts(path, prefix, skip))
			continue;
		file = xasprintf("%s/%.*s", p->args.output, (int)(path.size - skip),
				 (const char *)path.data + skip);
		if (below_lstat(file, &st) == 0 || errno != ENOENT)
			continue;
		/* a file is missing in a directory that the tree has */
		*strrchr(file, '/') = '\0';
		missing = below_lstat(file, &st) == 0;
	}
	shown_files_close(&shown);
	if (!missing)
		return KPACK_SUCCESS;
	tree = below_real(p->args.output);
	archives = below_real(p->archives);
	if (!tree || !archives)
		return below_fail(why, "%s", p->args.output);
	command = xmemstream(&r->mount, &size);
	fputs("kpackfs --in-place", command);
	f = xmemstream(&text, &text_size);
	if (*p->args.prefix) {
		fputs("subdir=", f);
		for (const char *c = p->args.prefix; *c; c++)
			/* the value of a mount option ends at a comma */
			fprintf(f, "%s%c", strchr(",\\", *c) ? "\\" : "", *c);
		fflush(f);
		fputs(" -o", command);
		shell_put(command, text);
	} else if (!elsewhere) {
		/*
		 * The unit for every boot knows neither a prefix nor another directory of archives.  It is
		 * called as systemd-escape -p writes it: "/" is "-", and other characters than letters,
		 * digits and ":_." are \xNN.
		 */
		fputs("kpackfs-in-place@", f);
		for (const char *c = tree + 1; *c; c++)
			if (isalnum((unsigned char)*c) || strchr("/:_", *c) ||
			    (*c == '.' && c > tree + 1))
				putc(*c == '/' ? '-' : *c, f);
			else
				fprintf(f, "\\x%02x", (unsigned char)*c);
		fputs(tree[1] ? ".service" : "-.service", f);
		fflush(f);
		word = shell_word(text);
		r->boot = xasprintf("systemctl enable --now %s", word);
	}
	fclose(f);
	if (elsewhere)
		shell_put(command, archives);
	shell_put(command, tree);
	fclose(command);
	return KPACK_SUCCESS;
}

/* --- --undo -------------------------------------------------------------------------- */

static const struct row gone_rows[] = {
	ROW("arch", ROW_JSON, struct gone_code, arch),
	ROW("binaries", ROW_JSON, struct gone_code, n_binaries),
	ROW("files", ROW_JSON, struct gone_code, n_files),
};

static const struct row undone_rows[] = {
	ROW("path", ROW_JSON, struct undone, path),
	ROW("status", ROW_JSON, struct undone, status),
};

/* Say what is not as it was, and what is to be done about it; then what was done. */
static void report_undone(const struct unpacking *u, const struct pack_args *args)
{
	size_t n_binaries = 0, n_files = 0;

	for (size_t i = 0; i < u->n_files; i++) {
		const struct undone *f = &u->files[i];
		KP_AUTO_FREE char *path = xasprintf("%s/%s", u->tree, f->path);

		bool restored = f->binary && strcmp(f->status, "restored") == 0;

		n_binaries += restored;
		n_files += !f->binary;
		if (restored && !args->json) {
			const char *words = restore_report(path, &f->how);

			if (!f->how.fits || f->how.result.n_missing ||
			    f->how.result.n_unknown || f->how.result.n_recompressed)
				report_error(path, "note: restored%s", words);
		}
	}
	for (size_t i = 0; i < u->n_gone; i++)
		report_error(u->tree,
			     "warning: the code for %s is gone, because no archive has "
			     "it: %zu binar%s, %zu file%s of kernel databases",
			     u->gone[i].arch, u->gone[i].n_binaries,
			     plural_y(u->gone[i].n_binaries), u->gone[i].n_files,
			     plural(u->gone[i].n_files));
	if (u->n_gone) {
		KP_AUTO_FREE char *names = NULL;
		KP_AUTO_FREE char *root = below_real(u->tree);

		names = packages_of(NULL, root ? root : u->tree,
				    (const char *const *)u->lacking, u->n_lacking);
		report_error(u->tree, "warning: to have it again, reinstall%s",
			     *names ? names : " what its files belong to");
	}
	if (u->left)
		report_error(u->tree,
			     "its archives stay in %s, because files that were left as "
			     "they are need them; they may be deleted when these were "
			     "installed again",
			     u->archive_dir);
	if (args->json) {
		report_json(json_pack(
			"{so so so sb}", "tree", report_json_text(u->tree), "files",
			rows_array(ROWS(undone_rows), u->files, u->n_files,
				   sizeof(*u->files)),
			"gone",
			rows_array(ROWS(gone_rows), u->gone, u->n_gone, sizeof(*u->gone)),
			"archives_removed", !u->left));
	} else if (!args->quiet) {
		printf("%zu binar%s and %zu file%s of kernel databases restored\n",
		       n_binaries, plural_y(n_binaries), n_files, plural(n_files));
		if (!u->n_files && !u->left)
			report_error(u->tree, "note: nothing in it was packed");
	}
}

/*
 * Do the work and report it: of a whole run, or of one shard, which may have been finished by an
 * earlier run.
 */
int cmd_pack_changed(int argc, char **argv, const struct scan_skip *skip)
{
	struct packing p = {0};
	struct bundle_sizes sizes = {0};
	struct pack_result result = {0};
	struct kpackx_error why = {0};
	bool finished = false; /* the part was there already */
	int status = pack_args_parse(&p.args, argc, argv);

	if (skip)
		p.scan.skip = *skip;
	/* for the report */
	if (!p.args.quiet && !p.args.json)
		p.args.how.sizes = &sizes;
	if (!status && p.args.mode == PACK_UNDO) {
		struct unpacking u = {.tree = p.args.output,
				      .archive_dir = p.args.archive_dir,
				      .jobs = p.args.how.jobs,
				      .allow_missing = p.args.allow_missing,
				      .drop_signature = p.args.drop_signature,
				      .progress = !p.args.quiet && !p.args.json};

		status = unpacking_run(&u);
		if (u.done)
			report_undone(&u, &p.args);
		unpacking_close(&u);
		packing_close(&p);
		return report_finish(status);
	}
	if (!status)
		status = p.args.shard.count ? shard_pack(&p, &finished) : packing_run(&p);
	if (!status && p.args.mode != PACK_ARCHIVES && !p.args.shard.count &&
	    find_mount(&p, &result, &why))
		status = report_why(NULL, &why);
	if (!status) {
		result.done = finished;
		if (p.args.mode == PACK_IN_PLACE) {
			const char *dir = p.args.archive_dir;
			bool elsewhere = strcmp(dir, KP_ARCHIVES_DIR) != 0;
			KP_AUTO_FREE char *named = elsewhere ? shell_word(dir) : NULL;
			KP_AUTO_FREE char *tree = shell_word(p.args.output);

			result.undo = xasprintf("kpack pack --undo%s%s %s",
						named ? " --archive-dir " : "",
						named ? named : "", tree);
		}
		if (p.args.mode != PACK_ARCHIVES && !finished)
			pack_report_dispositions(&p.scan, &p.dispositions, p.args.quiet);
		pack_report(&p, &result);
	}
	if (!status && scan_damaged(&p.scan))
		status = EXIT_LEFT;
	packing_close(&p);
	free(result.mount);
	free(result.boot);
	free(result.undo);
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
