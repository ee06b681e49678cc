/* SPDX-License-Identifier: MIT */
#include "undo.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

/* --- what was kept ------------------------------------------------------------------- */

static kpack_error_t add_recipe(struct undo *u, const struct kpack_archive *a,
				size_t entry, struct kpackx_error *why)
{
	struct undo_file f = {.archive = a, .entry = SIZE_MAX};
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	f.path = info.key;
	KP_TRY(keep_read(a, entry, &f.recipe, why));
	if (!kp_path_ok(f.path)) {
		kp_recipe_fini(&f.recipe);
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "a key is not the path of a file");
	}
	xgrow(&u->files, u->n_files, &u->files_cap, sizeof(*u->files));
	u->files[u->n_files++] = f;
	return KPACK_SUCCESS;
}

static void read_archive(struct undo *u, const struct kpack_archive *a)
{
	for (size_t i = 0; i < kp_archive_entry_count(a); i++) {
		struct kpackx_error why = {0};

		if (keep_is_recipe(a, i) && add_recipe(u, a, i, &why)) {
			report_why(kp_archive_path(a), &why);
			u->n_faults++;
		}
	}
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

/* Drop all recipes of a path but the first. */
static void drop_others(struct undo *u)
{
	size_t n = 0, end;

	for (size_t i = 0; i < u->n_files; i = end) {
		end = end_of_path(u, i);
		for (size_t k = i + 1; k < end; k++)
			kp_recipe_fini(&u->files[k].recipe);
		u->files[n++] = u->files[i];
	}
	u->n_files = n;
}

static bool open_kept(struct undo *u)
{
	char *dir = (char *)u->args.dir;

	archives_open(&u->kept, 1, &dir);
	u->n_faults += u->kept.failed;
	for (size_t i = 0; i < u->kept.count; i++)
		read_archive(u, u->kept.items[i]);
	if (u->n_files)
		qsort(u->files, u->n_files, sizeof(*u->files), by_path);
	if (u->n_faults == 0 && u->n_files == 0)
		report_error(dir, "nothing in it was kept by kpack thin --keep");
	return u->n_faults == 0 && u->n_files;
}

/* --- what is in the tree ------------------------------------------------------------- */

static void refuse_file(struct undo *u, struct undo_file *f, const char *reason)
{
	char *path = xasprintf("%s/%.*s", u->args.tree, (int)f->path.size,
			       (const char *)f->path.data);

	report_error(path, "left as it is: %s", reason);
	f->state = UNDO_REFUSED;
	free(path);
}

static kpack_error_t hash_entry(const struct scan_entry *e, uint8_t hash[16],
				struct kpackx_error *why)
{
	struct kp_source file;
	kpack_error_t err;
	int fd;

	KP_TRY(below_file_open_again(e->path, &e->id, &fd, why));
	file = kp_source_fd(fd, 0, e->id.size);
	err = keep_hash(&file, hash, why);
	close(fd);
	return err;
}

/* Make the file of ENTRY an input: a file that lost all code is none for a scan. */
static bool add_input(struct undo *u, size_t entry)
{
	struct kpackx_error why = {0};

	if (u->scan.entries[entry].input || !scan_add_plain(&u->scan, entry, &why))
		return true;
	report_why(u->scan.entries[entry].path, &why);
	u->n_faults++;
	return false;
}

static bool is_planned(const struct undo *u, size_t entry)
{
	for (size_t i = 0; i < u->n_restored; i++)
		if (u->restored[i]->entry == entry)
			return true;
	return false;
}

static bool is_original(const struct kp_recipe *r, uint64_t size, const uint8_t hash[16])
{
	return size == r->size && memcmp(hash, r->file.xxh3, sizeof(r->file.xxh3)) == 0;
}

static bool is_changed(const struct kp_recipe *r, const uint8_t hash[16])
{
	return !r->file.removed &&
	       memcmp(hash, r->file.changed_xxh3, sizeof(r->file.changed_xxh3)) == 0;
}

/*
 * Put first, among the N recipes of a path at F, the last that is for the file with HASH: a
 * killed run has kept the original for a file that it did not write.
 */
static void prefer_fitting(struct undo_file *f, size_t n, uint64_t size,
			   const uint8_t hash[16])
{
	for (size_t i = 0; i < n; i++) {
		struct undo_file first = f[0];

		if (!is_original(&f[i].recipe, size, hash) &&
		    !is_changed(&f[i].recipe, hash))
			continue;
		f[0] = f[i];
		f[i] = first;
		return;
	}
}

/* Choose what is done with the file at ENTRY, by one of the N recipes at F. */
static void choose_existing(struct undo *u, struct undo_file *f, size_t n, size_t entry)
{
	const struct scan_entry *e = &u->scan.entries[entry];
	const struct kp_recipe *r = &f->recipe;
	struct kpackx_error why = {0};
	uint8_t hash[16];

	if (!S_ISREG(e->mode)) {
		refuse_file(u, f, "it is not a file any more");
		return;
	}
	if (hash_entry(e, hash, &why)) {
		report_why(e->path, &why);
		u->n_faults++;
		return;
	}
	prefer_fitting(f, n, e->id.size, hash);
	f->entry = e->first;
	if (is_original(r, e->id.size, hash)) {
		f->state = UNDO_ORIGINAL;
	} else if (!is_changed(r, hash)) {
		refuse_file(u, f, "it is another file now");
	} else if (is_planned(u, f->entry)) {
		f->state = UNDO_LINK;
	} else if (add_input(u, f->entry)) {
		u->dispositions.items[f->entry].fate = FATE_CONVERTED;
		u->restored[u->n_restored++] = u->scan.entries[f->entry].input;
	}
}

/* Look for the directory of a file of which nothing is left.  Returns NULL, or why F cannot be put there. */
static const char *look_at_directory(const struct undo *u, struct kp_span path)
{
	static const char gone[] = "its directory does not exist any more";
	const char *reason = NULL;
	struct stat st;
	char *dir;

	while (path.size && path.data[path.size - 1] != '/')
		path.size--;
	dir = xasprintf("%s/%.*s", u->args.tree, (int)path.size, (const char *)path.data);
	if (below_lstat(dir, &st) < 0)
		reason = errno == ENOENT || errno == ENOTDIR ? gone : strerror(errno);
	else if (!S_ISDIR(st.st_mode))
		reason = gone;
	free(dir);
	return reason;
}

/* Choose what is done with a path, for which F has N recipes, the last one first. */
static void choose_file(struct undo *u, struct undo_file *f, size_t n)
{
	const char *reason;
	size_t entry;

	if (scan_find(&u->scan, f->path, &entry)) {
		choose_existing(u, f, n, entry);
		return;
	}
	reason = f->recipe.file.removed ? look_at_directory(u, f->path)
					: "it does not exist any more";
	if (reason)
		refuse_file(u, f, reason);
}

static bool open_tree(struct undo *u)
{
	struct kpackx_error why = {0};

	if (scan_open(u->args.tree, "", SCAN_CONVERTIBLE, &u->args.libraries,
		      SCAN_IDENTIFY, &u->scan, &why)) {
		report_why(u->args.tree, &why);
		return false;
	}
	u->n_faults = u->scan.n_faults;
	dispositions_open(&u->scan, true, &u->dispositions);
	u->restored = xcalloc(u->n_files, sizeof(*u->restored));
	for (size_t i = 0, end; i < u->n_files; i = end) {
		end = end_of_path(u, i);
		choose_file(u, &u->files[i], end - i);
	}
	drop_others(u);
	return true;
}

/* --- writing ------------------------------------------------------------------------- */

static struct undo_file *file_of(struct undo *u, const struct input *in)
{
	for (size_t i = 0; i < u->n_files; i++)
		if (u->files[i].entry == in->entry && u->files[i].state == UNDO_RESTORED)
			return &u->files[i];
	return NULL;
}

static kpack_error_t restore_file(void *arg, struct input *in, int fd,
				  struct kp_outfile *out, struct kpackx_error *why)
{
	const struct undo_file *f = file_of(arg, in);
	struct kp_source changed = kp_source_fd(fd, 0, (uint64_t)in->st.st_size);
	uint8_t hash[16];

	KP_TRY(keep_hash(&changed, hash, why));
	if (memcmp(hash, f->recipe.file.changed_xxh3, sizeof(hash)) != 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	return keep_restore(f->archive, f->path, &f->recipe, &changed, out, why);
}

static kpack_error_t give_attributes(int fd, const struct kp_recipe *r,
				     struct kpackx_error *why)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, r->file.mtime};

	/* the file of an ordinary user stays that user's */
	if (geteuid() == 0 && fchown(fd, r->file.uid, r->file.gid) < 0)
		return kp_fail_errno(why, errno, "cannot give it its owner");
	if (fchmod(fd, r->file.mode & 0777) < 0 || futimens(fd, times) < 0)
		return kp_fail_errno(why, errno, "cannot give it its attributes");
	return KPACK_SUCCESS;
}

/* Make a file again that was removed. */
static kpack_error_t make_file(const struct undo *u, const struct undo_file *f,
			       struct kpackx_error *why)
{
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	char *path = xasprintf("%s/%.*s", u->args.tree, (int)f->path.size,
			       (const char *)f->path.data);
	kpack_error_t err = below_outfile_open(&out, path, 0600, why);

	if (!err) {
		out.keep = true;
		out.mode = 0;
		err = keep_restore(f->archive, f->path, &f->recipe, NULL, &out, why);
	}
	if (!err)
		err = give_attributes(out.fd, &f->recipe, why);
	if (!err)
		err = kp_outfile_publish(&out, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	kp_outfile_close(&out);
	free(path);
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
			      .arg = u};
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
