/* SPDX-License-Identifier: MIT */
/*
 * The runtime resolves a marker's search path for each target that its GPU runs (core/loader);
 * here the same rules are asked the other way round: which files can a path lead to, for whatever
 * GPU?  So the placeholder stands for itself while a path is resolved, and is then compared with
 * the names in the directory.
 *
 *	marker's path	../.kpack/rand_@GFXARCH@.kpack
 *	resolved	/opt/rocm/.kpack/rand_@GFXARCH@.kpack		kp_search_resolve
 *	in the directory	rand_gfx1100.kpack, rand_gfx942.kpack		installed_reach
 *	taken, if the part in the middle is a target, or an archive's	reach_file
 *
 * An archive is known by device and inode, so that binaries that reach it by different paths share
 * its table, and what was decoded of it: a tree has hundreds of binaries and a few archives.  One
 * that cannot be opened stays in the set with its reason, because whoever looks for an object then
 * does not know whether it is missing.
 *
 * Of an object the loader takes only what its key and architecture say.  Here the recipe of the
 * binary also states size and hash, so that an object of another build is told from the right one.
 */
#include "reachable_archives.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "content.h"
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "core/host/search_path.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Limit of names read for one binary: a thousand directories of hundreds of archives. */
#define NAMES_MAX (1 << 18)

/* The result of decoding an ordinal.  Entries that share it may state different sizes. */
struct installed_decoded {
	enum { UNKNOWN, GOOD, BAD } state;
	uint64_t size, chunk;
	uint8_t hash[16];
	struct kpackx_error *why; /* if BAD */
};

/* --- archives --------------------------------------------------------------------- */

void installed_fini(struct installed *set)
{
	for (size_t i = 0; i < set->count; i++) {
		struct installed_archive *a = set->archives[i];
		size_t n = a->decoded ? kp_archive_ordinal_count(a->archive) : 0;

		for (size_t k = 0; k < n; k++)
			free(a->decoded[k].why);
		free(a->decoded);
		kp_archive_close(a->archive);
		free(a->path);
		free(a);
	}
	free(set->archives);
	*set = (struct installed){0};
}

/* Open the archive PATH with the stat ST; if that fails, it is kept with the reason. */
static struct installed_archive *open_archive(struct installed *set, const char *path,
					      const struct stat *st)
{
	struct installed_archive *a;

	for (size_t i = 0; i < set->count; i++)
		if (set->archives[i]->dev == st->st_dev &&
		    set->archives[i]->ino == st->st_ino)
			return set->archives[i];
	a = xcalloc(1, sizeof(*a));
	a->path = xstrdup(path);
	a->dev = st->st_dev;
	a->ino = st->st_ino;
	below_archive_open(a->path, &a->archive, &a->why);
	xgrow(&set->archives, set->count, &set->cap, sizeof(*set->archives));
	set->archives[set->count++] = a;
	return a;
}

/* --- archives that a binary reaches ----------------------------------------------- */

struct among {
	const char *arch;
	bool found;
};

static bool is_it(struct kp_span target, void *arg)
{
	struct among *among = arg;

	among->found = kp_span_is(target, among->arch);
	return !among->found;
}

/* Whether the runtime tries the name TARGET for a GPU with the target ID ARCH. */
static bool asks_for(const char *arch, const char *target)
{
	struct among among = {.arch = target};

	kp_search_targets(kp_span_str(arch), is_it, &among);
	return among.found;
}

/* Whether a GPU with the target ID ARCH reaches this archive. */
static bool reached_by(const struct reached *r, const char *arch)
{
	return !r->arch || asks_for(arch, r->arch);
}

static bool declares_arch(const struct kpack_archive *a, const char *arch)
{
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (strcmp(kp_archive_arch(a, i), arch) == 0)
			return true;
	return false;
}

bool reach_has_broken(const struct reach *reach, const char *arch)
{
	for (size_t i = 0; i < reach->count; i++)
		if (!reach->items[i].archive->archive &&
		    reached_by(&reach->items[i], arch))
			return true;
	return false;
}

bool installed_has_arch(const struct installed *set, const char *arch)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct installed_archive *a = set->archives[i];

		if (a->reached && a->archive && declares_arch(a->archive, arch))
			return true;
	}
	return false;
}

