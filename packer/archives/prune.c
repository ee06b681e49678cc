/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack prune:
 *
 *	open_tree	its binaries say which archives they reach and what they ask for; the
 *			directories of its archives are locked, and the binaries looked at once
 *			more; archives are opened after that
 *	demand_of	each entry stays, or goes for a reason
 *	prune_tree	is this the right tree, and are its archives whole?
 *	change_archive	each archive of which something goes is written anew and takes the place
 *			of the old one; an archive without entries is removed
 *
 * The walk comes before the locks because only binaries say which directories those are; what
 * changed in between is found by looking again, and ends the run.  Everything that can be refused
 * is refused before the first archive changes.  Whatever is in doubt stays: an entry too many
 * costs room, and one too few breaks a program.
 *
 * What a tree asks of archives:
 *
 *	an entry of code, KEY#N		at KEY's path in the tree
 *	  a converted binary of that name	stays if it has the index N, and reaches this
 *						archive, or no archive with the entry
 *	  another file				goes: it has its code in it, or none
 *	  nothing				goes, unless "KEY@kind" is of another binary
 *	an entry that is a file, PATH
 *	  the tree has the file			goes: loaders find that one
 *	  only its directory			stays: a mount shows it there
 *	  not even that				goes: the library was removed
 *
 * Whatever is not clear asks for everything: a link, what cannot be looked at, and what a mount in
 * the tree shows, which may be the files of these very archives.
 */
#include "prune.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include "content.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "merge.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"
#include "packer/gpu/code_table.h"

/* A converted binary of the tree. */
struct demand {
	char *path;
	struct file_identity seen;
	char *name; /* kernel_name */
	/*
	 * The n of the keys NAME#n that it asks for, ascending; NULL: it is not known which
	 * code was packed besides the wrappers'.
	 */
	uint32_t *indices;
	size_t n_indices;
	struct reach reach;
};

/* A file that is called like an archive. */
struct candidate {
	char *path;
	struct kp_span directory; /* in the path */
	dev_t dev;
	ino_t ino;
	struct installed_archive *reached; /* by a binary of the tree; or NULL */
};

/* A directory of archives, locked. */
struct locked {
	char *path;
	int lock; /* -1: the file system has no locks */
};

/* The mount that a file is of, whose files are on one file system. */
struct mount {
	long id;
	dev_t dev;
};

struct run {
	struct prune *p;
	const char *tree;
	struct mount mount;
	bool mixed; /* its files may be a mount's of archives, and nothing tells which */
	bool has_hosts;          /* there is a host binary, of any kind */
	struct demand *binaries; /* converted ones, by name once all are there */
	size_t n_binaries, binaries_cap;
	struct locked *dirs;
	size_t n_dirs, dirs_cap;
	size_t n_faults;
};

/* --- the tree ------------------------------------------------------------------------ */

static void report_fault(struct run *r, const char *path, const struct kpackx_error *why)
{
	report_why(path, why);
	r->n_faults++;
}

/* Check that the file at PATH is what was opened as A. */
static kpack_error_t check_unchanged(const char *path, const struct kpack_archive *a,
				     struct kpackx_error *why)
{
	const struct file_identity was = file_identity_of(kp_archive_stat(a));
	struct stat st;

	if (below_lstat(path, &st) < 0)
		return below_fail(why, "cannot look at it");
	return file_identity_is(&was, &st)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_IO_ERROR,
				 "changed meanwhile: run kpack prune again");
}

static struct mount mount_of(int fd)
{
	struct mount m = {.id = kp_fd_info(fd, "mnt_id:")};
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		m.dev = st.st_dev;
	return m;
}

/*
 * Take the file PATH of the tree, if it is a converted binary; other files are a success.  An error
 * means that it is not known which objects it asks for.
 */
