/* SPDX-License-Identifier: MIT */
/*
 * Carrying a packing run out.
 *
 *	write_archives	open the set and lock it; compare with what is there; store the objects;
 *			recognise what a killed run has converted; publish
 *	originals_keep	in place: what undoing needs (undo.c)
 *	output_write	convert, copy, link and remove files (tree.c)
 *
 * The archives are written first, published, and flushed; only then files are converted or
 * removed, so that a killed run never loses code.  The set of archives stays open, and locked
 * against other runs, until P is closed: whoever waits finds a whole tree.
 */
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "store.h"
#include "undo.h"

int packing_scan(struct packing *p)
{
	static const enum scan_databases treatments[] = {
		[DATABASES_PACKED] = SCAN_PACK,
		[DATABASES_BOTH] = SCAN_PACK,
		[DATABASES_PLAIN] = SCAN_FIND,
		[DATABASES_IDENTIFIED] = SCAN_IDENTIFY,
	};
	const struct pack_args *args = &p->args;
	/* files of databases that stay as they are are only looked at with --check */
	bool looks = args->databases != DATABASES_PLAIN || args->check;
	struct kpackx_error why = {0};

	p->scan.archives_dir = args->archive_dir;
	p->scan.progress = !args->quiet && !args->json;
	if (scan_open(args->input, args->prefix,
		      args->mode == PACK_ARCHIVES ? SCAN_ALL_CODE : SCAN_CONVERTIBLE,
		      looks ? &args->libraries : NULL, treatments[args->databases],
		      &p->scan, &why)) {
		report_why(args->input, &why);
		return EXIT_FAULT;
	}
	return EXIT_OK;
}

/* --- archives ------------------------------------------------------------------------ */

static bool plan_stores_entry(const void *arg, struct kp_span key, struct kp_span arch,
			      unsigned volume, const char **place)
{
	const struct packing *p = arg;
	struct plan_binary *b = plan_stores(&p->plan, key, arch, place);

	if (b && b->volume < volume)
		b->volume = volume;
	return b;
}

/*
 * In place, a binary that is converted or a database's file that leaves the tree is newer
 * than the entries that archives have for it, as after an upgrade.
 */
static bool replaces_entry(const void *arg, struct kp_span key, struct kp_span path)
{
	const struct packing *p = arg;
	size_t entry;
	enum fate fate;

	if (path.size) {
		KP_AUTO_FREE char *text = xstrndup((const char *)path.data, path.size);

		/* a path with a NUL in it is no file's */
		if (strlen(text) != path.size ||
		    !file_tree_find(&p->scan.files, text, &entry))
			return false;
		fate = p->dispositions.items[p->scan.file_entries[entry]].fate;
		return fate == FATE_PACKED || fate == FATE_REMOVED;
	}
	return plan_find_owner(&p->plan, key, &entry) &&
	       p->dispositions.items[entry].fate == FATE_CONVERTED;
}

/* The level of a part's shared archives: joining the parts compresses everything again. */
enum { PART_LEVEL = 1 };

