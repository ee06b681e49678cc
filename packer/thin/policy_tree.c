/* SPDX-License-Identifier: MIT */
/*
 * A tree with a policy: what is in it now, compared with its state.  Nothing is read but
 * directories: a file is the same if its path, size, time and inode are.  The archives of the
 * tree, and what mounts cover, are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/archive/naming.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "policy.h"

char *policy_tree_path(const struct policy_tree *t, const char *relative)
{
	const char *tree = t->policy->tree;

	return xasprintf("%s/%s", strcmp(tree, "/") ? tree : "", relative);
}

/* --- lists of GPUs ------------------------------------------------------------------- */

/*
 * Lists are texts, because the state has them as such and commands take them as such; names are
 * written as kp_target_format does, so that they can be compared.
 */

/* Step to the next name of *LIST, on the heap; NULL: there is none. */
static char *next_gpu(const char **list)
{
	const char *name = *list;

	if (!name || !*name)
		return NULL;
	*list = strchrnul(name, ',');
	*list += **list == ',';
	return xstrndup(name, strcspn(name, ","));
}

static bool has_gpu(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; list && *list; list = strchrnul(list, ','), list += *list == ',')
		if (strncmp(list, name, n) == 0 && (list[n] == ',' || !list[n]))
			return true;
	return false;
}

bool gpu_list_covers(const char *a, const char *b)
{
	bool covers = true;
	char *gpu;

	while ((gpu = next_gpu(&b))) {
		covers &= has_gpu(a, gpu);
		free(gpu);
	}
	return covers;
}

/* Add NAME at the end of *LIST, unless it is there. */
static void gpu_list_add(char **list, const char *name)
{
	char *longer;

	if (has_gpu(*list, name))
		return;
	longer = *list ? xasprintf("%s,%s", *list, name) : xstrdup(name);
	free(*list);
	*list = longer;
}

/*
 * Find the GPUs of the policy; with "auto" also those that an earlier run found: the code of a
 * GPU that is missing now, because its driver failed or the card was taken out, stays.
 */
static kpack_error_t find_gpus(struct policy_tree *t, const char *topology,
			       struct kpackx_error *why)
{
	const struct state *s = &t->state;
	const char *earlier = s->n_gpus ? s->gpus[s->n_gpus - 1] : NULL;
	struct kp_choice choice = {0};
	struct kp_gpus gpus = {0};
	kpack_error_t err = kp_choice_add(&choice, t->policy->arch, why);
	char *gpu;

	if (!err && choice.find) {
		err = kp_gpus_read(topology, &gpus, why);
		for (size_t i = 0; i < gpus.faults.kept; i++)
			report_error(NULL, "%s", gpus.faults.items[i].text);
		if (err == KPACK_ERROR_FILE_NOT_FOUND)
			err = KPACK_SUCCESS; /* no driver: no GPU */
		if (!err)
			err = kp_choice_add_found(&choice, &gpus, why);
		kp_gpus_fini(&gpus);
	}
	if (!err && choice.all)
		gpu_list_add(&t->arch, "all");
	for (size_t i = 0; i < choice.count && !err && !choice.all; i++) {
		char text[KP_TARGET_TEXT_MAX];

		kp_target_format(&choice.gpus[i], text);
		gpu_list_add(&t->arch, text);
	}
	while (!err && choice.find && (gpu = next_gpu(&earlier))) {
		if (!has_gpu(t->arch, gpu))
			gpu_list_add(&t->gone, gpu);
		gpu_list_add(&t->arch, gpu);
		free(gpu);
	}
	kp_choice_fini(&choice);
	KP_TRY(err);
	return t->arch ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
				 "--arch auto: no GPU in %s: name the GPUs, as in --arch "
				 "gfx1100",
				 topology ? topology : KP_TOPOLOGY);
}

/* --- mounts -------------------------------------------------------------------------- */

static void forget_mounts(struct policy_tree *t)
{
	for (size_t i = 0; i < t->n_mounts; i++)
		free(t->mounts[i]);
	t->n_mounts = 0;
}

bool policy_tree_find_mounts(struct policy_tree *t)
{
	const char *tree = t->policy->tree;
	struct kp_mounts table;
	struct kp_mount m;
	bool fine;

	forget_mounts(t);
	errno = 0;
	kp_mounts_open(&table);
	while (kp_mounts_next(&table, &m)) {
		if (!kp_mount_is_kpackfs(&m) ||
		    (strcmp(tree, "/") != 0 &&
		     !kp_path_within(kp_span_str(m.path), tree)))
			continue;
		xgrow(&t->mounts, t->n_mounts, &t->mounts_cap, sizeof(*t->mounts));
		t->mounts[t->n_mounts++] = xstrdup(m.path);
	}
	fine = table.file && feof(table.file);
	if (!fine)
		report_error(tree, "cannot read /proc/self/mountinfo: %s",
			     strerror(errno));
	kp_mounts_close(&table);
	return fine;
}

