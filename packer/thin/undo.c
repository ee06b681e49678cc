/* SPDX-License-Identifier: MIT */
/*
 * kpack thin --undo.  The directory has recipes of files, perhaps several of one path; for each path
 * the file in the tree is compared with what the recipes say: it is the original already, or what
 * thin made of it, which is rewritten, or it was removed, which is made again.  Anything else is left
 * as it is, with a message.
 */
#include "undo.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/pack/write_tree.h"

/* --- what was kept ------------------------------------------------------------------- */

static kpack_error_t add_recipe(struct undo *u, const struct kpack_archive *a,
				size_t entry, struct kpackx_error *why)
{
	struct undo_file f = {.archive = a, .entry = SIZE_MAX};
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	f.path = info.key;
	if (!kp_path_ok(f.path))
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "a key is not the path of a file");
	KP_TRY(keep_read(a, entry, &f.recipe, why));
	xgrow(&u->files, u->n_files, &u->files_cap, sizeof(*u->files));
	u->files[u->n_files++] = f;
	return KPACK_SUCCESS;
}

/* By path; the last that was kept comes first. */
static int by_path(const void *a, const void *b)
{
	const struct undo_file *x = a, *y = b;
	const struct timespec *s = &x->recipe.file.kept, *t = &y->recipe.file.kept;
	int c = kp_span_cmp(x->path, y->path);

	if (c)
		return c;
	if (s->tv_sec != t->tv_sec)
		return KP_ORDER(t->tv_sec, s->tv_sec);
	return (s->tv_nsec < t->tv_nsec) - (s->tv_nsec > t->tv_nsec);
}

/* The end of the entries of U's files that have the path of number FIRST. */
static size_t end_of_path(const struct undo *u, size_t first)
{
	size_t end = first + 1;

	while (end < u->n_files && kp_span_eq(u->files[first].path, u->files[end].path))
		end++;
	return end;
}

static bool open_kept(struct undo *u)
{
	char *dir = (char *)u->args.dir;

	archives_open(&u->kept, 1, &dir);
	u->n_faults += u->kept.failed;
	for (size_t i = 0; i < u->kept.count; i++) {
		const struct kpack_archive *a = u->kept.items[i];

		for (size_t k = 0; k < kp_archive_entry_count(a); k++) {
			struct kpackx_error why = {0};

			if (keep_is_recipe(a, k) && add_recipe(u, a, k, &why)) {
				report_why(kp_archive_path(a), &why);
				u->n_faults++;
			}
		}
	}
	if (u->n_files)
		qsort(u->files, u->n_files, sizeof(*u->files), by_path);
	if (u->n_faults == 0 && u->n_files == 0)
		report_error(dir, "nothing in it was kept by kpack thin --keep");
	return u->n_faults == 0 && u->n_files;
}

/* --- what is in the tree ------------------------------------------------------------- */

static char *path_of(const struct undo *u, const struct undo_file *f)
{
	return xasprintf("%s/%.*s", u->args.tree, (int)f->path.size,
			 (const char *)f->path.data);
}

static void refuse_file(struct undo *u, struct undo_file *f, const char *reason)
{
	KP_AUTO_FREE char *path = path_of(u, f);

	report_error(path, "left as it is: %s", reason);
	f->state = UNDO_REFUSED;
}

static bool is_original(const struct kp_recipe *r, uint64_t size,
			const struct kp_hash *hash)
{
	return size == r->size && kp_hash_is(hash, r->file.xxh3);
}

static bool is_changed(const struct kp_recipe *r, const struct kp_hash *hash)
{
	return !r->file.removed && kp_hash_is(hash, r->file.changed_xxh3);
}

/* Choose what is done with the file at ENTRY, by one of the N recipes at F. */
static kpack_error_t choose_existing(struct undo *u, struct undo_file *f, size_t n,
				     size_t entry, struct kpackx_error *why)
{
	const struct scan_entry *e = &u->scan.entries[entry];
	struct kp_recipe *r = &f->recipe;
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source file;
	struct kp_hash hash;

	if (!S_ISREG(e->mode)) {
		refuse_file(u, f, "it is not a file any more");
		return KPACK_SUCCESS;
	}
	KP_TRY(below_file_open_again(e->path, &e->id, &fd, why));
	file = kp_source_fd(fd, 0, e->id.size);
	KP_TRY(content_hash_source(&file, &hash, why));
	/* a killed run has kept the original for a file that it did not write */
	for (size_t i = 0; i < n; i++) {
		struct undo_file first = f[0];

		if (!is_original(&f[i].recipe, e->id.size, &hash) &&
		    !is_changed(&f[i].recipe, &hash))
			continue;
		f[0] = f[i];
		f[i] = first;
		break;
	}
	f->entry = e->first;
	if (is_original(r, e->id.size, &hash)) {
		f->state = UNDO_ORIGINAL;
		return KPACK_SUCCESS;
	}
	if (!is_changed(r, &hash)) {
		refuse_file(u, f, "it is another file now");
		return KPACK_SUCCESS;
	}
	for (size_t i = 0; i < u->n_restored; i++)
		if (u->restored[i]->entry == f->entry) {
			f->state = UNDO_LINK;
			return KPACK_SUCCESS;
		}
	/* a file that lost all code is no input for a scan */
	if (!u->scan.entries[f->entry].input)
		KP_TRY(scan_add_plain(&u->scan, f->entry, why));
	u->dispositions.items[f->entry].fate = FATE_CONVERTED;
	u->restored[u->n_restored++] = u->scan.entries[f->entry].input;
	return KPACK_SUCCESS;
}

