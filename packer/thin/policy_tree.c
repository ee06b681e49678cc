/* SPDX-License-Identifier: MIT */
#include "policy_tree.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

char *policy_tree_path(const struct policy_tree *t, const char *relative, size_t n)
{
	const char *tree = t->policy->tree;

	if (n == 0)
		return xstrdup(tree);
	return xasprintf("%s/%.*s", strcmp(tree, "/") ? tree : "", (int)n, relative);
}

/* --- files that were changed --------------------------------------------------------- */

enum found { FOUND, FOUND_NOTHING, FOUND_ERROR };

/* Look at PATH; an error is reported.  A file behind a new link is not in the tree. */
static enum found find_file(const char *path, struct stat *st)
{
	if (below_lstat(path, st) == 0)
		return FOUND;
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
		return FOUND_NOTHING;
	report_error(path, "cannot look at it: %s", strerror(errno));
	return FOUND_ERROR;
}

/*
 * Whether the directory that had PATH is gone, and the one around it: a package has been
 * removed.  kpack thin itself removes directories that it empties.  FINE becomes false if
 * that cannot be seen.
 */
static bool package_is_gone(const char *path, bool *fine)
{
	char *dir = xstrdup(path);
	bool gone = true;

	for (int i = 0; i < 2 && gone; i++) {
		enum found found = FOUND;
		char *slash = strrchr(dir, '/');
		struct stat st;

		if (slash)
			*slash = '\0';
		if (slash && *dir)
			found = find_file(dir, &st);
		gone = found == FOUND_NOTHING;
		*fine &= found != FOUND_ERROR;
	}
	free(dir);
	return gone;
}

/* Whether ST is F's file as kpack left it. */
static bool is_ours(const struct state_file *f, const struct stat *st)
{
	bool same_time = state_time(&st->st_mtim) == f->mtime;

	if (f->planned) /* changing a file keeps its time, and makes it smaller */
		return same_time && (uint64_t)st->st_size < f->before;
	return same_time && (uint64_t)st->st_size == f->after && st->st_ino == f->ino;
}

/*
 * Whether F still describes the file; a plan that was carried out becomes a fact.  FINE
 * becomes false, and F stays, if the file cannot be looked at.
 */
static bool settle_file(struct policy_tree *t, struct state_file *f, bool *fine)
{
	bool gone = f->kind == STATE_REMOVED || f->kind == STATE_PACKED;
	char *path = policy_tree_path(t, f->path, strlen(f->path));
	bool stays = true;
	enum found found;
	struct stat st;

	t->interrupted |= f->planned;
	/* what a mount covers cannot be seen, nor be changed by packages */
	if (!mount_table_covers(&t->mounts, path)) {
		found = find_file(path, &st);
		*fine &= found != FOUND_ERROR;
		stays = gone ? found == FOUND_NOTHING && !package_is_gone(path, fine)
			     : found == FOUND && S_ISREG(st.st_mode) && is_ours(f, &st);
		if (!*fine)
			stays = true;
		else if (stays && f->planned && !gone) {
			f->after = (uint64_t)st.st_size;
			f->ino = st.st_ino;
		}
		f->planned &= !stays || !*fine;
	}
	free(path);
	return stays;
}

static bool settle_files(struct policy_tree *t)
{
	bool fine = true;

	for (size_t i = 0; i < t->state.n_files && fine; i++) {
		struct state_file *f = &t->state.files[i];

		if (settle_file(t, f, &fine))
			continue;
		free(f->path);
		f->path = NULL;
		t->lost = true;
	}
	state_drop_files(&t->state);
	return fine;
}

/* --- all files ----------------------------------------------------------------------- */

/*
 * A file that is written again within one tick of the kernel's clock keeps its times.  File
 * systems without fractions of a second have ticks of up to two.
 */
static const uint64_t tick = 20000000, long_tick = 2000000000;

struct kp_hash policy_tree_hash(const char *path, const struct file_identity *id)
{
	struct kp_hash hash;
	char *text = xasprintf("%ju %ju %ju %ju %u %s", (uintmax_t)id->ino,
			       (uintmax_t)id->size, (uintmax_t)state_time(&id->mtime),
			       (uintmax_t)state_time(&id->ctime), id->mode, path);

	hash = kp_hash_of(text, strlen(text));
	free(text);
	return hash;
}

static bool has_seen(const struct policy_tree *t, const struct kp_hash *hash)
{
	return state_find_hash(hash, t->state.seen, t->state.n_seen, sizeof(*hash));
}

static void look_at_file(struct policy_tree *t, const struct tree_item *item,
			 uint64_t start)
{
	const struct timespec *ctime = &item->st.st_ctim;
	uint64_t margin = ctime->tv_nsec ? tick : long_tick;
	struct look *look = &t->look;
	struct file_identity id = file_identity_of(&item->st);
	struct seen_file f = {.hash = policy_tree_hash(item->rest, &id)};

	bool seen = has_seen(t, &f.hash);

	f.sure = seen || state_time(ctime) + margin <= start;
	xgrow(&look->items, look->count, &look->cap, sizeof(f));
	look->items[look->count++] = f;
	look->n_new += !seen;
}