/* What a mount covers cannot be seen, nor be changed by packages: it is as it was. */
static bool is_covered(const struct policy_tree *t, const char *relative)
{
	char *path = t->n_mounts ? policy_tree_path(t, relative) : NULL;
	bool covered = false;

	for (size_t i = 0; i < t->n_mounts; i++)
		covered |= kp_path_within(kp_span_str(path), t->mounts[i]);
	free(path);
	return covered;
}

/* --- files --------------------------------------------------------------------------- */

/*
 * Whether the directory that had PATH is gone, and the one around it: a package has been
 * removed.  kpack thin itself removes directories that it empties.
 */
static bool package_is_gone(const struct policy_tree *t, const char *relative)
{
	char *dir = policy_tree_path(t, relative), *slash;
	bool gone = true;
	struct stat st;

	for (int i = 0; i < 2 && gone && (slash = strrchr(dir, '/')) && slash != dir;
	     i++) {
		*slash = '\0';
		gone = below_lstat(dir, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
	}
	free(dir);
	return gone;
}

/*
 * List the regular files of the tree, as seen, by path.  Archives are left out: they change
 * whenever a command packs, and kpackfs notices by itself.  false: not all; reported.
 */
static bool list_files(const struct policy_tree *t, struct state_file **out, size_t *n)
{
	struct tree_list *list = tree_list_open(t->policy->tree);
	struct tree_item item;
	size_t cap = 0;
	bool fine = true;

	*out = NULL;
	*n = 0;
	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			fine = false;
		} else if (item.kind == TREE_DIR) {
			if ((item.level == 1 &&
			     strcmp(item.rest, KP_ARCHIVES_DIR) == 0) ||
			    (item.level && is_covered(t, item.rest)))
				tree_list_skip(list);
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode)) {
			xgrow(out, *n, &cap, sizeof(**out));
			(*out)[(*n)++] = (struct state_file){
				.path = xstrdup(item.rest),
				.size = (uint64_t)item.st.st_size,
				.mtime = (uint64_t)item.st.st_mtim.tv_sec * 1000000000 +
					 (uint64_t)item.st.st_mtim.tv_nsec,
				.ino = item.st.st_ino};
		}
	}
	tree_list_close(list);
	if (*n)
		kp_sort(*out, *n, KP_BY_TEXT(struct state_file, path));
	for (size_t i = 0; i < *n && !fine; i++)
		free((*out)[i].path);
	if (!fine)
		free(*out);
	return fine;
}

/*
 * The file F of the state is not there: others removed it, or WORK did.  What was removed or
 * packed stays known until its package goes.  false: it is not known any more.
 */
static bool settle_missing(struct policy_tree *t, struct state_file *f,
			   enum state_kind work)
{
	bool was_there = f->kind == STATE_SEEN || f->kind == STATE_CHANGED;

	if (is_covered(t, f->path) ||
	    (!was_there && (work != STATE_SEEN || !package_is_gone(t, f->path))))
		return true;
	t->n_gone++;
	if (work == STATE_SEEN)
		return false;
	if (f->kind == STATE_SEEN)
		f->before = f->size;
	f->kind = work;
	f->size = f->mtime = f->ino = 0;
	f->gpus = t->state.n_gpus - 1;
	f->fresh = true;
	return true;
}

/*
 * The file NOW is there; it was OLD before (NULL: it was not there).  A command only makes files
 * smaller: what else came meanwhile is the work of others, and is left out of the state, so that
 * the next run takes it for new.  false: it is left out.
 */
static bool settle_file(struct policy_tree *t, struct state_file *now,
			const struct state_file *old, enum state_kind work)
{
	bool same = old && now->size == old->size && now->mtime == old->mtime &&
		    now->ino == old->ino;

	now->fresh = !same || old->fresh;
	if (same) {
		now->kind = old->kind;
		now->before = old->before;
		now->gpus = old->gpus;
		return true;
	}
	t->n_new++;
	if (work == STATE_SEEN)
		return true;
	if (!old || now->size > old->size)
		return false;
	now->kind = STATE_CHANGED;
	now->before = old->kind == STATE_SEEN ? old->size : old->before;
	now->gpus = t->state.n_gpus - 1;
	return true;
}

bool policy_tree_look(struct policy_tree *t, enum state_kind work)
{
	struct state *s = &t->state;
	struct state_file *now, *all;
	size_t n, n_all = 0, i = 0, k = 0;

	if (!policy_tree_find_mounts(t))
		return false;
	if (!list_files(t, &now, &n))
		return false; /* what cannot be looked at is not gone */
	if (work == STATE_SEEN)
		t->n_new = t->n_gone = 0;
	all = xcalloc(n + s->n_files + 1, sizeof(*all));
	while (i < s->n_files || k < n) {
		struct state_file *old = i < s->n_files ? &s->files[i] : NULL;
		int order = !old ? 1 : k == n ? -1 : strcmp(old->path, now[k].path);
		bool stays = order < 0
				     ? settle_missing(t, old, work)
				     : settle_file(t, &now[k], order ? NULL : old, work);

		if (stays)
			all[n_all++] = order < 0 ? *old : now[k];
		else
			free(order < 0 ? old->path : now[k].path);
		if (order == 0)
			free(old->path);
		i += order <= 0;
		k += order >= 0;
	}
	free(now);
	free(s->files);
	s->files = all;
	s->n_files = n_all;
	s->files_cap = n_all;
	return true;
}

