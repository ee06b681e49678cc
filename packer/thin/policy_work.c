/* SPDX-License-Identifier: MIT */
/* One run of kpack thin, or of kpack pack and kpack prune, as a policy says it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "policy_apply.h"
#include "core/archive/naming.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/leftovers.h"
#include "packer/files/lock.h"
#include "packer/pack/run.h"
#include "prune.h"
#include "thin.h"

struct work {
	struct policy_tree *tree;
	bool dry;
};

/* --- what is changed ----------------------------------------------------------------- */

/* Note that a file has code for ARCH, which stays, or was removed. */
static void note_target(struct policy_tree *t, struct state_file *f, const char *arch)
{
	struct kp_target code;

	if (!kp_target_parse(kp_span_str(arch), &code, NULL) &&
	    (code.known || kp_target_neutral(&code)))
		list_add(thin_goes(&t->filter, arch) ? &f->lost : &f->has, arch);
}

static void note_targets(struct policy_tree *t, struct state_file *f, const char *list)
{
	char *arch;

	while ((arch = list_next(&list))) {
		note_target(t, f, arch);
		free(arch);
	}
}

/* Note the code of the file of ENTRY: a binary, or a file of a kernel database. */
static void note_code(struct policy_tree *t, struct state_file *f,
		      const struct scan *scan, size_t entry)
{
	const struct input *in = scan->entries[entry].input;
	const struct library_object *o = NULL;
	char target[KP_TARGET_TEXT_MAX];
	size_t file;

	if (scan->found.objects &&
	    file_tree_find(&scan->files, kp_span_str(f->path), &file))
		o = scan->found.objects[file];
	for (size_t i = 0; o && i < o->n_arches; i++) {
		library_object_target(o, i, target);
		/* a file for every GPU says nothing about any */
		if (strcmp(target, KP_ARCH_GENERIC) != 0)
			note_target(t, f, target);
	}
	for (size_t i = 0; !o && in && i < in->n_images; i++)
		if (in->packed[i] && in->images[i].size)
			note_target(t, f, in->images[i].arch);
}

/*
 * Put F, the change of a file, into the state for the path of ENTRY, or for all paths of a
 * file that still exists: its bytes count once.
 */
static void put_change(struct work *w, const struct scan *scan, size_t entry,
		       struct state_file f)
{
	struct policy_tree *t = w->tree;
	bool exists = f.kind == STATE_THINNED || f.kind == STATE_CONVERTED;
	size_t n = 1, *links = exists ? scan_links(scan, entry, &n) : &entry;

	for (size_t i = 0; i < n; i++) {
		const struct scan_entry *e = &scan->entries[links[i]];
		const struct state_file *old = state_find_file(&t->state, e->relative);
		struct state_file g = f;
		struct stat st;

		g.path = xstrdup(e->relative);
		g.link = i > 0;
		g.mtime = state_time(&e->id.mtime);
		note_code(t, &g, scan, entry);
		if (exists && !f.planned && !w->dry && below_lstat(e->path, &st) < 0) {
			report_error(e->path, "note: its size is missing in the sums: %s",
				     strerror(errno));
		} else if (exists && !f.planned && !w->dry) {
			g.ino = st.st_ino;
			g.after = (uint64_t)st.st_size;
			g.mtime = state_time(&st.st_mtim);
		}
		if (old) { /* it has lost more than it loses now */
			note_targets(t, &g, old->has);
			for (const char *list = old->lost; list && *list;) {
				char *arch = list_next(&list);

				list_add(&g.lost, arch);
				free(arch);
			}
			g.fresh |= old->fresh;
			if (old->before > g.before)
				g.before = old->before;
		}
		if (g.after > g.before)
			g.before = g.after;
		state_put_file(&t->state, &g);
	}
	if (exists)
		free(links);
}

static kpack_error_t write_plan(const struct policy_tree *t, struct kpackx_error *why)
{
	return kp_fail_prefix(why, state_write(t->state_path, &t->state, why), "%s",
			      t->state_path);
}