static kpack_error_t add_binary(struct run *r, const char *path, struct kpackx_error *why)
{
	struct demand item = {0};
	struct kpackx_error fault = {0};
	struct binary b;
	size_t wrappers;
	kpack_error_t err = binary_open(path, &b, &fault);

	/* a damaged binary has no marker; entries with its path as key stay, see find_name */
	if (err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_OUT_OF_MEMORY) {
		*why = fault;
		return err;
	}
	if (err)
		return KPACK_SUCCESS;
	r->has_hosts |= b.fat.host.type != 0;
	if (b.fat.kind != KP_FATBIN_CONVERTED)
		goto out;
	err = binary_read_marker(&b, why);
	if (!err)
		err = binary_read_layout(&b, why);
	if (!err)
		err = installed_reach(&r->p->set, &b.marker, path, &item.reach, why);
	if (err) {
		reach_fini(&item.reach);
		goto out;
	}
	item.path = xstrdup(path);
	item.seen = file_identity_of(&b.st);
	item.name = xstrdup(b.marker.kernel_name);
	/* those of the wrappers, and of the containers, some of which have no wrapper */
	wrappers = b.fat.host.n_wrappers;
	if (b.has_layout)
		item.indices = xcalloc(wrappers + b.layout.n_containers + 1,
				       sizeof(*item.indices));
	for (size_t i = 0; i < wrappers && b.has_layout; i++)
		item.indices[item.n_indices++] = binary_index(&b, i);
	for (size_t i = 0; i < b.layout.n_containers && b.has_layout; i++)
		item.indices[item.n_indices++] = b.layout.containers[i].index;
	kp_sort(item.indices, item.n_indices, KP_AS_NUMBER(uint32_t));
	xgrow(&r->binaries, r->n_binaries, &r->binaries_cap, sizeof(*r->binaries));
	r->binaries[r->n_binaries++] = item;
out:
	binary_close(&b);
	return err;
}

/*
 * Take an archive of the tree.  One that cannot be read, or not copied as a whole, is a fault that
 * ends the run: nobody knows what would be lost with it.
 */
static kpack_error_t add_archive(struct prune *p, const struct candidate *c,
				 struct kpackx_error *why)
{
	struct prune_archive a = {.archive = c->reached};
	const struct kpack_archive *opened;
	size_t kept, faults;

	if (!a.archive) {
		struct reach unused = {0};
		kpack_error_t err = installed_add(&p->set, c->path, &unused, why);

		if (!err)
			a.archive = unused.items[0].archive;
		reach_fini(&unused);
		KP_TRY(err);
	}
	opened = a.archive->archive;
	if (!opened) {
		*why = a.archive->why;
		return why->code;
	}
	KP_TRY(check_unchanged(c->path, opened, why));
	kp_archive_faults(opened, &kept, &faults);
	if (faults)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has faults and cannot be copied; kpack verify names "
			       "them");
	/* what kpack thin --keep keeps may be there, too: only --undo knows when it goes */
	for (size_t i = 0; i < kp_archive_entry_count(opened); i++) {
		struct kp_entry_info info;

		kp_archive_entry(opened, i, &info);
		if (kp_span_is(info.type, "recipe") &&
		    kp_span_is(info.arch, KP_ARCH_GENERIC))
			return KPACK_SUCCESS;
	}
	a.path = xstrdup(c->path);
	a.relative = a.path + strlen(p->args.tree);
	a.relative += strspn(a.relative, "/");
	a.reasons = xcalloc(kp_archive_entry_count(opened) + 1, 1);
	a.before = a.after = (uint64_t)kp_archive_stat(opened)->st_size;
	xgrow(&p->archives, p->n_archives, &p->cap, sizeof(*p->archives));
	p->archives[p->n_archives++] = a;
	return KPACK_SUCCESS;
}

/*
 * Look at the tree.  Its binaries say what they ask for; its archives are those in directories
 * ".kpack", or in directories where its binaries find archives.  These directories are locked.
 */
