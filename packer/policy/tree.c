/* SPDX-License-Identifier: MIT */
#include "tree.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "gpu_list.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

/* --- files that were changed --------------------------------------------------------- */

static char *path_of(const struct policy_tree *t, const char *relative)
{
	const char *tree = t->policy->tree;

	return xasprintf("%s/%s", strcmp(tree, "/") ? tree : "", relative);
}

/*
 * Whether the directory that had PATH is gone, and the one around it: a package has been
 * removed.  kpack thin itself removes directories that it empties.
 */
static bool package_is_gone(const char *path)
{
	char *dir = xstrdup(path);
	bool gone = true;

	for (int i = 0; i < 2 && gone; i++) {
		char *slash = strrchr(dir, '/');
		struct stat st;

		if (slash)
			*slash = '\0';
		gone = slash && *dir && below_lstat(dir, &st) < 0;
	}
	free(dir);
	return gone;
}

/* Whether ST is F's file as kpack left it. */
static bool is_ours(const struct state_file *f, const struct stat *st)
{
	bool same_time =
		st->st_mtim.tv_sec == f->seconds && st->st_mtim.tv_nsec == f->nanoseconds;

	if (f->planned) /* changing a file keeps its time, and makes it smaller */
		return same_time && (uint64_t)st->st_size < f->before;
	return same_time && (uint64_t)st->st_size == f->after && st->st_ino == f->ino;
}

/* Whether F still describes the file; a plan that was carried out becomes a fact. */
static bool settle_file(struct policy_tree *t, struct state_file *f)
{
	bool gone = f->kind == STATE_REMOVED || f->kind == STATE_PACKED;
	char *path = path_of(t, f->path);
	bool exists, stays;
	struct stat st;

	t->interrupted |= f->planned;
	/* what a mount covers cannot be seen, nor be changed by packages */
	if (mount_table_covers(&t->mounts, path)) {
		free(path);
		return true;
	}
	exists = below_lstat(path, &st) == 0;
	stays = gone ? !exists && !package_is_gone(path)
		     : exists && S_ISREG(st.st_mode) && is_ours(f, &st);
	free(path);
	if (stays && f->planned && !gone) {
		f->after = (uint64_t)st.st_size;
		f->ino = st.st_ino;
	}
	f->planned &= !stays;
	return stays;
}

static void settle_files(struct policy_tree *t)
{
	for (size_t i = 0; i < t->state.n_files; i++) {
		struct state_file *f = &t->state.files[i];

		if (!settle_file(t, f)) {
			free(f->path);
			f->path = NULL;
			t->lost = true;
		}
	}
	state_drop_files(&t->state);
}

/* --- opening ------------------------------------------------------------------------- */

static void read_state(struct policy_tree *t)
{
	struct kpackx_error why = {0};
	kpack_error_t err = state_read(t->state_path, &t->state, &why);

	if (!err && strcmp(t->state.tree ? t->state.tree : "", t->policy->tree) == 0)
		return;
	if (!err) {
		report_error(
			t->state_path,
			"note: the state is that of another tree, and is replaced: all "
			"files are looked at");
	} else if (err != KPACK_ERROR_FILE_NOT_FOUND) {
		report_error(t->state_path,
			     "note: %s: all files are looked at again, and what was "
			     "changed before is not known any more",
			     why.text);
	}
	state_fini(&t->state);
	t->state.tree = xstrdup(t->policy->tree);
	t->state.forgotten = err && err != KPACK_ERROR_FILE_NOT_FOUND;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static bool find_gpus(struct policy_tree *t, const char *topology)
{
	struct kpackx_error why = {0};

	if (gpu_list_make(t->policy->arch, topology, t->state.arch, &t->arch, &t->gone,
			  &why)) {
		report_why(t->policy->name, &why);
		return false;
	}
	t->anew = !same_text(t->arch, t->state.arch) ||
		  !same_text(t->state.action, policy_action_name(t->policy->action)) ||
		  t->state.strip != t->policy->strip_debug;
	if (t->anew) {
		t->state.n_seen = 0;
		t->state.sure = false;
	}
	return true;
}

static bool find_mounts(struct policy_tree *t)
{
	struct kpackx_error why = {0};

	mount_table_fini(&t->mounts);
	if (!mount_table_find(t->policy->tree, &t->mounts, &why))
		return true;
	report_why(t->policy->tree, &why);
	return false;
}

bool policy_tree_look(struct policy_tree *t)
{
	look_fini(&t->look);
	if (!find_mounts(t))
		return false;
	settle_files(t);
	look_at(t->policy->tree, &t->state, &t->mounts, &t->look);
	return !t->look.failed;
}

bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places)
{
	const char *states = places->states ? places->states : STATE_DIR;
	struct kpackx_error why = {0};

	*t = (struct policy_tree){.policy = p};
	t->state_path = xasprintf("%s/%s.state", states, p->name);
	if (below_root(p->tree, &why)) {
		report_error(p->name, "tree=%s: %s", p->tree, why.text);
		return false;
	}
	read_state(t);
	return find_gpus(t, places->topology) && find_mounts(t);
}