static bool is_known(const void *arg, const char *path, const struct file_identity *id)
{
	const struct policy_tree *t = arg;
	const struct kp_hash hash = policy_tree_hash(path, id);

	return state_find_hash(&hash, t->state.seen, t->state.n_seen, sizeof(hash));
}

/* A run scans the tree several times, and in more passes if something changes meanwhile. */
static bool was_told(void *arg, const char *path, const struct file_identity *id)
{
	struct policy_tree *t = arg;
	const struct kp_hash hash = policy_tree_hash(path, id);

	for (size_t i = 0; i < t->n_told; i++)
		if (!memcmp(&t->told[i], &hash, sizeof(hash)))
			return true;
	xgrow(&t->told, t->n_told, &t->told_cap, sizeof(*t->told));
	t->told[t->n_told++] = hash;
	return false;
}

/* What a mount shows is none of the tree's files; only a dry run meets it. */
static bool is_covered(const void *arg, const char *path)
{
	const struct policy_tree *t = arg;

	return mount_table_covers(&t->mounts, path);
}

/* --- kpack thin ---------------------------------------------------------------------- */

/*
 * Remove the files that a plan had, and that lost nothing, now or earlier.  A converted file,
 * which thin does not look at, may be as large as before.
 */
static void drop_same(struct state *s)
{
	for (size_t i = 0; i < s->n_files; i++) {
		struct state_file *f = &s->files[i];

		if (f->kind == STATE_THINNED &&
		    (f->planned || (f->thinned && f->before == f->after))) {
			free(f->path);
			f->path = NULL;
		}
	}
	state_drop_files(s);
}

/* Put the files of THIN that are changed into the state; a plan has those that may be. */
static void put_thinned(struct work *w, const struct thin *thin, bool planned)
{
	for (size_t i = 0; i < thin->n_files; i++) {
		const struct thin_file *f = &thin->files[i];
		const struct state_file *old = state_find_file(
			&w->tree->state, thin->scan.entries[f->entry].relative);
		bool changes = planned ? !f->gone || f->loses || thin->args.strip
				       : f->after != f->before;

		if (changes || (!planned && old && old->kind == STATE_THINNED))
			put_change(w, &thin->scan, f->entry,
				   (struct state_file){.kind = f->gone ? STATE_THINNED
								       : STATE_REMOVED,
						       .planned = planned,
						       .thinned = !planned,
						       .fresh = !planned && changes,
						       .before = f->before,
						       .after = planned ? 0 : f->after});
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
	return write_plan(w->tree, why);
}

/* Report TEXT, a warning, with the packages of N files by their paths, which are freed. */
static void warn_with_packages(const struct policy_tree *t, const char *text,
			       char **paths, size_t n)
{
	struct owners owners;
	char *packages;

	owners_find(NULL, (const char *const *)paths, n, &owners);
	packages = owners_text(&owners);
	if (n)
		report_error(t->policy->name, "warning: %s%s%s", text,
			     *packages ? ": packages" : "", packages);
	free(packages);
	owners_fini(&owners);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

/*
 * Warn if the tree had code for the GPUs, and what is new in it has code for other GPUs only:
 * maybe an upgrade no longer supports them.  false: there is no such file.
 */
static bool warn_of_loss(const struct work *w, const struct thin *thin)
{
	const struct policy_tree *t = w->tree;
	char **paths = xcalloc(thin->n_files + 1, sizeof(*paths)), *text;
	size_t n = 0;

	for (size_t i = 0; i < thin->n_files; i++) {
		const char *path = thin->scan.entries[thin->files[i].entry].relative;

		if (!thin->files[i].gone || thin->files[i].loses)
			paths[n++] = policy_tree_path(t, path, strlen(path));
	}
	text = xasprintf(
		"new files (%zu) have code for other GPUs only, and no code for %s%s: "
		"where an older version had it, install that version again",
		n, t->arch, w->dry ? "; it would be removed" : "; it was removed");
	warn_with_packages(t, text, paths, n);
	free(text);
	return n;
}

/* The name of the part of the tree that the file PATH is of. */
static char *part_name(const char *path, bool database)
{
	const char *end = database ? strrchr(path, '/') : strstr(path, ".so.");
	char *part = xstrndup(path, end ? (size_t)(end - path) + (database ? 1 : 3)
					: strlen(path)),
	     *name = kp_text_escape_new(kp_span_str(database && !end ? "./" : part));

	if (!name)
		xalloc_fail(0);
	free(part);
	return name;
}

/* Put the targets of each part of SCAN into HAS, and a path of one with new files into NEW. */
static void find_parts(struct policy_tree *t, const struct scan *scan, json_t *has,
		       json_t *new)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct state_file f = {.path = (char *)e->relative};

		note_code(t, &f, scan, i);
		if (f.has || f.lost) {
			char *name = part_name(e->relative, e->database);

			note_targets(t, &f,
				     json_string_value(json_object_get(has, name)));
			json_object_set_new(has, name, json_string(f.has ? f.has : ""));
			if (!is_known(t, e->relative, &e->id))
				json_object_set_new(new, name,
						    report_json_text(e->relative));
			free(name);
		}
		free(f.has);
		free(f.lost);
	}
	/* what archives have of a directory is not known by GPU: nothing of it is lost */
	for (size_t i = 0; i < t->state.n_files; i++) {
		char *name = part_name(t->state.files[i].path, true);

		if (t->state.files[i].kind == STATE_PACKED)
			json_object_del(new, name);
		free(name);
	}
}