/* Whether A has an architecture for which the runtime tries the name ARCH. */
static bool serves_arch(const struct kpack_archive *a, const char *arch)
{
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (asks_for(kp_archive_arch(a, i), arch))
			return true;
	return false;
}

static void add_reached(struct reach *out, struct installed_archive *a, const char *arch)
{
	bool misnamed = arch && a->archive && !serves_arch(a->archive, arch);

	xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
	a->reached |= !misnamed;
	out->items[out->count++] =
		(struct reached){a, arch ? xstrdup(arch) : NULL, misnamed};
}

void reach_fini(struct reach *reach)
{
	for (size_t i = 0; i < reach->count; i++)
		free(reach->items[i].arch);
	free(reach->items);
	*reach = (struct reach){0};
}

/*
 * Whether it is not known after ERROR if an archive is behind a path: root does not take it, because
 * another user may have put a link or a FUSE file system there, or looking failed.
 */
static bool is_barred(int error)
{
	switch (error) {
	case ELOOP:
		return geteuid() == 0;
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case ENAMETOOLONG:
		return false;
	default:
		return true;
	}
}

/* Fail for PATH and ERROR. */
static kpack_error_t cannot_do(const char *what, const char *path, int error,
			       struct kpackx_error *why)
{
	char text[160];

	kp_text_escape(kp_span_str(path), text, sizeof(text));
	errno = error;
	return below_fail(why, "%s: cannot %s", text, what);
}

/*
 * Add the file PATH if it exists.  "rand_x_gfx942.kpack" also matches
 * "rand_@GFXARCH@.kpack", but no GPU is called "x_gfx942": that archive belongs to other
 * binaries.
 */
static kpack_error_t reach_file(struct installed *set, const char *path, const char *arch,
				struct reach *out, struct kpackx_error *why)
{
	struct installed_archive *a;
	struct kp_target target;
	struct stat st;

	if (below_stat(path, &st) < 0)
		return is_barred(errno) ? cannot_do("look for archives", path, errno, why)
					: KPACK_SUCCESS;
	if (!S_ISREG(st.st_mode))
		return KPACK_SUCCESS;
	a = open_archive(set, path, &st);
	if (!arch ||
	    (kp_target_parse(kp_span_str(arch), &target, NULL) == 0 && target.known) ||
	    (a->archive && serves_arch(a->archive, arch)))
		add_reached(out, a, arch);
	return KPACK_SUCCESS;
}

/* The first path on the way that root does not take. */
struct barred {
	char *path;
	int error;
};

/* As realpath, for kp_search_resolve, by descriptors. */
static char *find_real(const char *path, void *arg)
{
	struct barred *barred = arg;
	char *real = below_real(path);
	int error = errno;

	if (!real && !barred->path && is_barred(error))
		*barred = (struct barred){xstrdup(path), error};
	errno = error;
	return real;
}

kpack_error_t installed_reach(struct installed *set, const struct kp_marker *marker,
			      const char *binary, struct reach *out,
			      struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < marker->n_search_paths && !err; i++) {
		const char *pattern = marker->search_paths[i], *before, *after;
		struct barred barred = {0};
		struct kp_search_memo memo = {.find = find_real, .arg = &barred};
		KP_AUTO_FREE char *path = NULL, *dir = NULL;
		struct dirent **names = NULL;
		size_t n_before = 0, n_after;
		int n;

		err = kp_search_resolve(pattern, kp_span_str(KP_SEARCH_ARCH), binary,
					&memo, &path, why);
		kp_search_memo_fini(&memo);
		if (!err && barred.path)
			err = cannot_do("look for archives", barred.path, barred.error,
					why);
		free(barred.path);
		if (err)
			return err;
		if (!kp_search_has_arch(pattern) || !kp_search_has_arch(path)) {
			KP_TRY(reach_file(set, path, NULL, out, why));
			continue;
		}
		/* the path is "DIR/" "BEFORE" placeholder "AFTER" "/REST": match names in DIR */
		before = strstr(path, KP_SEARCH_ARCH);
		after = before + strlen(KP_SEARCH_ARCH);
		n_after = strcspn(after, "/");
		for (; before > path && before[-1] != '/'; n_before++)
			before--;
		dir = before == path ? xstrdup("./")
				     : xstrndup(path, (size_t)(before - path));
		n = below_scandir(dir, &names, NULL);
		if (n < 0 && errno != ENOENT && errno != ENOTDIR)
			err = cannot_do("read the directory", dir, errno, why);
		out->names += n > 0 ? (size_t)n : 0;
		if (out->names > NAMES_MAX)
			err = kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				      "marker: more than %d names where its search paths "
				      "lead",
				      NAMES_MAX);
		for (int k = 0; k < n; k++) {
			const char *name = names[k]->d_name;
			size_t size = strlen(name);

			if (!err && size > n_before + n_after &&
			    memcmp(name, before, n_before) == 0 &&
			    memcmp(name + size - n_after, after, n_after) == 0) {
				KP_AUTO_FREE char *arch = xstrndup(
					name + n_before, size - n_before - n_after);
				KP_AUTO_FREE char *file =
					xasprintf("%s%s%s", dir, name, after + n_after);

				err = reach_file(set, file, arch, out, why);
			}
			free(names[k]);
		}
		free(names);
	}
	return err;
}