static int open_tree(struct run *r)
{
	struct prune *p = r->p;
	KP_AUTO_CLOSE int fd = below_open_following(r->tree, O_PATH | O_DIRECTORY);
	struct tree_list *tree = tree_list_open(r->tree);
	struct candidate *list = NULL; /* by directory, then by name */
	size_t count = 0, cap = 0, end, n_own = 0;
	struct kpackx_error why = {0};
	struct kp_mounts mounts;
	struct tree_item item;
	struct kp_mount m;

	/*
	 * An overlay gives each layer's files a device of their own, by which is_own knows the
	 * files of a lower layer, as a mount of archives, unless its option says otherwise, or
	 * all layers are of one file system.
	 */
	r->mount = mount_of(fd);
	if (kp_mounts_open(&mounts)) {
		while (kp_mounts_next(&mounts, &m))
			r->mixed |= m.id == r->mount.id &&
				    strcmp(m.type, "overlay") == 0 &&
				    strstr(m.options, "xino=on");
		kp_mounts_close(&mounts);
	}
	while (tree_list_next(tree, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			r->n_faults++;
		} else if (item.kind != TREE_OTHER || !S_ISREG(item.st.st_mode)) {
			continue;
		} else if (kp_is_archive_name(item.name)) {
			char *path = xstrdup(item.path);

			xgrow(&list, count, &cap, sizeof(*list));
			list[count++] =
				(struct candidate){.path = path,
						   .directory = kp_path_directory(path),
						   .dev = item.st.st_dev,
						   .ino = item.st.st_ino};
		} else if (add_binary(r, item.path, &why)) {
			report_fault(r, item.path, &why);
		}
	}
	tree_list_close(tree);
	kp_sort(r->binaries, r->n_binaries, KP_BY_TEXT(struct demand, name));
	/* the archives by directory: each that is the tree's is locked */
	kp_sort(list, count, KP_BY_SPAN(struct candidate, directory),
		KP_BY_TEXT(struct candidate, path));
	for (size_t i = 0; i < count; i = end) {
		bool own = kp_is_archive_of_tree(list[i].path);
		struct kp_span dir = list[i].directory;

		for (end = i; end < count && kp_span_eq(list[end].directory, dir);
		     end++) {
			struct candidate *c = &list[end];

			for (size_t n = 0; n < p->set.count; n++)
				if (p->set.archives[n]->dev == c->dev &&
				    p->set.archives[n]->ino == c->ino)
					c->reached = p->set.archives[n];
			own |= c->reached != NULL;
		}
		if (own) {
			struct locked *d;

			xgrow(&r->dirs, r->n_dirs, &r->dirs_cap, sizeof(*r->dirs));
			d = &r->dirs[r->n_dirs++];
			d->path = xstrndup((const char *)dir.data, dir.size);
			if (leftovers_lock(d->path, &d->lock, &why))
				report_fault(r, NULL, &why); /* it has the path */
		}
		for (size_t k = i; k < end; k++) {
			if (own)
				list[n_own++] = list[k];
			else
				free(list[k].path);
		}
	}
	/* another run may have written archives, for binaries that it wrote after our look */
	for (size_t i = 0; i < r->n_binaries; i++) {
		const struct demand *b = &r->binaries[i];
		struct stat st;
		int error = below_lstat(b->path, &st) < 0 ? errno : 0;

		if (!error && file_identity_is(&b->seen, &st))
			continue;
		if (error && error != ENOENT)
			report_error(b->path, "cannot look at it: %s", strerror(error));
		else
			report_error(b->path, "changed meanwhile: run kpack prune again");
		r->n_faults++;
		break;
	}
	for (size_t i = 0; i < n_own; i++) {
		if (add_archive(p, &list[i], &why))
			report_fault(r, list[i].path, &why);
		free(list[i].path);
	}
	free(list);
	if (r->n_faults)
		report_error(r->tree, "nothing was removed because of the faults above");
	return r->n_faults ? EXIT_FAULT : EXIT_OK;
}

/* --- what goes ----------------------------------------------------------------------- */

/* What is at a path. */
enum demand_place {
	PLACE_EMPTY,   /* nothing, also below mounts */
	PLACE_FILE,    /* a regular file of the tree's own, not of a mount in it */
	PLACE_UNCLEAR, /* anything else: a link, a mount, what cannot be looked at */
};

/*
 * Entries of one archive, in their order: a name that follows itself is looked for once.
 * The archive's names are relative to ROOT, or to the tree of the run.
 */
struct query {
	const struct run *run;
	const struct installed_archive *archive;
	const char *root;
	struct kp_span last; /* the name that was looked for last */
	char *path;          /* where */
	enum demand_place place;
};

/* Whether PATH itself, which exists, is the tree's own: no mount shows it. */
static bool is_own(const struct run *r, const char *path)
{
	KP_AUTO_CLOSE int fd = below_open(path, O_PATH, 0);
	struct mount m = mount_of(fd);

	return fd >= 0 && m.id == r->mount.id && m.dev == r->mount.dev && !r->mixed;
}

static enum demand_place place_of(const struct run *r, const char *path)
{
	KP_AUTO_FREE char *dir = NULL;
	struct stat st;
	char *slash;

