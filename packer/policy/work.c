/* SPDX-License-Identifier: MIT */
#include "work.h"
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "gpu_list.h"
#include "core/base/path.h"
#include "packer/base/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/pack/run.h"
#include "packer/prune/prune.h"
#include "packer/thin/thin.h"
#include "parts.h"

struct work {
	struct policy_tree *tree;
	bool dry;
};

/* --- what is changed ----------------------------------------------------------------- */

/* A path of an entry that is changed. */
struct change {
	const struct scan_entry *entry;
	uint64_t before, after;
	enum state_kind kind;
	bool planned, thinned;
};

static void put_change(struct work *w, const struct change *c)
{
	struct state *s = &w->tree->state;
	const struct scan_entry *e = c->entry;
	const struct state_file *old = state_find_file(s, e->relative);
	struct state_file f = {
		.path = xstrdup(e->relative),
		.kind = c->kind,
		.planned = c->planned,
		.thinned = c->thinned,
		.before = c->before,
		.after = c->after,
		.seconds = e->id.mtime.tv_sec,
		.nanoseconds = e->id.mtime.tv_nsec,
	};
	struct stat st;

	if (!c->planned && (c->kind == STATE_CHANGED || c->kind == STATE_LINK) &&
	    !w->dry && below_lstat(e->path, &st) == 0) {
		f.ino = st.st_ino;
		f.after = (uint64_t)st.st_size;
		f.seconds = st.st_mtim.tv_sec;
		f.nanoseconds = st.st_mtim.tv_nsec;
	}
	/* a file that was changed before has lost more than it loses now */
	if (old && old->before > f.before)
		f.before = old->before;
	f.arch = old ? gpu_list_common(old->arch, w->tree->arch) : xstrdup(w->tree->arch);
	if (f.after > f.before)
		f.before = f.after;
	state_put_file(s, &f);
}

/* The same for all paths of the file of ENTRY: its bytes count once. */
static void put_links(struct work *w, const struct scan *scan, size_t entry,
		      struct change c)
{
	size_t n, *links = scan_links(scan, entry, &n);

	for (size_t i = 0; i < n; i++) {
		c.entry = &scan->entries[links[i]];
		if (i && c.kind == STATE_CHANGED)
			c.kind = STATE_LINK;
		put_change(w, &c);
	}
	free(links);
}

/* From now on the state is of this tree, policy and list of GPUs. */
static void note_policy(struct policy_tree *t)
{
	free(t->state.tree);
	free(t->state.arch);
	t->state.tree = xstrdup(t->policy->tree);
	t->state.arch = xstrdup(t->arch);
	t->state.action = policy_action_name(t->policy->action);
	t->state.strip = t->policy->strip_debug;
}

static kpack_error_t write_plan(struct work *w, struct kpackx_error *why)
{
	if (w->dry)
		return KPACK_SUCCESS;
	return kp_fail_prefix(why, state_write(w->tree->state_path, &w->tree->state, why),
			      "%s", w->tree->state_path);
}

static bool is_known(const void *arg, const char *path, const struct file_identity *id)
{
	const struct policy_tree *t = arg;
	struct kp_hash hash =
		state_hash(path, id->ino, id->size, &id->mtime, &id->ctime, id->mode);

	return state_has_seen(&t->state, &hash);
}

static bool any_matched(const struct arch_filter *filter)
{
	bool any = false;

	for (size_t i = 0; i < filter->chosen.count; i++)
		any |= filter->matched[i];
	return any;
}

/* --- kpack thin ---------------------------------------------------------------------- */

/* Whether the file F of THIN is changed; a plan has those that may be. */
static bool is_changed(const struct thin *thin, const struct thin_file *f, bool planned)
{
	return planned ? !f->gone || f->loses || thin->args.strip : f->after != f->before;
}

/*
 * Remove the files that a plan had, and that lost nothing, now or earlier.  A converted file,
 * which thin does not look at, may be as large as before.
 */
static void drop_same(struct state *s)
{
	for (size_t i = 0; i < s->n_files; i++) {
		struct state_file *f = &s->files[i];

		if (f->kind != STATE_CHANGED && f->kind != STATE_LINK)
			continue;
		if (f->planned || (f->thinned && f->before == f->after)) {
			free(f->path);
			f->path = NULL;
		}
	}
	state_drop_files(s);
}