kpack_error_t installed_add(struct installed *set, const char *path, struct reach *out,
			    struct kpackx_error *why)
{
	struct installed_archive *a;
	struct stat st;

	if (below_stat(path, &st) < 0)
		return below_fail(why, "cannot open");
	a = open_archive(set, path, &st);
	if (a->archive) {
		add_reached(out, a, NULL);
		return KPACK_SUCCESS;
	}
	if (why)
		*why = a->why;
	return a->why.code;
}

/* --- objects ---------------------------------------------------------------------- */

struct kp_span wanted_kind(const struct kp_recipe_image *img)
{
	struct kp_entry_id id;

	if (img->id && kp_entry_id_parse(kp_span_str(img->id), &id))
		return id.kind;
	return kp_span_str("co");
}

void installed_find(const struct reach *reach, const struct wanted_object *want,
		    struct found_object *out)
{
	/* the packer cuts it in the same way */
	int kind = (int)(want->kind.size < 40 ? want->kind.size : 40);

	*out = (struct found_object){0};
	for (size_t i = 0; i < reach->count; i++) {
		struct installed_archive *a = reach->items[i].archive;
		bool reached = a->archive && reached_by(&reach->items[i], want->arch);

		/* try the keys in order until one is missing, as the packer gives them */
		for (unsigned number = 0; reached; number++) {
			KP_AUTO_FREE char *key =
				number == 0 ? xasprintf("%s#%u", want->name, want->index)
				: number == 1
					? xasprintf("%s@%.*s#%u", want->name, kind,
						    want->kind.data, want->index)
					: xasprintf("%s@%.*s.%u#%u", want->name, kind,
						    want->kind.data, number, want->index);
			struct kp_entry_info info;
			struct kp_meta meta;
			uint8_t hash[16];
			size_t entry;
			bool same;

			if (!kp_archive_find(a->archive, kp_span_str(key),
					     kp_span_str(want->arch), &entry)) {
				if (number)
					break;
				continue; /* the first object may have been replaced */
			}
			kp_archive_entry(a->archive, entry, &info);
			kp_archive_meta(a->archive, entry, &meta);
			same = !want->size || info.size == *want->size;
			if (same && want->xxh3 && meta.has_xxh3)
				same = !memcmp(meta.xxh3, want->xxh3, KP_RECIPE_HASH);
			else if (same && want->xxh3)
				/* what cannot be decoded may be it: the caller reports it */
				same = installed_decode(a, entry, hash, NULL) ||
				       !memcmp(hash, want->xxh3, KP_RECIPE_HASH);
			if (same || !out->archive)
				*out = (struct found_object){a, entry, !same};
			if (same)
				return;
		}
	}
}

/* --- decoding --------------------------------------------------------------------- */

bool installed_was_decoded(const struct installed_archive *a, size_t entry)
{
	struct kp_entry_info info;

	kp_archive_entry(a->archive, entry, &info);
	return a->decoded && a->decoded[info.ordinal].state != UNKNOWN;
}

