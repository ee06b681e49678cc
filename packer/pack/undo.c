/* SPDX-License-Identifier: MIT */
/*
 * Undoing what packing did to a tree, and what packing keeps for that.
 *
 *	look_at_tree	its converted binaries, each of which has to find its objects
 *	output_write	they are replaced by their originals, as packing replaces them
 *	put_files	files of databases, with the attributes that were kept
 *	look_at_kept	is anything missing?
 *	remove_archives	when all is flushed, and nothing is left; then what was kept
 *
 * Each step finds what is left to do from the tree, so that a run that was killed is finished by the
 * next one: a binary that is not converted is done, and so is a path that has a file.  A file that the
 * tree has by now, as after an upgrade, is newer than what was packed, and wins.
 */
#include "undo.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/sink.h"
#include "core/base/text.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/spill_dir.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"

/* Whether something has the name PATH. */
static kpack_error_t look_for(const char *path, bool *there, struct kpackx_error *why)
{
	struct stat st;

	*there = below_lstat(path, &st) == 0;
	return *there || errno == ENOENT || errno == ENOTDIR
		       ? KPACK_SUCCESS
		       : below_fail(why, "%s: cannot look at it", path);
}

/* --- what packing keeps -------------------------------------------------------------- */

static void add_time(struct kept_times *list, const char *path,
		     const struct timespec *mtime)
{
	xgrow(&list->items, list->n, &list->cap, sizeof(*list->items));
	list->items[list->n++] = (struct kept_time){xstrdup(path), *mtime};
}

/* Give the directories of LIST, of which each comes before those in it, their times. */
static kpack_error_t give_times(const struct kept_times *list, struct kpackx_error *why)
{
	for (size_t i = list->n; i-- > 0;) {
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
						  list->items[i].mtime};
		KP_AUTO_CLOSE int fd =
			below_open_following(list->items[i].path, O_RDONLY | O_DIRECTORY);

		if (fd < 0 || futimens(fd, times) < 0)
			return below_fail(why, "%s: cannot give it its time",
					  list->items[i].path);
	}
	return KPACK_SUCCESS;
}

static void kept_times_fini(struct kept_times *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i].path);
	free(list->items);
}

static kpack_error_t flush_tree(const char *path, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = below_open_following(path, O_RDONLY | O_DIRECTORY);

	return fd < 0 || syncfs(fd) < 0 ? below_fail(why, "%s: cannot flush", path)
					: KPACK_SUCCESS;
}

/*
 * Make PATH for the directory FROM of the tree, which was last changed at TIME when it was scanned.
 * Packing only makes directories newer: the older time of the two is that before any run, also if this
 * one goes on where a killed one ended.
 */
static kpack_error_t keep_directory(struct tree_write *w, const char *path,
				    const char *from, const struct timespec *time,
				    struct kept_times *times, struct kpackx_error *why)
{
	KP_AUTO_FREE char *to = xasprintf(*path ? "%s/%s" : "%s", w->root, path);
	const struct timespec *first = time;
	struct stat st;

	if (below_lstat(to, &st) == 0 &&
	    (st.st_mtim.tv_sec < time->tv_sec ||
	     (st.st_mtim.tv_sec == time->tv_sec && st.st_mtim.tv_nsec < time->tv_nsec)))
		first = &st.st_mtim;
	add_time(times, to, first);
	return tree_write_directory(w, path, from, why);
}

static kpack_error_t keep_all(const struct packing *p, struct tree_write *w,
			      struct kept_times *times, struct kpackx_error *why)
{
	const struct scan *scan = &p->scan;
	KP_AUTO_FREE bool *kept = xcalloc(scan->n_entries + 1, 1);
	size_t n_names;
	const char *const *names = archive_set_names(p->set, &n_names);
	bool again, any = false;

	/*
	 * Choose: files of databases that go, the first time the archives that are of no run of ours,
	 * and the directories above these and above what is converted.
	 */
	KP_TRY(look_for(w->root, &again, why));
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		enum fate fate = p->dispositions.items[i].fate;
		bool foreign = !again && e->archive && !S_ISDIR(e->mode) &&
			       !strchr(e->archive, '/') && kp_is_archive_name(e->archive);