	if (below_lstat(path, &st) == 0)
		return S_ISREG(st.st_mode) && is_own(r, path) ? PLACE_FILE
							      : PLACE_UNCLEAR;
	if (errno != ENOENT && errno != ENOTDIR)
		return PLACE_UNCLEAR;
	/* a mount on the directory that should have it may cover the file */
	dir = xstrdup(path);
	while ((slash = strrchr(dir, '/'))) {
		*slash = '\0';
		if (below_lstat(dir, &st) == 0)
			return is_own(r, dir) ? PLACE_EMPTY : PLACE_UNCLEAR;
	}
	return PLACE_EMPTY;
}

/*
 * Look for NAME in the tree that the archive is of, then in the run's, which may be the
 * part of it that --key-prefix put directories before.
 */
static enum demand_place find_name(struct query *q, struct kp_span name)
{
	const char *root = q->root ? q->root : q->run->tree;
	struct kp_span rest = name;
	struct binary b;
	bool unpacked;

	if (!kp_path_ok(name))
		return PLACE_UNCLEAR;
	if (q->path && kp_span_eq(q->last, name))
		return q->place;
	for (q->last = name;; root = q->run->tree) {
		const uint8_t *slash = memchr(rest.data, '/', rest.size);

		free(q->path);
		q->path = xasprintf("%s/%.*s", root, (int)rest.size,
				    (const char *)rest.data);
		q->place = place_of(q->run, q->path);
		if (q->place != PLACE_EMPTY || (root == q->run->tree && !slash))
			break;
		if (root == q->run->tree)
			rest = kp_span_tail(rest, (size_t)(slash + 1 - rest.data));
	}
	/* a file that may be a converted binary asks for who knows what */
	if (q->place == PLACE_FILE && binary_open(q->path, &b, NULL)) {
		q->place = PLACE_UNCLEAR;
	} else if (q->place == PLACE_FILE) {
		unpacked = b.fat.kind != KP_FATBIN_CONVERTED;
		for (size_t i = 0; i < b.fat.host.n_wrappers; i++)
			unpacked &=
				b.fat.host.wrappers[i].fields.magic != KP_WRAPPER_HIPK;
		binary_close(&b);
		q->place = unpacked ? PLACE_FILE : PLACE_UNCLEAR;
	}
	return q->place;
}

/* Whether the tree needs an entry, for whichever GPU: STAYS, GONE or UNASKED. */
static enum prune_reason demand_of(struct query *q, size_t entry)
{
	const struct run *r = q->run;
	const char *root = q->root ? q->root : r->tree;
	struct kp_entry_info info;
	struct kp_span dir, name;
	struct kp_meta meta;
	struct kp_key key;

	kp_archive_entry(q->archive->archive, entry, &info);
	kp_archive_meta(q->archive->archive, entry, &meta);
	/* a file is in archives instead of the tree, where only its directory is */
	if (meta.path.size) {
		KP_AUTO_FREE char *file = NULL;

		dir = name = meta.path;
		while (dir.size && dir.data[dir.size - 1] != '/')
			dir.size--;
		if (dir.size) {
			name = kp_span_tail(name, dir.size);
			dir.size--;
			if (find_name(q, dir) == PLACE_EMPTY)
				return PRUNE_GONE;
			root = q->path ? q->path : "";
		}
		file = xasprintf("%s/%.*s", root, (int)name.size,
				 (const char *)name.data);
		return place_of(r, file) == PLACE_FILE ? PRUNE_UNASKED : PRUNE_STAYS;
	}
	key = kp_key_split(info.key);
	name = key.binary;
	do {
		KP_AUTO_FREE char *text = xstrndup((const char *)name.data, name.size);
		const struct demand probe = {.name = text};
		size_t first = kp_lower_bound(r->binaries, r->n_binaries, &probe,
					      KP_BY_TEXT(struct demand, name));
		size_t i = first;

		/* the binaries called NAME; a key with a NUL is no binary's */
		for (; i < r->n_binaries && kp_span_is(name, r->binaries[i].name); i++) {
			const struct demand *b = &r->binaries[i];
			bool here = false, elsewhere = false;
			size_t there;

			if (b->indices && !kp_find(b->indices, b->n_indices, &key.index,
						   KP_AS_NUMBER(uint32_t)))
				continue;
			/* it asks for the entry: does it find it here, or nowhere else? */
			for (size_t k = 0; k < b->reach.count; k++) {
				const struct installed_archive *a =
					b->reach.items[k].archive;

				here |= a == q->archive;
				elsewhere |= a->archive &&
					     kp_archive_find(a->archive, info.key,
							     info.arch, &there);
			}
			if (here || !elsewhere)
				return PRUNE_STAYS;
		}
		if (i > first)
			return PRUNE_UNASKED;
		switch (find_name(q, name)) {
		case PLACE_FILE: /* with its code in it, or with none */
			return PRUNE_UNASKED;
		case PLACE_UNCLEAR:
			return PRUNE_STAYS;
		case PLACE_EMPTY:
			break;
		}
		/* "lib/x.so@openmp" is of "lib/x.so" */
		while (name.size && name.data[name.size - 1] != '@')
			name.size--;
		name.size -= name.size > 0;
	} while (name.size);
	/* keys without a number are also those of databases in older archives */
	return key.binary.size < info.key.size ? PRUNE_GONE : PRUNE_STAYS;
}

