/* SPDX-License-Identifier: MIT */
/*
 * What a tree asks of archives.  An entry of a binary stays if a converted binary of its name, or
 * what may be one, asks for it; an entry that is a file of the tree stays while its directory exists
 * and the file itself does not.  Whatever is not clear asks for everything: a mount in the tree may
 * show the files of these very archives.
 */
#include "prune.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/binary.h"
#include "packer/files/below.h"
#include "packer/files/identity.h"

struct demand_binary {
	char *path;
	struct file_identity seen;
	char *name; /* kernel_name */
	/* the n of the keys NAME#n that it asks for, ascending; NULL: they are not known */
	uint32_t *indices;
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

static int by_index(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return KP_ORDER(*x, *y);
}

/*
 * The indices of the wrappers, and of the containers, some of which have no wrapper.
 * Without a layout, it is not known which code was packed besides the wrappers'.
 */
static void list_indices(const struct binary *b, struct demand_binary *out)
{
	size_t wrappers = b->fat.elf.n_wrappers;

	if (!b->has_layout)
		return;
	out->indices =
		xcalloc(wrappers + b->layout.n_containers + 1, sizeof(*out->indices));
	for (size_t i = 0; i < wrappers; i++)
		out->indices[out->n_indices++] = binary_index(b, i);
	for (size_t i = 0; i < b->layout.n_containers; i++)
		out->indices[out->n_indices++] = b->layout.containers[i].index;
	qsort(out->indices, out->n_indices, sizeof(*out->indices), by_index);
}

static kpack_error_t add_converted(struct demand *d, struct binary *b,
				   struct kpackx_error *why)
{
	struct demand_binary item = {0};
	kpack_error_t err;

	KP_TRY(binary_read_marker(b, why));
	KP_TRY(binary_read_layout(b, why));
	err = installed_reach(&d->set, &b->marker, b->path, &item.reach, why);
	if (err) {
		reach_fini(&item.reach);
		return err;
	}
	item.path = xstrdup(b->path);
	item.seen = file_identity_of(&b->st);
	item.name = xstrdup(b->marker.kernel_name);
	list_indices(b, &item);
	xgrow(&d->items, d->count, &d->cap, sizeof(*d->items));
	d->items[d->count++] = item;
	return KPACK_SUCCESS;
}

kpack_error_t demand_add(struct demand *d, const char *path, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct binary b;
	kpack_error_t err = binary_open(path, &b, &fault);

	/* a damaged binary has no marker; entries with its path as key stay, see is_unpacked */
	if (err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_OUT_OF_MEMORY) {
		*why = fault;
		return err;
	}
	if (err)
		return KPACK_SUCCESS;
	d->has_hosts |= b.fat.elf.type != 0;
	if (b.fat.kind == KP_FATBIN_CONVERTED)
		err = add_converted(d, &b, why);
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
	if (d->count)
		kp_sort(d->items, d->count, KP_BY_TEXT(struct demand_binary, name));
}

/* The first of the binaries called NAME, and their number. */
static const struct demand_binary *find_binaries(const struct demand *d,
						 struct kp_span name, size_t *n)
{
	char *text = xstrndup((const char *)name.data, name.size);
	const struct demand_binary probe = {.name = text};
	size_t first = kp_lower_bound(d->items, d->count, &probe,
				      KP_BY_TEXT(struct demand_binary, name));

	/* a key with a NUL is no binary's */
	for (*n = 0; strlen(text) == name.size && first + *n < d->count &&
		     strcmp(d->items[first + *n].name, text) == 0;)
		++*n;
	free(text);
	return d->items + first;
}

/* --- what the tree has --------------------------------------------------------------- */

/* The mount that FD is of, whose files are on one file system. */
static struct demand_mount mount_of(int fd)
{
	struct demand_mount m = {.id = kp_fd_info(fd, "mnt_id:")};
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		m.dev = st.st_dev;
	return m;
}

/*
 * Whether the files of a lower layer, as a mount of archives, look like the others of the
 * mount ID.  Otherwise an overlay gives each layer's files a device of their own, unless all
 * layers are of one file system.
 */
static bool hides_layers(long id)
{
	struct kp_mounts mounts;
	struct kp_mount m;
	bool hides = false;

	if (!kp_mounts_open(&mounts))
		return false;
	while (kp_mounts_next(&mounts, &m))
		hides |= m.id == id && strcmp(m.type, "overlay") == 0 &&
			 strstr(m.options, "xino=on");
	kp_mounts_close(&mounts);
	return hides;
}

void demand_init(struct demand *d, const char *tree)
{
	int fd = below_open_following(tree, O_PATH | O_DIRECTORY);

	*d = (struct demand){.tree = tree, .mount = mount_of(fd)};
	d->mount.mixed = hides_layers(d->mount.id);
	installed_init(&d->set);
	if (fd >= 0)
		close(fd);
}

/* Whether PATH itself, which exists, is the tree's own: no mount shows it. */
static bool is_own(const struct demand *d, const char *path)
{
	int fd = below_open(path, O_PATH, 0);
	struct demand_mount m = mount_of(fd);

	if (fd >= 0)
		close(fd);
	return fd >= 0 && m.id == d->mount.id && m.dev == d->mount.dev && !d->mount.mixed;
}

static enum demand_place place_of(const struct demand *d, const char *path)
{
	char *dir, *slash;
	enum demand_place place = PLACE_EMPTY;
	struct stat st;