/* Whether ST is of a file system that is mounted in the tree. */
static bool is_mount(const struct policy_tree *t, const struct stat *st)
{
	for (size_t i = 0; i < t->mounts.count; i++)
		if (t->mounts.items[i].device == st->st_dev)
			return true;
	return false;
}

bool policy_tree_look(struct policy_tree *t)
{
	struct tree_list *list;
	struct timespec now;
	struct tree_item item;
	bool fine = true;

	free(t->look.items);
	t->look = (struct look){0};
	if (!mount_table_find(t->policy->tree, &t->mounts))
		return false;
	if (!settle_files(t))
		return false;
	if (t->missing)
		return true;
	clock_gettime(CLOCK_REALTIME, &now);
	list = tree_list_open(t->policy->tree);
	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			fine = false;
		} else if (item.kind == TREE_DIR && item.level > 0 &&
			   is_mount(t, &item.st)) {
			tree_list_skip(list);
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode)) {
			look_at_file(t, &item, state_time(&now));
		}
	}
	tree_list_close(list);
	state_sort_hashes(t->look.items, t->look.count, sizeof(*t->look.items));
	return fine;
}

/* --- opening ------------------------------------------------------------------------- */

static void read_state(struct policy_tree *t)
{
	struct kpackx_error why = {0};
	kpack_error_t err = state_read(t->state_path, &t->state, &why);
	bool none = err == KPACK_ERROR_FILE_NOT_FOUND;

	if (!err && strcmp(t->state.tree, t->policy->tree) == 0)
		return;
	if (!err)
		report_error(
			t->state_path,
			"note: the state is that of another tree, and is replaced: all "
			"files are looked at");
	else if (!none)
		report_error(t->state_path,
			     "note: %s: all files are looked at again, and what was "
			     "changed before is not known any more",
			     why.text);
	state_fini(&t->state);
	t->state.tree = xstrdup(t->policy->tree);
	t->state.forgotten = err && !none;
}

/* Add what the driver reports to the GPUs. */
static kpack_error_t add_found(struct kp_choice *choice, const char *topology,
			       struct kpackx_error *why)
{
	struct kp_gpus gpus;
	kpack_error_t err = kp_gpus_read(topology, &gpus, why);

	for (size_t i = 0; i < gpus.faults.kept; i++)
		report_error(NULL, "%s", gpus.faults.items[i].text);
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		err = KPACK_SUCCESS; /* no driver: no GPU */
	if (!err)
		err = kp_choice_add_found(choice, &gpus, why);
	kp_gpus_fini(&gpus);
	return err;
}

/* The GPUs of the policy; with "auto" also those that are only missing now. */
static kpack_error_t find_gpus(struct policy_tree *t, const char *topology,
			       struct kpackx_error *why)
{
	const char *earlier = t->state.arch;
	struct kp_choice choice = {0};
	kpack_error_t err = kp_choice_add(&choice, t->policy->arch, why);
	char *gpu;

	if (!err && choice.find)
		err = add_found(&choice, topology, why);
	for (size_t i = 0; i < choice.count && !err; i++) {
		char text[KP_TARGET_TEXT_MAX];

		kp_target_format(&choice.gpus[i], text);
		list_add(&t->arch, text);
	}
	while (!err && choice.find && (gpu = list_next(&earlier))) {
		if (!list_has(t->arch, gpu))
			list_add(&t->gone, gpu);
		list_add(&t->arch, gpu);
		free(gpu);
	}
	kp_choice_fini(&choice);
	KP_TRY(err);
	if (!t->arch)
		return kp_fail(
			why, KPACK_ERROR_ARCH_NOT_FOUND,
			"arch=auto: no GPU in %s: name the GPUs, as in arch=gfx1100",
			topology ? topology : KP_TOPOLOGY);
	return arch_filter_add(&t->filter, t->arch, why);
}

/* Whether the list A has all GPUs of B. */
static bool list_covers(const char *a, const char *b)
{
	bool covers = true;
	char *gpu;

	while ((gpu = list_next(&b))) {
		covers &= list_has(a, gpu);
		free(gpu);
	}
	return covers;
}

bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places)
{
	const char *states = places->states ? places->states : STATE_DIR;
	struct kpackx_error why = {0};
	struct stat st;

	*t = (struct policy_tree){.policy = p};
	t->state_path = xasprintf("%s/%s.state", states, p->name);
	t->missing = below_stat(p->tree, &st) < 0 && errno == ENOENT;
	if (!t->missing && below_root(p->tree, &why)) {
		report_error(p->name, "tree=%s: %s", p->tree, why.text);
		return false;
	}
	if (t->missing) {
		t->arch = xstrdup(p->arch);
		return true;
	}
	read_state(t);
	if (find_gpus(t, places->topology, &why)) {
		report_why(p->name, &why);
		return false;
	}
	t->anew = !t->state.arch || !list_covers(t->arch, t->state.arch) ||
		  !list_covers(t->state.arch, t->arch) || t->state.action != p->action ||
		  t->state.strip != p->strip_debug;
	if (t->anew) {
		t->state.n_seen = 0;
		t->state.sure = false;
	}
	return mount_table_find(p->tree, &t->mounts);
}