/* --- opening ------------------------------------------------------------------------- */

bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places)
{
	const char *states = places->states ? places->states : STATE_DIR;
	struct state *s = &t->state;
	struct kpackx_error why = {0};
	kpack_error_t err;
	struct stat st;

	*t = (struct policy_tree){.policy = p};
	t->state_path = xasprintf("%s/%s.state", states, p->name);
	t->missing = below_stat(p->tree, &st) < 0 && errno == ENOENT;
	if (t->missing) {
		t->arch = xstrdup(p->arch);
		return true;
	}
	if (below_root(p->tree, &why)) {
		report_error(p->name, "%s: %s", p->tree, why.text);
		return false;
	}
	err = state_read(t->state_path, s, &why);
	/* a link that leads to another version of a tree now makes it another tree */
	if (err || strcmp(s->tree, p->tree) != 0) {
		bool none = err == KPACK_ERROR_FILE_NOT_FOUND;

		if (!none)
			report_error(t->state_path,
				     "note: %s: all files are looked at again%s",
				     err ? why.text : "the state is that of another tree",
				     err ? ", and what was changed before is not known "
					   "any more"
					 : "");
		state_fini(s);
		s->tree = xstrdup(p->tree);
		s->forgotten = err && !none;
	}
	if (find_gpus(t, places->topology, &why)) {
		report_why(p->name, &why);
		return false;
	}
	t->anew = s->n_gpus == 0 || !kp_hash_is(&s->policy, p->hash.bytes) ||
		  !gpu_list_covers(t->arch, s->gpus[s->n_gpus - 1]) ||
		  !gpu_list_covers(s->gpus[s->n_gpus - 1], t->arch);
	return true;
}

void policy_tree_fini(struct policy_tree *t)
{
	forget_mounts(t);
	free(t->mounts);
	free(t->state_path);
	free(t->arch);
	free(t->gone);
	state_fini(&t->state);
}

/* --- what was found ------------------------------------------------------------------ */

bool policy_tree_needs_work(const struct policy_tree *t)
{
	/* archives may have what only files needed that are gone */
	return t->anew || t->n_new || (t->state.packed && t->n_gone);
}

uint64_t policy_tree_archives(const struct policy_tree *t, size_t *n)
{
	char *dir = policy_tree_path(t, KP_ARCHIVES_DIR), **paths;
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

/*
 * Which code a file lost is not known, only for which GPUs it was done: those wanted since may
 * lack something until the file comes again with its package.
 */
bool policy_tree_lacks(const struct policy_tree *t, const struct state_file *f)
{
	return f->kind != STATE_SEEN && !has_gpu(t->state.gpus[f->gpus], "all") &&
	       !gpu_list_covers(t->state.gpus[f->gpus], t->arch);
}

char *policy_tree_lacking(const struct policy_tree *t)
{
	char *lacking = NULL, *gpu;

	for (size_t i = 0; i < t->state.n_files; i++) {
		const struct state_file *f = &t->state.files[i];
		const char *list = t->arch;

		if (!policy_tree_lacks(t, f))
			continue;
		while ((gpu = next_gpu(&list))) {
			if (!has_gpu(t->state.gpus[f->gpus], gpu))
				gpu_list_add(&lacking, gpu);
			free(gpu);
		}
	}
	return lacking;
}

struct saving {
	uint64_t ino, bytes;
};

struct policy_sums policy_tree_sums(const struct policy_tree *t)
{
	const struct state *s = &t->state;
	struct saving *savings = xcalloc(s->n_files + 1, sizeof(*savings));
	uint64_t saved = 0, archives;
	struct policy_sums sums = {0};
	size_t n = 0, n_archives;

	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *f = &s->files[i];

		sums.n[f->kind]++;
		sums.fresh[f->kind] += f->fresh;
		if (f->kind != STATE_SEEN)
			savings[n++] = (struct saving){f->ino, f->before - f->size};
	}
	/* a file with several names is freed once */
	if (n)
		kp_sort(savings, n, KP_BY_NUMBER(struct saving, ino));
	for (size_t i = 0; i < n; i++)
		if (!savings[i].ino || i == 0 || savings[i - 1].ino != savings[i].ino)
			saved += savings[i].bytes;
	free(savings);
	archives = s->packed ? policy_tree_archives(t, &n_archives) : 0;
	sums.saved = saved > archives ? saved - archives : 0;
	return sums;
}