/*
 * Warn of each GPU that parts had code for, and of which new files have none; then put the
 * parts into the state.
 */
static void compare_parts(struct policy_tree *t, const struct scan *scan, bool warn)
{
	json_t *has = json_object(), *new = json_object(), *parts = t->state.parts,
	       *value;
	const char *name;

	find_parts(t, scan, has, new);
	for (size_t g = 0; g < t->filter.chosen.count && warn && parts; g++) {
		char **paths = xcalloc(json_object_size(new) + 1, sizeof(*paths));
		char gpu[KP_TARGET_TEXT_MAX], *text;
		const char *first = "";
		size_t n = 0;

		kp_target_format(&t->filter.chosen.gpus[g], gpu);
		json_object_foreach(new, name, value)
		{
			const char *had = json_string_value(json_object_get(parts, name));
			const char *now = json_string_value(json_object_get(has, name));
			char *path = xstrdup(json_string_value(value));

			kp_text_unescape(path);
			if (policy_tree_loads(t, g, had) &&
			    !policy_tree_loads(t, g, now)) {
				first = n ? first : name;
				paths[n++] = policy_tree_path(t, path, strlen(path));
			}
			free(path);
		}
		text = xasprintf("%s: new files have no code for it, and older ones had: "
				 "%s%s: to use this GPU, install the older version again",
				 gpu, first, n > 1 ? " and other files" : "");
		warn_with_packages(t, text, paths, n);
		free(text);
	}
	if (parts)
		json_object_update(parts, has);
	else
		t->state.parts = json_incref(has);
	json_decref(has);
	json_decref(new);
}

static int run_thin(struct work *w)
{
	struct policy_tree *t = w->tree;
	struct thin thin = {
		.args = {.tree = t->policy->tree,
			 .strip = t->policy->strip_debug,
			 .dry = w->dry,
			 .jobs = option_jobs(),
			 .skip = {is_known, is_covered, was_told, t},
			 .sure = t->state.sure,
			 .planned = plan_thin,
			 .planned_arg = w},
	};
	struct kpackx_error why = {0};
	bool matched = false;
	int status = EXIT_FAULT;

	if (arch_filter_add(&thin.args.filter, t->arch, &why) ||
	    library_set_open(NULL, NULL, &thin.args.libraries, &why)) {
		report_why(t->policy->name, &why);
	} else {
		thin.args.libraries.plain = true;
		status = thin_run(&thin);
		t->damaged |= thin.damaged;
	}
	for (size_t i = 0; i < thin.args.filter.chosen.count; i++)
		matched |= thin.args.filter.matched[i];
	if (!status) {
		put_thinned(w, &thin, false);
		compare_parts(t, &thin.scan,
			      !t->state.sure || matched || !warn_of_loss(w, &thin));
		t->state.sure |= matched;
	}
	thin_close(&thin);
	return status;
}