		for (size_t k = 0; k < n_names && foreign; k++)
			foreign = strcmp(names[k], e->archive) != 0;
		kept[i] |= fate == FATE_PACKED || fate == FATE_REMOVED || foreign;
		if (!kept[i] && p->dispositions.items[e->first].fate != FATE_CONVERTED)
			continue;
		any = true;
		for (const char *slash = strchr(e->relative, '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			const struct kp_span path = {(const uint8_t *)e->relative,
						     (size_t)(slash - e->relative)};
			size_t dir;

			if (scan_find(scan, path, &dir))
				kept[dir] = true;
		}
	}
	if (!any)
		return KPACK_SUCCESS;

	/* make it: in the order of the scan a directory comes before what is in it */
	KP_TRY(keep_directory(w, "", p->args.output, &scan->root.mtime, times, why));
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		KP_AUTO_FREE char *to = xasprintf("%s/%s", w->root, e->relative);
		KP_AUTO_CLOSE int from = -1, fd = -1;
		char arch[KP_TARGET_TEXT_MAX] = "";
		struct kp_outfile file;
		const char *first;
		struct stat st;

		if (!kept[i])
			continue;
		if (S_ISDIR(e->mode)) {
			KP_TRY(keep_directory(w, e->relative, e->path, &e->id.mtime,
					      times, why));
			continue;
		}
		first = tree_write_first(w, e->relative, &e->id);
		if (first) {
			KP_TRY(tree_write_link(w, e->relative, first, NULL, &e->id, why));
			continue;
		}
		/*
		 * A file with its attributes, which is empty, or, if no archive gets its bytes, has the
		 * architecture that it was for.
		 */
		if (p->dispositions.items[i].fate == FATE_REMOVED)
			library_object_target(e->input->objects, 0, arch);
		KP_TRY(below_file_open_again(e->path, &e->id, &from, why));
		if (fstat(from, &st) < 0)
			return kp_fail_errno(why, errno, "%s: cannot stat", e->path);
		if (below_unlink(to) < 0 && errno != ENOENT)
			return below_fail(why, "%s: cannot replace", to);
		fd = below_open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			return below_fail(why, "%s: cannot make it", to);
		file = kp_spill_outfile(fd);
		KP_TRY(kp_outfile_pwrite(&file, 0, arch, strlen(arch), why));
		KP_TRY(attributes_copy(from, fd, &st, why));
	}
	KP_TRY(tree_write_finish(w, why));
	KP_TRY(give_times(times, why));
	return flush_tree(w->root, why);
}

kpack_error_t originals_keep(const struct packing *p, struct kpackx_error *why)
{
	KP_AUTO_FREE char *archives = xasprintf("%s/" KP_ARCHIVES_DIR, p->args.output);
	KP_AUTO_FREE char *kept = xasprintf("%s/" KP_UNDO_DIR, p->args.output);
	struct kept_times times = {0};
	struct tree_write w;
	kpack_error_t err = below_mkdirs(archives, 0777, why);

	tree_write_begin(&w, kept, false);
	if (!err)
		err = keep_all(p, &w, &times, why);
	tree_write_end(&w);
	kept_times_fini(&times);
	return err;
}

static kpack_error_t remove_kept(const char *tree, struct kpackx_error *why)
{
	KP_AUTO_FREE char *kept = xasprintf("%s/" KP_UNDO_DIR, tree);
	bool there;
	int error;

	KP_TRY(look_for(kept, &there, why));
	error = there ? remove_tree(kept) : 0;
	return error ? kp_fail_errno(why, error, "%s: cannot be removed", kept)
		     : KPACK_SUCCESS;
}

kpack_error_t originals_forget(const char *tree, struct kpackx_error *why)
{
	KP_AUTO_FREE char *archives = xasprintf("%s/" KP_ARCHIVES_DIR, tree);
	struct shown_files list = {0};
	bool any;

	KP_TRY(shown_files_open(archives, &list, why));
	any = list.n_archives || list.unreadable;
	shown_files_close(&list);
	return any ? KPACK_SUCCESS : remove_kept(tree, why);
}

/* --- what is there ------------------------------------------------------------------- */

static char *tree_path(const struct unpacking *u, const char *path)
{
	return xasprintf(*path ? "%s/%s" : "%s", u->tree, path);
}

static void add_undone(struct unpacking *u, const char *path, bool binary,
		       const char *status)
{
	xgrow(&u->files, u->n_files, &u->files_cap, sizeof(*u->files));
	u->files[u->n_files++] = (struct undone){xstrdup(path), binary, status, {0}};
}