kpack_error_t installed_decode(struct installed_archive *a, size_t entry,
			       uint8_t hash[16], struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct installed_decoded *d;
	struct kp_hash decoded;
	struct kp_entry_info info;
	struct kp_meta meta;

	if (!a->decoded)
		a->decoded = calloc((size_t)kp_archive_ordinal_count(a->archive) + 1,
				    sizeof(*a->decoded));
	if (!a->decoded)
		return kp_fail_memory(why, kp_archive_ordinal_count(a->archive),
				      "the objects of an archive");
	kp_archive_entry(a->archive, entry, &info);
	kp_archive_meta(a->archive, entry, &meta);
	d = &a->decoded[info.ordinal];
	if (d->state == UNKNOWN || d->size != info.size || d->chunk != meta.chunk) {
		bool bad = content_hash_decoded(a->archive, entry, &decoded, &fault);

		memcpy(d->hash, decoded.bytes, sizeof(d->hash));
		d->state = bad ? BAD : GOOD;
		d->size = info.size;
		d->chunk = meta.chunk;
		free(d->why);
		d->why = bad ? xmalloc(sizeof(*d->why)) : NULL;
		if (bad)
			*d->why = fault;
	}
	if (d->state == GOOD && meta.has_xxh3 &&
	    memcmp(meta.xxh3, d->hash, sizeof(d->hash)) != 0)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "the content does not match its xxh3");
	if (d->state == GOOD && hash)
		memcpy(hash, d->hash, sizeof(d->hash));
	if (d->state == BAD && why)
		*why = *d->why;
	return d->state == BAD ? d->why->code : KPACK_SUCCESS;
}

/* --- architectures of a binary --------------------------------------------------------- */

static void add_arch(struct built_arches *a, size_t *cap, const char *arch)
{
	xgrow(&a->items, a->count, cap, sizeof(*a->items));
	a->items[a->count++] = arch;
}

static void sort_arches(struct built_arches *a)
{
	size_t n = 0;

	kp_sort(a->items, a->count, KP_AS_TEXT);
	for (size_t i = 0; i < a->count; i++)
		if (n == 0 || strcmp(a->items[n - 1], a->items[i]) != 0)
			a->items[n++] = a->items[i];
	a->count = n;
}

void built_arches_find(const struct binary *b, const struct reach *reach,
		       struct built_arches *a)
{
	struct built_arches layout = {0};
	size_t cap = 0, layout_cap = 0, n = 0, number;

	for (size_t i = 0; b->has_layout && i < b->layout.n_images; i++)
		if (!b->layout.images[i].host) {
			add_arch(&layout, &layout_cap, b->layout.images[i].arch);
			add_arch(a, &cap, b->layout.images[i].arch);
		}
	sort_arches(&layout);
	for (size_t i = 0; i < reach->count; i++) {
		const struct reached *r = &reach->items[i];
		const struct kpack_archive *archive = r->archive->archive;

		for (size_t k = 0; archive && k < kp_archive_arch_count(archive); k++) {
			const char *arch = kp_archive_arch(archive, k);

			/* that of database files is for no particular GPU */
			if (strcmp(arch, KP_ARCH_GENERIC) != 0 && reached_by(r, arch))
				add_arch(a, &cap, arch);
		}
	}
	sort_arches(a);
	a->installed = xcalloc(a->count, sizeof(*a->installed));
	a->in_layout = xcalloc(a->count, sizeof(*a->in_layout));
	for (size_t i = 0; i < a->count; i++) {
		struct wanted_object want = {.name = b->marker.kernel_name,
					     .arch = a->items[i],
					     .kind = kp_span_str("co")};
		bool known = built_arches_number(&layout, want.arch, &number);
		struct found_object found = {0};

		/* further architectures may belong to other binaries in the archives */
		for (size_t k = 0; !known && k < b->fat.host.n_wrappers && !found.archive;
		     k++) {
			want.index = binary_index(b, k);
			installed_find(reach, &want, &found);
		}
		if (!known && !found.archive)
			continue;
		a->items[n] = want.arch;
		a->in_layout[n] = known;
		for (size_t k = 0; k < reach->count && !a->installed[n]; k++) {
			const struct reached *r = &reach->items[k];

			a->installed[n] = r->archive->archive &&
					  reached_by(r, want.arch) &&
					  declares_arch(r->archive->archive, want.arch);
		}
		n++;
	}
	a->count = n;
	free(layout.items);
}

void built_arches_fini(struct built_arches *a)
{
	free(a->items);
	free(a->installed);
	free(a->in_layout);
}

bool built_arches_number(const struct built_arches *a, const char *arch, size_t *number)
{
	const char *const *found = kp_find(a->items, a->count, &arch, KP_AS_TEXT);

	if (found)
		*number = (size_t)(found - a->items);
	return found;
}