/* Choose what is done with a file that is not there: it was removed, or is lost. */
static void choose_missing(struct undo *u, struct undo_file *f)
{
	KP_AUTO_FREE char *dir = path_of(u, f);
	struct stat st;

	if (!f->recipe.file.removed) {
		refuse_file(u, f, "it does not exist any more");
		return;
	}
	*strrchr(dir, '/') = '\0';
	if (below_lstat(dir, &st) < 0 && errno != ENOENT && errno != ENOTDIR)
		refuse_file(u, f, strerror(errno));
	else if (below_lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		refuse_file(u, f, "its directory does not exist any more");
}

static bool open_tree(struct undo *u)
{
	struct kpackx_error why = {0};
	size_t entry, n = 0;

	if (scan_open(u->args.tree, "", SCAN_CONVERTIBLE, &u->args.libraries,
		      SCAN_IDENTIFY, &u->scan, &why)) {
		report_why(u->args.tree, &why);
		return false;
	}
	u->n_faults = u->scan.n_faults;
	dispositions_open(&u->scan, true, &u->dispositions);
	u->restored = xcalloc(u->n_files, sizeof(*u->restored));
	for (size_t i = 0, end; i < u->n_files; i = end) {
		struct undo_file *f = &u->files[i];

		end = end_of_path(u, i);
		if (!scan_find(&u->scan, f->path, &entry)) {
			choose_missing(u, f);
		} else if (choose_existing(u, f, end - i, entry, &why)) {
			report_why(u->scan.entries[entry].path, &why);
			u->n_faults++;
		}
		/* only the recipe that was chosen stays */
		for (size_t k = i + 1; k < end; k++)
			kp_recipe_fini(&u->files[k].recipe);
		u->files[n++] = *f;
	}
	u->n_files = n;
	return true;
}

/* --- writing ------------------------------------------------------------------------- */

/* The converter's: write the original of IN to OUT. */
static kpack_error_t restore_file(void *arg, struct input *in, int fd,
				  struct kp_outfile *out, struct kpackx_error *why)
{
	const struct undo *u = arg;
	const struct undo_file *f = u->files;
	struct kp_source changed = kp_source_fd(fd, 0, (uint64_t)in->st.st_size);
	struct kp_hash hash;

	while (f->entry != in->entry || f->state != UNDO_RESTORED)
		f++;
	KP_TRY(content_hash_source(&changed, &hash, why));
	if (!kp_hash_is(&hash, f->recipe.file.changed_xxh3))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	return keep_restore(f->archive, f->path, &f->recipe, &changed, out, why);
}

/* Make a file again that was removed. */
static kpack_error_t make_file(const struct undo *u, const struct undo_file *f,
			       struct kpackx_error *why)
{
	const struct kp_recipe *r = &f->recipe;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, r->file.mtime};
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	KP_AUTO_FREE char *path = path_of(u, f);
	kpack_error_t err = below_outfile_open(&out, path, 0600, why);

	if (!err) {
		out.keep = true;
		out.mode = 0;
		err = keep_restore(f->archive, f->path, r, NULL, &out, why);
	}
	/* the file of an ordinary user stays that user's */
	if (!err && geteuid() == 0 && fchown(out.fd, r->file.uid, r->file.gid) < 0)
		err = kp_fail_errno(why, errno, "cannot give it its owner");
	if (!err &&
	    (fchmod(out.fd, r->file.mode & 0777) < 0 || futimens(out.fd, times) < 0))
		err = kp_fail_errno(why, errno, "cannot give it its attributes");
	if (!err)
		err = kp_outfile_publish(&out, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	kp_outfile_close(&out);
	return err;
}

static kpack_error_t write_all(struct undo *u, const struct converter *c,
			       struct kpackx_error *why)
{
	KP_TRY(output_write(c, u->args.tree, NULL, why));
	for (size_t i = 0; i < u->n_files; i++)
		if (u->files[i].state == UNDO_RESTORED && u->files[i].recipe.file.removed)
			KP_TRY(make_file(u, &u->files[i], why));
	return KPACK_SUCCESS;
}

int undo_run(struct undo *u)
{
	struct converter c = {.scan = &u->scan,
			      .dispositions = &u->dispositions,
			      .jobs = u->args.jobs,
			      .rewrite = restore_file,
			      .rewrite_arg = u};
	struct kpackx_error why = {0};
	size_t refused = 0;

	if (!open_kept(u) || !open_tree(u))
		return EXIT_FAULT;
	c.inputs = u->restored;
	c.n_inputs = u->n_restored;
	converter_check(&c, &u->n_faults);
	if (u->n_faults) {
		report_error(u->args.tree,
			     "nothing was restored because of the faults above");
		return EXIT_FAULT;
	}
	if (write_all(u, &c, &why)) {
		report_why(NULL, &why);
		return EXIT_FAULT;
	}
	u->done = true;
	for (size_t i = 0; i < u->n_files; i++)
		refused += u->files[i].state == UNDO_REFUSED;
	return refused ? EXIT_FAULT : EXIT_OK;
}

void undo_close(struct undo *u)
{
	for (size_t i = 0; i < u->n_files; i++)
		kp_recipe_fini(&u->files[i].recipe);
	free(u->files);
	free(u->restored);
	dispositions_close(&u->dispositions);
	scan_close(&u->scan);
	archives_close(&u->kept);
	library_set_close(&u->args.libraries);
	*u = (struct undo){0};
}