bool prune_changes(const struct prune_archive *a)
{
	return a->n_entries[PRUNE_OTHER_GPU] || a->n_entries[PRUNE_GONE] ||
	       a->n_entries[PRUNE_UNASKED];
}

/* --- an archive ---------------------------------------------------------------------- */

static bool takes_entry(const void *arg, size_t source, const struct kp_entry_info *info)
{
	const struct prune_archive *a = arg;
	size_t entry;

	(void)source;
	return kp_archive_find(a->archive->archive, info->key, info->arch, &entry) &&
	       a->reasons[entry] == PRUNE_STAYS;
}

/*
 * Write A without what goes, or remove it if nothing stays; DRY: only find its new size.  The new
 * archive has the owner, permissions and attributes of the old one, but times of its own.
 */
static kpack_error_t change_archive(struct prune_archive *a, bool dry,
				    struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	const struct merge_source source = {.archive = old, .checked = true};
	const struct merge_options options = {
		.family_of_first = true, .takes = takes_entry, .takes_arg = a};
	const char *name = kp_path_name(a->path);
	KP_AUTO_FREE char *dir = xstrndup(a->path, kp_path_directory(a->path).size);
	struct kpack_archive *new = NULL;
	struct merge_plan *plan = NULL;
	struct kp_writer *w = NULL;
	struct merge_stats stats;
	kpack_error_t err;
	struct stat st;

	if (!dry)
		KP_TRY(check_unchanged(a->path, old, why));
	if (a->n_entries[PRUNE_STAYS] == 0) {
		a->after = 0;
		return !dry && below_unlink(a->path) < 0
			       ? below_fail(why, "cannot remove")
			       : KPACK_SUCCESS;
	}
	err = merge_plan_new(&source, 1, &options, &plan, why);
	merge_plan_stats(plan, &stats);
	if (!err && kp_archive_blob_size(old) > stats.bytes)
		a->after = a->before - (kp_archive_blob_size(old) - stats.bytes);
	if (!err && !dry)
		err = merge_plan_write(plan, dir, name, &w, why);
	if (!err && w)
		err = kp_writer_reopen(w, name, &new, why);
	if (!err && w)
		err = attributes_copy(kp_archive_fd(old), kp_archive_fd(new),
				      kp_archive_stat(old), why);
	if (!err && w && futimens(kp_archive_fd(new), NULL) < 0)
		err = kp_fail_errno(why, errno, "cannot set the time");
	kp_archive_close(new);
	if (!err && w)
		err = kp_writer_publish(w, why);
	if (!err && w && below_lstat(a->path, &st) == 0)
		a->after = (uint64_t)st.st_size;
	kp_writer_close(w);
	merge_plan_stats(plan, &stats);
	a->blocks_copied = stats.blocks_copied;
	a->blocks_encoded = stats.blocks_encoded;
	merge_plan_free(plan);
	return err;
}

/* --- a run --------------------------------------------------------------------------- */