static void put_thinned(struct work *w, const struct thin *thin, bool planned)
{
	for (size_t i = 0; i < thin->n_files; i++) {
		const struct thin_file *f = &thin->files[i];
		const struct scan_entry *e = &thin->scan.entries[f->entry];
		struct change c = {.before = f->before,
				   .after = planned ? 0 : f->after,
				   .kind = f->gone ? STATE_CHANGED : STATE_REMOVED,
				   .planned = planned,
				   .thinned = !planned};

		if (is_changed(thin, f, planned) ||
		    (!planned && state_find_file(&w->tree->state, e->relative)))
			put_links(w, &thin->scan, f->entry, c);
	}
	if (!planned)
		drop_same(&w->tree->state);
}

static kpack_error_t plan_thin(void *arg, const struct thin *thin,
			       struct kpackx_error *why)
{
	struct work *w = arg;

	if (thin->n_files == 0)
		return KPACK_SUCCESS;
	put_thinned(w, thin, true);
	return write_plan(w, why);
}

/* The packages of files that lost all their code, as text on the heap; "": not known. */
static char *packages_of(const struct policy_tree *t, const struct thin *thin,
			 size_t *n_files)
{
	const char *tree = t->policy->tree;
	char **paths = xcalloc(thin->n_files + 1, sizeof(*paths)), *text;
	struct owners owners;
	size_t n = 0;

	for (size_t i = 0; i < thin->n_files; i++) {
		const struct thin_file *f = &thin->files[i];

		if (!f->gone || f->loses)
			paths[n++] = xasprintf("%s/%s", strcmp(tree, "/") ? tree : "",
					       thin->scan.entries[f->entry].relative);
	}
	owners_find(NULL, (const char *const *)paths, n, &owners);
	text = owners_text(&owners);
	owners_fini(&owners);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	*n_files = n;
	return text;
}

/*
 * The tree had code for the GPUs, and what is new in it has code for other GPUs only: maybe
 * an upgrade no longer supports them.  Returns whether it was so.
 */
static bool warn_of_loss(const struct work *w, const struct thin *thin)
{
	const struct policy_tree *t = w->tree;
	size_t n;
	char *packages;

	if (!t->state.sure || any_matched(&thin->args.filter))
		return false;
	packages = packages_of(t, thin, &n);
	if (n)
		report_error(
			t->policy->name,
			"warning: new files (%zu) have code for other GPUs only, "
			"and no code for %s%s: where an older version had it, install "
			"that version again%s%s",
			n, t->arch, w->dry ? "; it would be removed" : "; it was removed",
			*packages ? ": packages" : "", packages);
	free(packages);
	return n;
}

static int run_thin(struct work *w)
{
	struct policy_tree *t = w->tree;
	struct thin thin = {
		.args = {.tree = t->policy->tree,
			 .strip = t->policy->strip_debug,
			 .dry = w->dry,
			 .jobs = option_jobs(),
			 .skip = {is_known, t},
			 .sure = t->state.sure,
			 .planned = plan_thin,
			 .planned_arg = w},
	};
	struct kpackx_error why = {0};
	int status;

	if (arch_filter_add(&thin.args.filter, t->arch, &why) ||
	    library_set_open(NULL, NULL, &thin.args.libraries, &why)) {
		report_why(t->policy->name, &why);
		thin_close(&thin);
		return EXIT_FAULT;
	}
	thin.args.libraries.plain = true;
	status = thin_run(&thin);
	t->damaged |= thin.damaged;
	if (!status) {
		put_thinned(w, &thin, false);
		parts_compare(t, &thin.scan, &thin.args.filter, !warn_of_loss(w, &thin));
		t->state.sure |= any_matched(&thin.args.filter);
	}
	thin_close(&thin);
	return status;
}

/* --- kpack pack ---------------------------------------------------------------------- */

