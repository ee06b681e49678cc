/* SPDX-License-Identifier: MIT */
/*
 * What a tree asks of archives.
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
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "binary.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/identity.h"

struct demand_index {
	uint32_t n;
};

struct demand_binary {
	char *path;
	struct file_identity seen;
	char *name; /* kernel_name */
	/*
	 * The n of the keys NAME#n that it asks for, ascending; NULL: it is not known which
	 * code was packed besides the wrappers'.
	 */
	struct demand_index *indices;
	size_t n_indices;
	struct reach reach;
};

void demand_fini(struct demand *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->items[i].path);
		free(d->items[i].name);
		free(d->items[i].indices);
		reach_fini(&d->items[i].reach);
	}
	free(d->items);
	installed_fini(&d->set);
	*d = (struct demand){0};
}

/* --- binaries ------------------------------------------------------------------------ */

kpack_error_t demand_add(struct demand *d, const char *path, struct kpackx_error *why)
{
	struct demand_binary item = {0};
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
	d->has_hosts |= b.fat.elf.type != 0;
	if (b.fat.kind != KP_FATBIN_CONVERTED)
		goto out;
	err = binary_read_marker(&b, why);
	if (!err)
		err = binary_read_layout(&b, why);
	if (!err)
		err = installed_reach(&d->set, &b.marker, path, &item.reach, why);
	if (err) {
		reach_fini(&item.reach);
		goto out;
	}
	item.path = xstrdup(path);
	item.seen = file_identity_of(&b.st);
	item.name = xstrdup(b.marker.kernel_name);
	/* those of the wrappers, and of the containers, some of which have no wrapper */
	wrappers = b.fat.elf.n_wrappers;
	if (b.has_layout)
		item.indices = xcalloc(wrappers + b.layout.n_containers + 1,
				       sizeof(*item.indices));
	for (size_t i = 0; i < wrappers && b.has_layout; i++)
		item.indices[item.n_indices++].n = binary_index(&b, i);
	for (size_t i = 0; i < b.layout.n_containers && b.has_layout; i++)
		item.indices[item.n_indices++].n = b.layout.containers[i].index;
	kp_sort(item.indices, item.n_indices, KP_BY_NUMBER(struct demand_index, n));
	xgrow(&d->items, d->count, &d->cap, sizeof(*d->items));
	d->items[d->count++] = item;
out:
	binary_close(&b);
	return err;
}

const char *demand_changed(const struct demand *d, int *error)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct demand_binary *b = &d->items[i];
		struct stat st;

		*error = below_lstat(b->path, &st) < 0 ? errno : 0;
		if (*error || !file_identity_is(&b->seen, &st))
			return b->path;
	}
	return NULL;
}

void demand_sort(struct demand *d)
{
	kp_sort(d->items, d->count, KP_BY_TEXT(struct demand_binary, name));
}

/* --- what the tree has --------------------------------------------------------------- */

static struct demand_mount mount_of(int fd)
{
	struct demand_mount m = {.id = kp_fd_info(fd, "mnt_id:")};
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		m.dev = st.st_dev;
	return m;
}

/*
 * An overlay gives each layer's files a device of their own, by which is_own knows the files of a
 * lower layer, as a mount of archives, unless its option says otherwise, or all layers are of one
 * file system.
 */
void demand_init(struct demand *d, const char *tree)
{
	KP_AUTO_CLOSE int fd = below_open_following(tree, O_PATH | O_DIRECTORY);
	struct kp_mounts mounts;
	struct kp_mount m;

	*d = (struct demand){.tree = tree, .mount = mount_of(fd)};
	if (!kp_mounts_open(&mounts))
		return;
	while (kp_mounts_next(&mounts, &m))
		d->mixed |= m.id == d->mount.id && strcmp(m.type, "overlay") == 0 &&
			    strstr(m.options, "xino=on");
	kp_mounts_close(&mounts);
}

/* Whether PATH itself, which exists, is the tree's own: no mount shows it. */
static bool is_own(const struct demand *d, const char *path)
{
	KP_AUTO_CLOSE int fd = below_open(path, O_PATH, 0);
	struct demand_mount m = mount_of(fd);

	return fd >= 0 && m.id == d->mount.id && m.dev == d->mount.dev && !d->mixed;
}

static enum demand_place place_of(const struct demand *d, const char *path)
{
	KP_AUTO_FREE char *dir = NULL;
	struct stat st;
	char *slash;