/* The file PATH lacks code for ARCH. */
static void add_gone(struct unpacking *u, const char *path, const char *arch, bool binary)
{
	size_t i = 0;

	while (i < u->n_gone && strcmp(u->gone[i].arch, arch) != 0)
		i++;
	if (i == u->n_gone) {
		xgrow(&u->gone, u->n_gone, &u->gone_cap, sizeof(*u->gone));
		u->gone[u->n_gone++] = (struct gone_code){.arch = xstrdup(arch)};
	}
	u->gone[i].n_binaries += binary;
	u->gone[i].n_files += !binary;
	if (u->n_lacking && strcmp(u->lacking[u->n_lacking - 1], path) == 0)
		return;
	xgrow(&u->lacking, u->n_lacking, &u->lacking_cap, sizeof(char *));
	u->lacking[u->n_lacking++] = xstrdup(path);
}

/* Whether an archive that may go has code of the binary NAME, which may have a --key-prefix there. */
static bool has_code(const struct unpacking *u, const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < u->shown.n_archives; i++) {
		const struct kpack_archive *a = u->shown.archives[i];
		size_t n = u->foreign[i] ? 0 : kp_archive_entry_count(a);

		for (size_t k = 0; k < n; k++) {
			struct kp_entry_info info;
			struct kp_meta meta;
			struct kp_span key;

			kp_archive_entry(a, k, &info);
			kp_archive_meta(a, k, &meta);
			key = kp_key_split(info.key).binary;
			if (!meta.path.size && key.size >= size &&
			    memcmp(key.data + key.size - size, name, size) == 0)
				return true;
		}
	}
	return false;
}

/* --- binaries ------------------------------------------------------------------------ */

static kpack_error_t open_binary(struct unpacking *u, const struct input *in,
				 struct restore *r, struct kpackx_error *why)
{
	const struct scan_entry *e = &u->scan.entries[in->entry];
	kpack_error_t err;

	pthread_mutex_lock(&u->opening);
	err = restore_open(r, e->path, &u->set, NULL, why);
	pthread_mutex_unlock(&u->opening);
	return !err && !file_identity_is(&e->id, &r->b.st)
		       ? kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile")
		       : err;
}

/*
 * The converter's: whether IN finds its objects.  What it was packed without is gone; what it was packed
 * with has to be there, or its archive may only be somewhere else.
 */
static kpack_error_t check_binary(void *arg, struct input *in, int fd,
				  struct kpackx_error *why)
{
	struct unpacking *u = arg;
	const char *path = u->scan.entries[in->entry].relative, *lost = NULL;
	struct kpackx_error fault = {0};
	struct restore r;
	kpack_error_t err = open_binary(u, in, &r, &fault);

	(void)fd;
	for (size_t i = 0; i < r.n_missing && !err; i++)
		if (!r.missing[i].unpacked)
			lost = r.missing[i].arch;
	if (lost && !u->allow_missing)
		err = kp_fail(
			&fault, KPACK_ERROR_NOT_IMPLEMENTED,
			"its code for %s is in no archive; --allow-missing restores "
			"it without",
			lost);
	else if (!err && restore_report_unlisted(&r))
		err = kp_fail(&fault, KPACK_ERROR_NOT_IMPLEMENTED,
			      "archives have code of it from another build");
	for (size_t i = 0; i < r.n_missing && !err; i++)
		if (!i || strcmp(r.missing[i].arch, r.missing[i - 1].arch) != 0)
			add_gone(u, path, r.missing[i].arch, true);
	u->costs[in->entry] = 2 * r.largest;
	u->bytes += r.bytes;
	/* a binary that cannot be restored does not keep others from it, but archives */
	if (err)
		u->left |= has_code(u, r.b.marker.kernel_name ? r.b.marker.kernel_name
							      : path);
	restore_close(&r);
	if (err && err != KPACK_ERROR_IO_ERROR && err != KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", fault.text);
	if (err)
		*why = fault;
	return err;
}

static kpack_error_t restore_binary(void *arg, struct input *in, int fd,
				    struct kp_outfile *out, struct kpackx_error *why)
{
	struct unpacking *u = arg;
	struct restore r;
	kpack_error_t err = open_binary(u, in, &r, why);

	(void)fd;
	r.b.drop_signature = u->drop_signature;
	if (!err)
		err = restore_write(&r, out, why);
	/* it stays converted, and needs its archives; a full disk is tried again */
	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		pthread_mutex_lock(&u->opening);
		u->left = true;
		pthread_mutex_unlock(&u->opening);
	}
	u->restored[in->entry] = r.how;
	restore_close(&r);
	return err;
}