/* Whether a run that only counts has found already that the file of E goes. */
static bool is_gone(const struct work *w, const struct scan_entry *e)
{
	const struct state_file *f =
		w->dry ? state_find_file(&w->tree->state, e->relative) : NULL;

	return f && f->kind == STATE_REMOVED;
}

static void put_packed(struct work *w, const struct packing *p, bool planned)
{
	for (size_t i = 0; i < p->dispositions.count; i++) {
		const struct disposition *d = &p->dispositions.items[i];
		const struct scan_entry *e = &p->scan.entries[i];
		struct change c = {.before = e->id.size, .planned = planned};

		if (d->fate == FATE_CONVERTED) {
			c.after = planned ? 0 : d->after;
			put_links(w, &p->scan, i, c);
		} else if (d->fate == FATE_PACKED && !is_gone(w, e)) {
			c.kind = STATE_PACKED;
			c.entry = e;
			put_change(w, &c);
		}
	}
}

static kpack_error_t plan_pack(void *arg, const struct packing *p,
			       struct kpackx_error *why)
{
	struct work *w = arg;

	put_packed(w, p, true);
	return write_plan(w, why);
}

/* The archives' name: that of the tree's directory, as for kpack pack. */
static char *group_of(const char *tree)
{
	const char *name = strrchr(tree, '/') + 1;

	return xstrdup(*name ? name : "root");
}

static kpack_error_t set_pack(struct packing *p, const struct policy_tree *t,
			      struct kpackx_error *why)
{
	pack_args_init(&p->args);
	p->args.input = p->args.output = t->policy->tree;
	p->args.mode = PACK_IN_PLACE;
	p->args.quiet = true;
	p->args.prefer = PREFER_INPUT; /* what a package brings is newer */
	p->args.group = group_of(t->policy->tree);
	p->args.prefix = xstrdup("");
	p->scan.skip = (struct scan_skip){is_known, t};
	return library_set_open(NULL, NULL, &p->args.libraries, why);
}

static int run_pack(struct work *w)
{
	struct policy_tree *t = w->tree;
	struct packing p = {.planned = plan_pack, .planned_arg = w};
	struct kpackx_error why = {0};
	int status = EXIT_FAULT;

	if (set_pack(&p, t, &why))
		report_why(t->policy->name, &why);
	else if (w->dry)
		status = packing_scan(&p) || packing_prepare(&p) ? EXIT_FAULT : EXIT_OK;
	else
		status = packing_run(&p);
	if (!status)
		put_packed(w, &p, false);
	t->damaged |= scan_damaged(&p.scan);
	packing_close(&p);
	return status;
}

/* --- kpack prune --------------------------------------------------------------------- */

/* Code for other GPUs goes from archives, too: no file is known to have it any more. */
static kpack_error_t forget_gpus(struct policy_tree *t, struct kpackx_error *why)
{
	for (size_t i = 0; i < t->state.n_files; i++) {
		struct state_file *f = &t->state.files[i];
		char *common = gpu_list_common(f->arch, t->arch);

		free(f->arch);
		f->arch = common;
	}
	return kp_fail_prefix(why, state_write(t->state_path, &t->state, why), "%s",
			      t->state_path);
}

/* The path of the first N bytes of RELATIVE; of none: of the tree. */
static char *absolute_path(const struct policy_tree *t, const char *relative, size_t n)
{
	const char *tree = t->policy->tree;

	if (n == 0)
		return xstrdup(tree);
	return xasprintf("%s/%.*s", strcmp(tree, "/") ? tree : "", (int)n, relative);
}

/* The directories of packed files, once for successive files; *N of them, on the heap. */
static char **packed_dirs(const struct policy_tree *t, size_t *n)
{
	char **dirs = xcalloc(t->state.n_files + 1, sizeof(*dirs));
	struct kp_span last = {0};

	*n = 0;
	for (size_t i = 0; i < t->state.n_files; i++) {
		const char *path = t->state.files[i].path;
		struct kp_span dir = kp_path_directory(path);

		if (t->state.files[i].kind != STATE_PACKED ||
		    (*n && kp_span_eq(dir, last)))
			continue;
		dirs[(*n)++] = absolute_path(t, path, dir.size);
		last = dir;
	}
	return dirs;
}