void policy_tree_fini(struct policy_tree *t)
{
	free(t->state_path);
	free(t->arch);
	free(t->gone);
	free(t->look.items);
	free(t->told);
	arch_filter_fini(&t->filter);
	mount_table_fini(&t->mounts);
	state_fini(&t->state);
}

/* --- what was found ------------------------------------------------------------------ */

bool policy_tree_needs_work(const struct policy_tree *t)
{
	/* files are gone, whose entries archives may have; an overlay covers files */
	bool lost = t->lost || (!mount_table_count(&t->mounts, true) &&
				t->look.count - t->look.n_new < t->state.n_seen);

	return t->anew || t->interrupted || t->look.n_new || (t->state.packed && lost);
}

enum policy_mount policy_tree_mount(const struct policy_tree *t)
{
	return t->policy->action == POLICY_THIN && policy_tree_is_packed(t)
		       ? t->state.mount
		       : t->policy->mount;
}

bool policy_tree_is_mounted(const struct policy_tree *t)
{
	bool overlay = policy_tree_mount(t) == POLICY_OVERLAY;

	for (size_t i = 0; i < t->state.n_places; i++) {
		const struct mount_now *m =
			mount_table_get(&t->mounts, t->state.places[i]);

		if (!m || m->overlay != overlay)
			return false;
	}
	return t->state.n_places;
}

uint64_t policy_tree_archives(const struct policy_tree *t, size_t *n)
{
	char *dir = policy_tree_path(t, KP_ARCHIVES_DIR, strlen(KP_ARCHIVES_DIR)),
	     **paths;
	uint64_t sum = 0;
	struct stat st;

	*n = 0;
	if (!below_archives_find(dir, &paths, n, NULL)) {
		for (size_t i = 0; i < *n; i++) {
			if (below_lstat(paths[i], &st) == 0)
				sum += (uint64_t)st.st_size;
			free(paths[i]);
		}
		free(paths);
	}
	free(dir);
	return sum;
}

bool policy_tree_is_packed(const struct policy_tree *t)
{
	size_t n = 0;

	if (t->state.packed)
		policy_tree_archives(t, &n);
	return n;
}

bool policy_file_any(const struct policy_tree *t, const struct state_file *f)
{
	(void)t;
	return f;
}

bool policy_file_packed(const struct policy_tree *t, const struct state_file *f)
{
	(void)t;
	return f->kind == STATE_CONVERTED || f->kind == STATE_PACKED;
}

bool policy_tree_loads(const struct policy_tree *t, size_t gpu, const char *list)
{
	struct kp_target code;
	bool loads = false;
	char *name;

	while (!loads && (name = list_next(&list))) {
		loads = !kp_target_parse(kp_span_str(name), &code, NULL) &&
			kp_choice_takes(&t->filter.chosen, gpu, &code);
		free(name);
	}
	return loads;
}

bool policy_file_lacks(const struct policy_tree *t, const struct state_file *f)
{
	for (size_t i = 0; i < t->filter.chosen.count; i++)
		if (policy_tree_loads(t, i, f->lost))
			return true;
	return false;
}

char *policy_tree_lacking(const struct policy_tree *t)
{
	char *lacking = NULL;

	for (size_t i = 0; i < t->filter.chosen.count; i++) {
		char text[KP_TARGET_TEXT_MAX];
		size_t k = 0;

		while (k < t->state.n_files &&
		       !policy_tree_loads(t, i, t->state.files[k].lost))
			k++;
		kp_target_format(&t->filter.chosen.gpus[i], text);
		if (k < t->state.n_files)
			list_add(&lacking, text);
	}
	return lacking;
}

size_t policy_tree_packages(const struct policy_tree *t, policy_file_test *test,
			    struct owners *out)
{
	char **paths = xcalloc(t->state.n_files + 1, sizeof(*paths));
	size_t n = 0;

	for (size_t i = 0; i < t->state.n_files; i++) {
		const struct state_file *f = &t->state.files[i];

		if (test(t, f))
			paths[n++] = policy_tree_path(t, f->path, strlen(f->path));
	}
	owners_find(NULL, (const char *const *)paths, n, out);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	return n;
}

struct policy_sums policy_tree_sums(const struct policy_tree *t)
{
	struct policy_sums s = {0};
	uint64_t before = 0, after = 0;
	size_t n;

	for (size_t i = 0; i < t->state.n_files; i++) {
		const struct state_file *f = &t->state.files[i];

		s.changed += f->kind == STATE_THINNED || f->kind == STATE_CONVERTED;
		s.removed += f->kind == STATE_REMOVED;
		s.packed += f->kind == STATE_PACKED;
		s.fresh[f->kind] += f->fresh;
		before += f->link ? 0 : f->before;
		after += f->link ? 0 : f->after;
	}
	if (t->state.packed)
		after += policy_tree_archives(t, &n) - t->pruned;
	s.saved = before > after ? before - after : 0;
	return s;
}