static uint64_t cost_of_binary(void *arg, const struct input *in)
{
	const struct unpacking *u = arg;

	return u->costs[in->entry];
}

/* Make the converted binaries of the tree inputs of the converter C. */
static int look_at_tree(struct unpacking *u, struct converter *c)
{
	struct kpackx_error why = {0};

	u->scan.archives_dir = u->archive_dir;
	if (scan_open(u->tree, "", SCAN_CONVERTIBLE, NULL, SCAN_FIND, &u->scan, &why))
		return report_why(u->tree, &why);
	u->n_faults = u->scan.n_faults;
	dispositions_open(&u->scan, true, &u->dispositions);
	u->restored = xcalloc(u->scan.n_entries + 1, sizeof(*u->restored));
	u->costs = xcalloc(u->scan.n_entries + 1, sizeof(*u->costs));
	/* fat binaries are done already */
	for (size_t i = 0; i < u->scan.n_inputs; i++)
		u->dispositions.items[u->scan.inputs[i]->entry].fate = FATE_UNCHANGED;
	for (size_t i = 0; i < u->scan.n_entries; i++) {
		const struct scan_entry *e = &u->scan.entries[i];

		if (!e->converted)
			continue;
		if (scan_add_plain(&u->scan, i, &why)) {
			report_why(e->path, &why);
			u->n_faults++;
		}
		u->dispositions.items[i].fate = FATE_CONVERTED;
	}
	scan_sort(&u->scan);
	c->inputs = u->scan.inputs;
	c->n_inputs = u->scan.n_inputs;
	output_check_mounts(&u->scan, u->tree, &u->n_faults);
	if (!u->n_faults)
		converter_check(c, &u->n_faults);
	if (u->n_faults)
		return report_error(u->tree,
				    "nothing was changed because of the faults above");
	return EXIT_OK;
}

/* --- files of databases -------------------------------------------------------------- */

/*
 * Write the file PATH, which does not exist, with the attributes of KEPT; NULL: nothing was kept, as of a
 * tree that was packed into another one, and it gets ordinary ones.
 */
static kpack_error_t put_file(const struct kpack_archive *a, size_t entry,
			      const char *path, const char *kept,
			      struct kpackx_error *why)
{
	KP_AUTO(kp_outfile) out = {.fd = -1, .dir_fd = -1};
	KP_AUTO_CLOSE int fd = -1;
	struct kp_sink sink = {.out = &out};
	struct kp_meta meta;
	struct stat st = {0};

	kp_archive_meta(a, entry, &meta);
	KP_TRY(below_outfile_open(&out, path,
				  kept        ? 0600
				  : meta.mode ? (mode_t)meta.mode & 0777
					      : 0666,
				  why));
	out.keep = true;
	out.lazy = true; /* everything is flushed at once */
	KP_TRY(archive_decode(a, entry, &sink, why));
	/*
	 * Whoever may write into the directory of KEPT can give this name to another user's file.
	 * What makes a file run with that user's rights does no database any good.
	 */
	if (kept) {
		fd = below_open(kept, O_RDONLY, 0);
		if (fd < 0 || fstat(fd, &st) < 0)
			return below_fail(why, "%s: cannot open", kept);
		if (!S_ISREG(st.st_mode) ||
		    fgetxattr(fd, "security.capability", NULL, 0) >= 0)
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "%s: was put there by somebody else", kept);
		st.st_mode &= ~(mode_t)(S_ISUID | S_ISGID);
		KP_TRY(attributes_copy(fd, out.fd, &st, why));
		out.mode = 0;
	}
	return kp_outfile_publish(&out, why);
}

/*
 * Put back the files that archives show, unless the tree has them by now.  With --key-prefix their paths
 * begin with directories that the tree does not have; a library that was removed since, with its
 * directory, needs no files.
 */