/*
 * Find out which packed files packages have.  Those that a package had, and that none has
 * now, are put into GONE by their path in the tree: an upgrade dropped them.  That a
 * package has the directory, or a file in it, says that its list is whole.
 */
static void find_dropped(struct policy_tree *t, struct owners *gone)
{
	struct owners owned;
	size_t n;
	char **dirs = packed_dirs(t, &n);
	enum owners_answer answer =
		owners_list(NULL, (const char *const *)dirs, n, &owned);

	*gone = (struct owners){0};
	if (answer == OWNERS_FAILED)
		report_error(
			t->policy->name,
			"note: files of packages are not known: files that an upgrade "
			"dropped stay in the archives of %s",
			t->policy->tree);
	for (size_t i = 0; i < t->state.n_files && answer == OWNERS_LISTED; i++) {
		struct state_file *f = &t->state.files[i];
		char *path, *dir;

		if (f->kind != STATE_PACKED)
			continue;
		path = absolute_path(t, f->path, strlen(f->path));
		dir = absolute_path(t, f->path, kp_path_directory(f->path).size);
		if (owners_has(&owned, path)) {
			f->owned = true;
		} else if (f->owned && owners_has(&owned, dir)) {
			xgrow(&gone->names, gone->count, &gone->cap,
			      sizeof(*gone->names));
			gone->names[gone->count++] = xstrdup(f->path);
		}
		free(dir);
		free(path);
	}
	owners_fini(&owned);
	for (size_t i = 0; i < n; i++)
		free(dirs[i]);
	free(dirs);
}

static bool is_dropped(const void *arg, struct kp_span path)
{
	char *text = xstrndup((const char *)path.data, path.size);
	bool dropped = owners_has(arg, text);

	free(text);
	return dropped;
}

static void forget_files(struct state *s, const struct owners *gone)
{
	for (size_t i = 0; i < s->n_files; i++) {
		struct state_file *f = &s->files[i];

		if (!owners_has(gone, f->path))
			continue;
		free(f->path);
		f->path = NULL;
	}
	state_drop_files(s);
}

/*
 * Remove from archives what the tree no longer asks for, and the files GONE; with GPUS, and
 * only then, also code for other GPUs.
 */
static int run_prune(struct policy_tree *t, bool gpus, const struct owners *gone)
{
	struct prune prune = {.args = {.tree = t->policy->tree,
				       .force = !gpus,
				       .file_goes = is_dropped,
				       .file_arg = gone}};
	struct kpackx_error why = {0};
	int status;

	if (gpus && (arch_filter_add(&prune.args.filter, t->arch, &why) ||
		     forget_gpus(t, &why))) {
		report_why(t->policy->name, &why);
		status = EXIT_FAULT;
	} else {
		status = prune_run(&prune);
	}
	prune_close(&prune);
	return status;
}

/* Whether there are archives; a directory without any is removed. */
static bool has_archives(const struct policy_tree *t)
{
	char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, t->policy->tree);
	struct stat st;
	bool has = below_lstat(dir, &st) == 0 && below_rmdir(dir) < 0;

	free(dir);
	return has;
}

static int pack_and_prune(struct work *w)
{
	int status = run_pack(w);
	struct owners gone;

	if (status || w->dry || !has_archives(w->tree))
		return status;
	find_dropped(w->tree, &gone);
	status = run_prune(w->tree, false, &gone);
	if (!status)
		forget_files(&w->tree->state, &gone);
	/* no file was seen: a run after the change of GPUs was killed, or failed */
	if (!status && (w->tree->anew || w->tree->state.n_seen == 0) &&
	    has_archives(w->tree))
		status = run_prune(w->tree, true, &gone);
	owners_fini(&gone);
	has_archives(w->tree);
	return status;
}

int work_on(struct policy_tree *t, bool dry)
{
	struct work w = {.tree = t, .dry = dry};
	int status;

	if (!dry)
		note_policy(t);
	/* without the code for other GPUs first: archives get none of it, and need less room */
	status = run_thin(&w);
	if (!status && t->policy->action == POLICY_PACK)
		status = pack_and_prune(&w);
	return status;
}