/* --- kpack pack ---------------------------------------------------------------------- */

static void put_packed(struct work *w, const struct packing *p, bool planned)
{
	for (size_t i = 0; i < p->dispositions.count; i++) {
		const struct disposition *d = &p->dispositions.items[i];
		struct state_file f = {.before = p->scan.entries[i].id.size,
				       .planned = planned,
				       .fresh = !planned};

		if (d->fate == FATE_CONVERTED) {
			f.kind = STATE_CONVERTED;
			f.after = planned ? 0 : d->after;
		} else if (d->fate == FATE_PACKED) {
			f.kind = STATE_PACKED;
		} else {
			continue;
		}
		put_change(w, &p->scan, i, f);
	}
}

static kpack_error_t plan_pack(void *arg, const struct packing *p,
			       struct kpackx_error *why)
{
	struct work *w = arg;

	w->tree->state.packed = true;
	put_packed(w, p, true);
	return write_plan(w->tree, why);
}

/* Run kpack pack; CHECK: only find out whether it refuses, and in a dry run what it does. */
static int run_pack(struct work *w, bool check)
{
	struct policy_tree *t = w->tree;
	struct packing p = {.planned = plan_pack, .planned_arg = w};
	const char *name = kp_path_name(t->policy->tree);
	struct kpackx_error why = {0};
	int status = EXIT_FAULT;

	pack_args_init(&p.args);
	p.args.input = p.args.output = t->policy->tree;
	p.args.mode = PACK_IN_PLACE;
	p.args.quiet = true;
	p.args.prefer = PREFER_INPUT; /* what a package brings is newer */
	p.args.group = xstrdup(*name ? name : "root");
	p.args.prefix = xstrdup("");
	p.scan.skip = (struct scan_skip){is_known, is_covered, was_told, t};
	if (library_set_open(NULL, NULL, &p.args.libraries, &why))
		report_why(t->policy->name, &why);
	else if (check)
		status = packing_scan(&p) || packing_prepare(&p) ||
					 packing_check_archives(&p)
				 ? EXIT_FAULT
				 : EXIT_OK;
	else
		status = packing_run(&p);
	if (!status && check == w->dry)
		put_packed(w, &p, false);
	t->damaged |= scan_damaged(&p.scan);
	packing_close(&p);
	return status;
}

/* --- kpack prune --------------------------------------------------------------------- */

/*
 * Find out which packed files packages have.  Those that a package had, and that none has
 * now, are put into GONE by their path in the tree: an upgrade dropped them.  That a
 * package has the directory, or a file in it, says that its list is whole.
 */