void policy_tree_fini(struct policy_tree *t)
{
	free(t->state_path);
	free(t->arch);
	free(t->gone);
	look_fini(&t->look);
	mount_table_fini(&t->mounts);
	state_fini(&t->state);
}

/*
 * Whether files are gone, whose entries archives may still have.  Files that an overlay
 * covers were not looked at.
 */
static bool has_lost_files(const struct policy_tree *t)
{
	bool covered = false;

	for (size_t i = 0; i < t->mounts.count; i++)
		covered |= t->mounts.items[i].overlay;
	return t->lost ||
	       (!covered && t->look.n_hashes - t->look.n_new < t->state.n_seen);
}

bool policy_tree_needs_work(const struct policy_tree *t)
{
	return t->anew || t->interrupted || t->look.n_new ||
	       (t->policy->action == POLICY_PACK && has_lost_files(t));
}

bool policy_tree_is_mounted(const struct policy_tree *t)
{
	bool overlay = t->policy->mount == POLICY_OVERLAY;

	for (size_t i = 0; i < t->state.n_places; i++) {
		const struct mount_now *m =
			mount_table_get(&t->mounts, t->state.places[i]);

		if (!m || m->overlay != overlay)
			return false;
	}
	return t->state.n_places;
}

bool policy_tree_is_packed(const struct policy_tree *t)
{
	bool packed = same_text(t->state.action, policy_action_name(POLICY_PACK));

	for (size_t i = 0; i < t->state.n_files; i++)
		if (t->state.files[i].kind == STATE_PACKED ||
		    (packed && t->state.files[i].kind != STATE_REMOVED))
			return true;
	return false;
}

/* --- what was changed ---------------------------------------------------------------- */

static bool is_asked(const struct policy_tree *t, enum policy_files which,
		     const struct state_file *f)
{
	return which == POLICY_CHANGED || !gpu_list_covers(f->arch, t->arch);
}

size_t policy_tree_count(const struct policy_tree *t, enum policy_files which)
{
	size_t n = 0;

	for (size_t i = 0; i < t->state.n_files; i++)
		n += is_asked(t, which, &t->state.files[i]);
	return n;
}

void policy_tree_packages(const struct policy_tree *t, enum policy_files which,
			  struct owners *out)
{
	size_t n = 0;
	char **paths = xcalloc(t->state.n_files + 1, sizeof(*paths));

	for (size_t i = 0; i < t->state.n_files; i++)
		if (is_asked(t, which, &t->state.files[i]))
			paths[n++] = path_of(t, t->state.files[i].path);
	owners_find(NULL, (const char *const *)paths, n, out);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

char *policy_tree_lacking(const struct policy_tree *t)
{
	char *common = xstrdup(t->arch), *lacking = NULL, *rest, *gpu, *list;

	for (size_t i = 0; i < t->state.n_files; i++) {
		char *less = gpu_list_common(common, t->state.files[i].arch);

		free(common);
		common = less;
	}
	list = rest = xstrdup(t->arch);
	while ((gpu = strsep(&rest, ","))) {
		char *longer;

		if (gpu_list_has(common, gpu, strlen(gpu)))
			continue;
		longer = lacking ? xasprintf("%s,%s", lacking, gpu) : xstrdup(gpu);
		free(lacking);
		lacking = longer;
	}
	free(list);
	free(common);
	return lacking;
}

static uint64_t size_of_archives(const struct policy_tree *t)
{
	char *dir = path_of(t, KP_ARCHIVES_DIR);
	struct dirent **names;
	int n = below_scandir(dir, &names, NULL);
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", dir, names[i]->d_name);
		struct stat st;

		if (below_lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
		free(path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	free(dir);
	return sum;
}

struct policy_sums policy_tree_sums(const struct policy_tree *t)
{
	struct policy_sums s = {0};

	for (size_t i = 0; i < t->state.n_files; i++) {
		const struct state_file *f = &t->state.files[i];

		s.changed += f->kind == STATE_CHANGED || f->kind == STATE_LINK;
		s.removed += f->kind == STATE_REMOVED;
		s.packed += f->kind == STATE_PACKED;
		s.before += f->kind == STATE_LINK ? 0 : f->before;
		s.after += f->kind == STATE_LINK ? 0 : f->after;
	}
	if (t->policy->action == POLICY_PACK)
		s.archives = size_of_archives(t);
	return s;
}

uint64_t policy_sums_saved(const struct policy_sums *s)
{
	uint64_t left = s->after + s->archives;

	return s->before > left ? s->before - left : 0;
}