static kpack_error_t put_files(struct unpacking *u, struct kpackx_error *why)
{
	struct tree_write w;
	kpack_error_t err = KPACK_SUCCESS;

	tree_write_begin(&w, u->tree, false);
	for (size_t i = 0; i < u->shown.n && !err; i++) {
		const struct shown *f = &u->shown.items[i];
		KP_AUTO_FREE char *name =
			xstrndup((const char *)f->path.data, f->path.size);
		KP_AUTO_FREE char *path = NULL, *kept = NULL;
		const char *rest = kp_path_ok(f->path) ? name : NULL, *first = NULL;
		bool has_dir = false, there = false, has_kept = false;
		struct file_identity id;
		struct stat st = {0};

		for (size_t k = 0; k < u->shown.n_archives; k++)
			if (u->foreign[k] && u->shown.archives[k] == f->archive)
				rest = NULL;
		while (rest && !has_dir && !err) {
			KP_AUTO_FREE char *dir = tree_path(u, rest);

			*strrchr(dir, '/') = '\0';
			err = look_for(dir, &has_dir, why);
			if (!err && !has_dir) {
				rest = strchr(rest, '/');
				rest += rest != NULL;
			}
		}
		if (err || !rest)
			continue;
		path = tree_path(u, rest);
		kept = xasprintf("%s/%s", u->kept, rest);
		err = look_for(path, &there, why);
		if (!err)
			err = look_for(kept, &has_kept, why);
		if (!err && has_kept && below_lstat(kept, &st) < 0)
			err = below_fail(why, "%s: cannot look at it", kept);
		/* further links lead to the first path that is back, perhaps by a killed run */
		id = file_identity_of(&st);
		if (!err)
			first = tree_write_first(&w, rest, &id);
		if (err || there)
			continue;
		if (!first || tree_write_link(&w, rest, first, NULL, &id, NULL))
			err = put_file(f->archive, f->entry, path, has_kept ? kept : NULL,
				       why);
		if (err)
			kp_fail_prefix(why, err, "%s", path);
		else
			add_undone(u, rest, false, "restored");
	}
	tree_write_end(&w);
	return err;
}

/*
 * Find what is not back of that for which something was kept, and the times of directories.  What was
 * kept for a file that no archive got has its architecture (keep_all).
 */
static kpack_error_t look_at_kept(struct unpacking *u, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(u->kept);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;

	while (!err && tree_list_next(list, &item)) {
		KP_AUTO_FREE char *path = tree_path(u, item.rest);
		KP_AUTO_FREE char *dir = xstrndup(path, kp_path_directory(path).size);
		KP_AUTO_CLOSE int fd = -1;
		char arch[KP_TARGET_TEXT_MAX] = "";
		bool there = false, has_dir = false;
		size_t size;

		if (item.kind == TREE_FAULT)
			err = kp_fail_errno(why, item.error, "%s", item.path);
		if (!err)
			err = look_for(path, &there, why);
		if (!err && item.kind == TREE_DIR && there)
			add_time(&u->dirs, path, &item.st.st_mtim);
		/* those of archives only tell which were there before */
		if (err || there || item.kind != TREE_OTHER ||
		    kp_path_below(item.rest, u->archive_dir))
			continue;
		err = look_for(dir, &has_dir, why);
		if (err || !has_dir)
			continue;
		fd = below_open(item.path, O_RDONLY, 0);
		size = (size_t)item.st.st_size < sizeof(arch) ? (size_t)item.st.st_size
							      : sizeof(arch) - 1;
		if (fd < 0)
			err = below_fail(why, "%s: cannot read it", item.path);
		else if (kp_file_pread(fd, 0, arch, size, why))
			err = kp_fail_prefix(why, why->code, "%s", item.path);
		if (err)
			continue;
		if (*arch || u->allow_missing) {
			add_gone(u, item.rest, *arch ? arch : "unknown GPUs", false);
		} else {
			report_error(path,
				     "is in no archive; --allow-missing does without it");
			u->left = true;
		}
	}
	tree_list_close(list);
	return err;
}

/* --- archives ------------------------------------------------------------------------ */

/* Remove the archives that packing made, what was kept, and with them their directories. */
static kpack_error_t remove_archives(struct unpacking *u, struct kpackx_error *why)
{
	KP_AUTO_FREE char *top = tree_path(u, KP_ARCHIVES_DIR);
	KP_AUTO_FREE char *dir = xstrdup(u->archives);

	for (size_t i = 0; i < u->shown.n_archives; i++) {
		const char *path = kp_archive_path(u->shown.archives[i]);

		if (!u->foreign[i] && below_unlink(path) < 0)
			return below_fail(why, "%s: cannot remove", path);
	}
	if (u->lock >= 0)
		KP_TRY(leftovers_remove(u->archives, "", why));
	KP_TRY(remove_kept(u->tree, why));
	/* directories that have something stay */
	for (char *slash; below_rmdir(dir) == 0 && (slash = strrchr(dir, '/')) &&
			  (size_t)(slash - dir) > strlen(u->tree);)
		*slash = '\0';
	below_rmdir(top);
	return KPACK_SUCCESS;
}