static void find_dropped(struct policy_tree *t, struct owners *gone)
{
	char **dirs = xcalloc(t->state.n_files + 1, sizeof(*dirs));
	struct kp_span last = {0};
	enum owners_answer answer;
	struct owners owned;
	size_t n = 0;

	for (size_t i = 0; i < t->state.n_files; i++) {
		const char *path = t->state.files[i].path;
		struct kp_span dir = kp_path_directory(path);

		if (t->state.files[i].kind != STATE_PACKED ||
		    (n && kp_span_eq(dir, last)))
			continue;
		dirs[n++] = policy_tree_path(t, path, dir.size);
		last = dir;
	}
	answer = owners_list(NULL, (const char *const *)dirs, n, &owned);
	if (answer == OWNERS_FAILED)
		report_error(
			t->policy->name,
			"note: files of packages are not known: files that an upgrade "
			"dropped stay in the archives of %s",
			t->policy->tree);
	for (size_t i = 0; i < t->state.n_files && answer == OWNERS_LISTED; i++) {
		struct state_file *f = &t->state.files[i];
		char *path = policy_tree_path(t, f->path, strlen(f->path));
		char *dir = policy_tree_path(t, f->path, kp_path_directory(f->path).size);

		if (f->kind == STATE_PACKED && owners_has(&owned, path)) {
			f->owned = true;
		} else if (f->kind == STATE_PACKED && f->owned &&
			   owners_has(&owned, dir)) {
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

/* Code for other GPUs goes from archives, too: a plan, as for files. */
static kpack_error_t forget_gpus(struct policy_tree *t, struct kpackx_error *why)
{
	for (size_t i = 0; i < t->state.n_files; i++) {
		struct state_file *f = &t->state.files[i];
		char *had = f->has;

		if (!policy_file_packed(t, f))
			continue;
		f->has = NULL;
		note_targets(t, f, had);
		free(had);
	}
	return write_plan(t, why);
}

/*
 * Remove the directory of the archives, if nothing is in it, and then the directories that
 * only it kept when packages were removed: no package has them.
 */
static void remove_empty(struct policy_tree *t)
{
	char *dir = policy_tree_path(t, KP_ARCHIVES_DIR, strlen(KP_ARCHIVES_DIR)), *slash;
	struct kpackx_error why = {0};
	enum owners_answer answer;
	struct owners owned;
	bool gone;
	int lock;

	if (!leftovers_lock(dir, &lock, &why)) {
		leftovers_remove(dir, "", &why);
		lock_close(lock);
	}
	gone = below_rmdir(dir) == 0;
	while (gone && (slash = strrchr(dir, '/')) && slash != dir) {
		*slash = '\0';
		answer = owners_list(NULL, (const char *const[]){dir}, 1, &owned);
		gone = answer == OWNERS_LISTED && owned.count == 0 &&
		       below_rmdir(dir) == 0;
		owners_fini(&owned);
		t->missing |= gone;
	}
	free(dir);
}

/*
 * Remove from archives what the tree no longer asks for: files that an upgrade dropped, code
 * for other GPUs, and what the tree has again as files.
 */
static int run_prune(struct work *w)
{
	struct policy_tree *t = w->tree;
	struct owners gone = {0};
	struct prune prune = {.args = {.tree = t->policy->tree,
				       .dry = w->dry,
				       .force = true,
				       .file_goes = is_dropped,
				       .file_arg = &gone}};
	struct kpackx_error why = {0};
	int status = EXIT_OK;
	bool stays = false;
	size_t n;

	policy_tree_archives(t, &n);
	if (n && (arch_filter_add(&prune.args.filter, t->arch, &why) ||
		  (!w->dry && forget_gpus(t, &why)))) {
		report_why(t->policy->name, &why);
		status = EXIT_FAULT;
	} else if (n) {
		find_dropped(t, &gone);
		status = prune_run(&prune);
	}
	for (size_t i = 0; i < prune.n_archives && w->dry; i++) {
		t->pruned += prune.archives[i].before - prune.archives[i].after;
		stays |= prune.archives[i].after > 0;
	}
	for (size_t i = 0; i < t->state.n_files && !status; i++) {
		struct state_file *f = &t->state.files[i];

		if (!w->dry && owners_has(&gone, f->path)) {
			free(f->path);
			f->path = NULL;
		}
	}
	state_drop_files(&t->state);
	prune_close(&prune);
	owners_fini(&gone);
	if (status)
		return status;
	if (w->dry) {
		t->state.packed = stays;
		return EXIT_OK;
	}
	policy_tree_archives(t, &n);
	if (!n)
		remove_empty(t);
	t->state.packed = n;
	return EXIT_OK;
}

/* --- a run --------------------------------------------------------------------------- */

int work_on(struct policy_tree *t, bool dry)
{
	struct work w = {.tree = t, .dry = dry};
	const struct policy *p = t->policy;
	bool pack = p->action == POLICY_PACK;
	int status = pack ? run_pack(&w, true) : EXIT_OK;

	if (status)
		return status;
	if (!dry) { /* from now on the state is of this policy and list of GPUs */
		free(t->state.arch);
		t->state.arch = xstrdup(t->arch);
		t->state.action = p->action;
		t->state.strip = p->strip_debug;
	}
	/* without the code for other GPUs first: archives get none of it, and need less room */
	status = run_thin(&w);
	if (!status && pack && !dry)
		status = run_pack(&w, false);
	if (!status && t->state.packed && !(dry && pack))
		status = run_prune(&w);
	return status;
}