	if (below_lstat(path, &st) == 0)
		return S_ISREG(st.st_mode) && is_own(d, path) ? PLACE_FILE
							      : PLACE_UNCLEAR;
	if (errno != ENOENT && errno != ENOTDIR)
		return PLACE_UNCLEAR;
	/* a mount on the directory that should have it may cover the file */
	dir = xstrdup(path);
	while ((slash = strrchr(dir, '/'))) {
		*slash = '\0';
		if (below_lstat(dir, &st) == 0) {
			place = is_own(d, dir) ? PLACE_EMPTY : PLACE_UNCLEAR;
			break;
		}
	}
	free(dir);
	return place;
}

/* Whether the file PATH is known to be no converted binary. */
static bool is_unpacked(const char *path)
{
	struct binary b;
	bool unpacked;

	if (binary_open(path, &b, NULL))
		return false;
	unpacked = b.fat.kind != KP_FATBIN_CONVERTED;
	for (size_t i = 0; i < b.fat.elf.n_wrappers; i++)
		unpacked &= b.fat.elf.wrappers[i].fields.magic != KP_WRAPPER_HIPK;
	binary_close(&b);
	return unpacked;
}

/*
 * Look for NAME in the tree that the archive is of, then in the demand's, which may be the
 * part of it that --key-prefix put directories before.
 */
static enum demand_place find_name(struct demand_query *q, struct kp_span name)
{
	const char *root = q->root ? q->root : q->demand->tree;
	struct kp_span rest = name;

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
	if (q->place == PLACE_FILE && !is_unpacked(q->path))
		q->place = PLACE_UNCLEAR;
	return q->place;
}

/* --- entries ------------------------------------------------------------------------- */

/* Whether B, which may be what the entry INFO is for, finds it in archive A, or nowhere else. */
static bool asks_for(const struct demand_binary *b, const struct installed_archive *a,
		     const struct kp_entry_info *info)
{
	bool elsewhere = false;
	size_t entry;

	for (size_t i = 0; i < b->reach.count; i++) {
		const struct installed_archive *other = b->reach.items[i].archive;

		if (other == a)
			return true;
		elsewhere |= other->archive && kp_archive_find(other->archive, info->key,
							       info->arch, &entry);
	}
	return !elsewhere;
}

/* "lib/x.so@openmp" -> "lib/x.so"; false: there is no "@". */
static bool cut_kind(struct kp_span *name)
{
	for (size_t i = name->size; i > 0; i--)
		if (name->data[i - 1] == '@') {
			name->size = i - 1;
			return i > 1;
		}
	return false;
}

static enum prune_reason ask_code(struct demand_query *q,
				  const struct kp_entry_info *info)
{
	struct kp_key key = kp_key_split(info->key);
	struct kp_span name = key.binary;
	bool numbered = key.binary.size < info->key.size;
	const struct demand_binary *list;
	size_t n;

	do {
		list = find_binaries(q->demand, name, &n);
		for (size_t i = 0; i < n; i++)
			if ((!list[i].indices ||
			     bsearch(&key.index, list[i].indices, list[i].n_indices,
				     sizeof(*list[i].indices), by_index)) &&
			    asks_for(&list[i], q->archive, info))
				return PRUNE_STAYS;
		if (n)
			return PRUNE_UNASKED;
		switch (find_name(q, name)) {
		case PLACE_FILE: /* with its code in it, or with none */
			return PRUNE_UNASKED;
		case PLACE_UNCLEAR:
			return PRUNE_STAYS;
		case PLACE_EMPTY:
			break;
		}
	} while (cut_kind(&name));
	/* keys without a number are also those of databases in older archives */
	return numbered ? PRUNE_GONE : PRUNE_STAYS;
}

/* A file is in archives instead of the tree, where only its directory is. */
static enum prune_reason ask_file(struct demand_query *q, struct kp_span path)
{
	struct kp_span dir = path;
	enum demand_place place;
	char *file;

	while (dir.size && dir.data[dir.size - 1] != '/')
		dir.size--;
	if (dir.size == 0) {
		file = xasprintf("%s/%.*s", q->root ? q->root : q->demand->tree,
				 (int)path.size, (const char *)path.data);
	} else {
		struct kp_span name = kp_span_tail(path, dir.size);

		dir.size--;
		if (find_name(q, dir) == PLACE_EMPTY)
			return PRUNE_GONE;
		file = xasprintf("%s/%.*s", q->path ? q->path : "", (int)name.size,
				 (const char *)name.data);
	}
	place = place_of(q->demand, file);
	free(file);
	return place == PLACE_FILE ? PRUNE_UNASKED : PRUNE_STAYS;
}

enum prune_reason demand_of(struct demand_query *q, size_t entry)
{
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(q->archive->archive, entry, &info);
	kp_archive_meta(q->archive->archive, entry, &meta);
	return meta.path.size ? ask_file(q, meta.path) : ask_code(q, &info);
}