/* --- all together -------------------------------------------------------------------- */

int unpacking_run(struct unpacking *u)
{
	struct converter c = {.scan = &u->scan,
			      .dispositions = &u->dispositions,
			      .jobs = u->jobs,
			      .check = check_binary,
			      .rewrite = restore_binary,
			      .cost = cost_of_binary,
			      .arg = u};
	struct kpackx_error why = {0};
	kpack_error_t err;
	bool there;
	int status;

	u->archives = tree_path(u, u->archive_dir);
	u->kept = tree_path(u, KP_UNDO_DIR);
	u->lock = -1;
	pthread_mutex_init(&u->opening, NULL);
	err = look_for(u->archives, &there, &why);
	if (!err && there)
		err = leftovers_lock(u->archives, &u->lock, &why);
	u->shown.reports = true;
	if (!err && there)
		err = shown_files_open(u->archives, &u->shown, &why);
	/* archives that were there before the tree was first packed in place stay */
	u->foreign = xcalloc(u->shown.n_archives + 1, 1);
	for (size_t i = 0; i < u->shown.n_archives && !err; i++) {
		const char *name = kp_path_name(kp_archive_path(u->shown.archives[i]));
		KP_AUTO_FREE char *before =
			xasprintf("%s/%s/%s", u->kept, u->archive_dir, name);

		err = look_for(before, &u->foreign[i], &why);
	}
	if (err)
		return report_why(NULL, &why);
	u->left = u->shown.unreadable;
	status = look_at_tree(u, &c);
	if (status)
		return status;
	spill_dir_begin(u->tree);
	for (size_t i = 0; i < u->shown.n; i++) {
		struct kp_entry_info info;

		kp_archive_entry(u->shown.items[i].archive, u->shown.items[i].entry,
				 &info);
		u->bytes += info.size;
	}
	progress_begin("restoring", u->bytes, u->progress);
	err = output_write(&c, u->tree, NULL, &why);
	for (size_t i = 0; i < u->scan.n_entries && !err; i++) {
		const struct scan_entry *e = &u->scan.entries[i];
		const struct disposition *d = &u->dispositions.items[i];
		bool refused = d->fate == FATE_REFUSED;

		/* what is damaged now may have been converted before */
		if (e->fault && has_code(u, e->relative)) {
			u->left = true;
			report_error(e->path, "left as it is: %s", e->fault);
		}
		if (!e->converted)
			continue;
		if (refused)
			report_error(e->path, "left as it is: %s", d->reason);
		add_undone(u, e->relative, true, refused ? "refused" : "restored");
		u->files[u->n_files - 1].how = u->restored[i];
	}
	if (!err)
		err = put_files(u, &why);
	progress_end();
	if (!err)
		err = look_for(u->kept, &there, &why);
	if (!err && there)
		err = look_at_kept(u, &why);
	if (!err)
		err = flush_tree(u->tree, &why);
	if (!err && !u->left)
		err = remove_archives(u, &why);
	if (!err)
		err = give_times(&u->dirs, &why);
	if (err)
		return report_why(NULL, &why);
	u->done = true;
	kp_sort(u->gone, u->n_gone, KP_BY_TEXT(struct gone_code, arch));
	return u->left ? EXIT_FAULT : EXIT_OK;
}

void unpacking_close(struct unpacking *u)
{
	for (size_t i = 0; i < u->n_files; i++)
		free(u->files[i].path);
	for (size_t i = 0; i < u->n_gone; i++)
		free(u->gone[i].arch);
	for (size_t i = 0; i < u->n_lacking; i++)
		free(u->lacking[i]);
	free(u->files);
	free(u->gone);
	free(u->lacking);
	kept_times_fini(&u->dirs);
	free(u->restored);
	free(u->costs);
	free(u->foreign);
	spill_dir_end();
	dispositions_close(&u->dispositions);
	scan_close(&u->scan);
	installed_fini(&u->set);
	shown_files_close(&u->shown);
	if (u->archives)
		lock_close(u->lock);
	free(u->archives);
	free(u->kept);
	*u = (struct unpacking){0};
}