/* Decide about each entry, refuse what looks like a mistake, and carry it out. */
static int prune_tree(struct run *r)
{
	struct prune *p = r->p;
	const struct arch_filter *filter = &p->args.filter;
	KP_AUTO(code_table) table = {0};
	size_t n[PRUNE_REASONS] = {0};
	bool any = false, fine = true, matched = false;
	struct kpackx_error why = {0};
	int status = open_tree(r);

	if (status)
		return status;
	for (size_t i = 0; i < p->n_archives; i++) {
		struct prune_archive *a = &p->archives[i];
		struct kp_span dir = kp_path_directory(a->path);
		/* the directory that names are relative to, if the archive's place says that */
		KP_AUTO_FREE char *root =
			kp_is_archive_of_tree(a->path)
				? xstrndup(a->path, dir.size - strlen(KP_ARCHIVES_DIR))
				: NULL;
		struct query q = {.run = r, .archive = a->archive, .root = root};

		/* in order: names that follow each other are looked for once */
		for (size_t e = 0; e < kp_archive_entry_count(a->archive->archive); e++) {
			enum prune_reason reason = demand_of(&q, e);
			struct kp_entry_info info;
			bool drops;

			/* also of what goes anyway: it shows that the list of GPUs is not wrong */
			kp_archive_entry(a->archive->archive, e, &info);
			drops = !kp_choice_is_all(&filter->chosen) &&
				arch_filter_drops(&p->args.filter, info.arch);
			if (reason == PRUNE_STAYS && drops)
				reason = PRUNE_OTHER_GPU;
			a->reasons[e] = (uint8_t)reason;
			a->n_entries[reason]++;
		}
		free(q.path);
	}
	/* are the tree and the list of GPUs the wrong ones, or the archives damaged? */
	for (size_t i = 0; i < p->n_archives; i++) {
		any |= prune_changes(&p->archives[i]);
		for (int k = 0; k < PRUNE_REASONS; k++)
			n[k] += p->archives[i].n_entries[k];
	}
	for (size_t i = 0; i < filter->chosen.count; i++)
		matched |= filter->matched[i];
	if (n[PRUNE_OTHER_GPU] && !matched) {
		for (size_t i = 0; i < p->n_archives; i++)
			code_table_add_archive(&table, p->archives[i].archive->archive, i,
					       false);
		return code_table_refuse(
			&table, r->tree,
			"no code is for the wanted GPUs: nothing is removed");
	}
	/* a part with the archives of a GPU has no host binaries: the generic one has them */
	if (!n[PRUNE_STAYS] && !p->args.force && !r->has_hosts && n[PRUNE_GONE])
		return report_error(
			r->tree, "nothing in it needs its archives, as if it were a part "
				 "of a tree: nothing is removed; --force removes all "
				 "archives");
	/* frames are copied as they are stored: one that is damaged would look like a new one */
	for (size_t i = 0; i < p->n_archives && any; i++)
		fine &= check_content(p->archives[i].archive->archive, NULL, CHECK_BYTES,
				      0);
	if (!fine)
		return report_error(r->tree,
				    "nothing was removed, because its archives are "
				    "damaged: pack the original files again");
	/* one after the other, each whole: a killed run leaves archives without what nothing needs */
	for (size_t i = 0; i < p->n_archives; i++) {
		struct prune_archive *a = &p->archives[i];

		if (prune_changes(a) && change_archive(a, p->args.dry, &why))
			return report_why(a->path, &why);
	}
	/* leftovers of killed runs, where a lock keeps out other runs */
	for (size_t i = 0; i < r->n_dirs && !p->args.dry; i++) {
		if (r->dirs[i].lock >= 0 && leftovers_remove(r->dirs[i].path, "", &why))
			return report_why(NULL, &why); /* it has the path */
	}
	return EXIT_OK;
}

int prune_run(struct prune *p)
{
	struct run r = {.p = p, .tree = p->args.tree};
	int status = prune_tree(&r);

	for (size_t i = 0; i < r.n_dirs; i++) {
		lock_close(r.dirs[i].lock);
		free(r.dirs[i].path);
	}
	free(r.dirs);
	for (size_t i = 0; i < r.n_binaries; i++) {
		free(r.binaries[i].path);
		free(r.binaries[i].name);
		free(r.binaries[i].indices);
		reach_fini(&r.binaries[i].reach);
	}
	free(r.binaries);
	return status;
}

void prune_close(struct prune *p)
{
	for (size_t i = 0; i < p->n_archives; i++) {
		free(p->archives[i].path);
		free(p->archives[i].reasons);
	}
	free(p->archives);
	installed_fini(&p->set);
	arch_filter_fini(&p->args.filter);
	*p = (struct prune){0};
}