	if (below_lstat(path, &st) == 0)
		return S_ISREG(st.st_mode) && is_own(d, path) ? PLACE_FILE
							      : PLACE_UNCLEAR;
	if (errno != ENOENT && errno != ENOTDIR)
		return PLACE_UNCLEAR;
	/* a mount on the directory that should have it may cover the file */
	dir = xstrdup(path);
	while ((slash = strrchr(dir, '/'))) {
		*slash = '\0';
		if (below_lstat(dir, &st) == 0)
			return is_own(d, dir) ? PLACE_EMPTY : PLACE_UNCLEAR;
	}
	return PLACE_EMPTY;
}

/*
 * Look for NAME in the tree that the archive is of, then in the demand's, which may be the
 * part of it that --key-prefix put directories before.
 */
static enum demand_place find_name(struct demand_query *q, struct kp_span name)
{
	const char *root = q->root ? q->root : q->demand->tree;
	struct kp_span rest = name;
	struct binary b;
	bool unpacked;

	if (!kp_path_ok(name))
		return PLACE_UNCLEAR;
	if (q->path && kp_span_eq(q->last, name))
		return q->place;
	for (q->last = name;; root = q->demand->tree) {
		const uint8_t *slash = memchr(rest.data, '/', rest.size);

		free(q->path);
		q->path = xasprintf("%s/%.*s", root, (int)rest.size,
				    (const char *)rest.data);
		q->place = place_of(q->demand, q->path);
		if (q->place != PLACE_EMPTY || (root == q->demand->tree && !slash))
			break;
		if (root == q->demand->tree)
			rest = kp_span_tail(rest, (size_t)(slash + 1 - rest.data));
	}
	/* a file that may be a converted binary asks for who knows what */
	if (q->place == PLACE_FILE && binary_open(q->path, &b, NULL)) {
		q->place = PLACE_UNCLEAR;
	} else if (q->place == PLACE_FILE) {
		unpacked = b.fat.kind != KP_FATBIN_CONVERTED;
		for (size_t i = 0; i < b.fat.elf.n_wrappers; i++)
			unpacked &= b.fat.elf.wrappers[i].fields.magic != KP_WRAPPER_HIPK;
		binary_close(&b);
		q->place = unpacked ? PLACE_FILE : PLACE_UNCLEAR;
	}
	return q->place;
}

/* --- entries ------------------------------------------------------------------------- */

static enum prune_reason ask_code(struct demand_query *q,
				  const struct kp_entry_info *info)
{
	const struct demand *d = q->demand;
	struct kp_key key = kp_key_split(info->key);
	const struct demand_index index = {key.index};
	struct kp_span name = key.binary;

	do {
		KP_AUTO_FREE char *text = xstrndup((const char *)name.data, name.size);
		const struct demand_binary probe = {.name = text};
		size_t first = kp_lower_bound(d->items, d->count, &probe,
					      KP_BY_TEXT(struct demand_binary, name));
		size_t i = first;

		/* the binaries called NAME; a key with a NUL is no binary's */
		for (; i < d->count && kp_span_is(name, d->items[i].name); i++) {
			const struct reach *reach = &d->items[i].reach;
			bool here = false, elsewhere = false;
			size_t entry;

			if (d->items[i].indices &&
			    !kp_find(d->items[i].indices, d->items[i].n_indices, &index,
				     KP_BY_NUMBER(struct demand_index, n)))
				continue;
			/* it asks for the entry: does it find it here, or nowhere else? */
			for (size_t k = 0; k < reach->count; k++) {
				const struct installed_archive *a =
					reach->items[k].archive;

				here |= a == q->archive;
				elsewhere |= a->archive &&
					     kp_archive_find(a->archive, info->key,
							     info->arch, &entry);
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
	return key.binary.size < info->key.size ? PRUNE_GONE : PRUNE_STAYS;
}

enum prune_reason demand_of(struct demand_query *q, size_t entry)
{
	KP_AUTO_FREE char *file = NULL;
	struct kp_entry_info info;
	struct kp_span dir, name;
	struct kp_meta meta;
	const char *root = q->root ? q->root : q->demand->tree;

	kp_archive_entry(q->archive->archive, entry, &info);
	kp_archive_meta(q->archive->archive, entry, &meta);
	if (!meta.path.size)
		return ask_code(q, &info);
	/* a file is in archives instead of the tree, where only its directory is */
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
	file = xasprintf("%s/%.*s", root, (int)name.size, (const char *)name.data);
	return place_of(q->demand, file) == PLACE_FILE ? PRUNE_UNASKED : PRUNE_STAYS;
}