static kpack_error_t open_set(struct packing *p, struct kpackx_error *why)
{
	const struct archive_set_options options = {
		.dir = p->archives,
		.group = p->args.group,
		.scheme = p->args.how.scheme,
		.level = p->args.shard.count > 1 ? PART_LEVEL : p->args.how.level,
		.effort = p->args.how.effort,
		.jobs = p->args.how.jobs,
		.volume_size = p->args.volume_size,
		.force = p->args.force,
		.unnamed = p->kind == PACKING_MEASURED,
		.families = &p->args.families,
		.inherit = p->inherit,
		.stores = plan_stores_entry,
		.obsolete = p->args.mode == PACK_IN_PLACE ? replaces_entry : NULL,
		.arg = p,
	};

	KP_TRY(archive_set_open(&options, &p->set, why));
	for (size_t i = 0; i < p->plan.n_binaries; i++) {
		struct plan_binary *b = &p->plan.binaries[i];

		if (b->n_needs)
			b->volume = archive_set_place(p->set, b->volume, b->needs,
						      b->n_needs);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t store_objects(struct packing *p, struct kpackx_error *why)
{
	uint64_t bytes = 0;
	kpack_error_t err;

	p->args.how.mine = p->mine;
	for (size_t i = 0; i < p->plan.n_objects; i++) {
		const struct plan_object *o = &p->plan.objects[i];

		if (!p->mine || p->mine[o->input->entry])
			bytes += o->input->images[o->image].size;
	}
	spill_dir_begin(p->archives);
	progress_begin("packing", bytes, !p->args.quiet && !p->args.json);
	err = pack_run(&p->plan, &p->args.how, p->set, why);
	progress_end();
	return err;
}

static kpack_error_t write_archives(struct packing *p, struct kpackx_error *why)
{
	struct stat st;

	/* the output's directories; those of an earlier output may be read-only */
	KP_TRY(p->args.mode == PACK_TREE ? tree_write_root(&p->tree, why)
					 : below_make_root(p->args.output, 0777, why));
	/* it may be a link, which archive_set_open follows by the rules for operands */
	if (below_stat(p->archives, &st) < 0 || !S_ISDIR(st.st_mode))
		KP_TRY(below_mkdirs(p->archives, 0777, why));
	KP_TRY(open_set(p, why));
	KP_TRY(clash_check_archives(p, why));
	KP_TRY(store_objects(p, why));
	if (p->args.mode != PACK_ARCHIVES)
		KP_TRY(packing_resume(p, why));
	return archive_set_publish(p->set, why);
}

/* --- files --------------------------------------------------------------------------- */

kpack_error_t packing_write(struct packing *p, struct kpackx_error *why)
{
	const struct converter c = packing_converter(p);
	bool in_place = p->args.mode == PACK_IN_PLACE;
	bool archives = p->plan.n_objects || p->inherit;

	if (p->kind == PACKING_MEASURED) {
		KP_TRY(open_set(p, why));
		KP_TRY(store_objects(p, why));
		return archive_set_publish(p->set, why);
	}
	if (p->args.mode == PACK_ARCHIVES)
		return write_archives(p, why);
	if (!in_place)
		KP_TRY(clash_check_tree(p, why));
	/* in place, entries of an earlier run may be obsolete, and another run may be at work:
	 * temporary files may be its own, so wait for it */
	for (size_t i = 0; i < p->scan.n_entries && in_place; i++) {
		enum fate fate = p->dispositions.items[i].fate;

		archives |= fate == FATE_CONVERTED || fate == FATE_REMOVED ||
			    p->scan.entries[i].leftover;
	}
	KP_TRY(archives ? write_archives(p, why) : clash_check_archives(p, why));
	if (in_place && archives) {
		/* without its directory archives that are on the disk would still be lost */
		KP_AUTO_CLOSE int fd =
			below_open_following(p->args.output, O_RDONLY | O_DIRECTORY);

		if (fd < 0)
			return below_fail(why, "%s: cannot open the directory",
					  p->args.output);
		if (kp_flush_dir(fd))
			return kp_fail_errno(why, errno, "%s: cannot flush",
					     p->args.output);
		KP_TRY(originals_keep(p, why));
	}
	/* leave the files of other shards to them */
	for (size_t i = 0; i < p->dispositions.count && p->mine; i++)
		if (!S_ISDIR(p->scan.entries[i].mode) &&
		    !p->mine[p->scan.entries[i].first])
			p->dispositions.items[i].fate = FATE_NOTHING;
	KP_TRY(output_write(&c, p->args.input, in_place ? NULL : &p->tree, why));
	return in_place || p->kind == PACKING_APART ? KPACK_SUCCESS
						    : tree_write_finish(&p->tree, why);
}

int packing_run(struct packing *p)
{
	struct kpackx_error why = {0};
	int status = packing_scan(p);

	if (!status)
		status = packing_plan(p);
	if (!status && packing_write(p, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	}
	return status;
}

void packing_close(struct packing *p)
{
	tree_write_end(&p->tree);
	spill_dir_end();
	archive_set_close(p->set);
	dispositions_close(&p->dispositions);
	plan_close(&p->plan);
	scan_close(&p->scan);
	cache_files_fini(&p->parts);
	free(p->archives);
	free(p->inherit);
	free(p->mine);
	pack_args_fini(&p->args);
}
