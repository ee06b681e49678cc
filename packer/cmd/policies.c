/* SPDX-License-Identifier: MIT */
/*
 * kpack apply: run the commands of policies for trees that changed since the last run; and kpack
 * status, which says how far that is.
 *
 * A run of a tree takes the mounts in it away, runs each command of its policy in a child process,
 * and finds out from the files before and after what the command did.  After a pack, entries that
 * nothing needs any more go from the archives: code for other GPUs, what the tree has again as
 * files, and files that an upgrade of their package dropped.  Then the archives are mounted again.
 * If a command fails, or the run is killed, the state does not have the policy, and the next
 * run begins anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include "core/archive/naming.h"
#include "core/base/order.h"
#include "packer/cli/process.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/leftovers.h"
#include "packer/files/lock.h"
#include "packer/scan/scan.h"
#include "packer/thin/policy.h"
#include "packer/thin/prune.h"

/* The arguments of both commands. */
struct policy_args {
	struct policy_places places;
	bool dry, quiet, json;
	bool mounts, no_mounts, unmount;
	bool named; /* the policies are those that the user named */
};

#define PLACES_OPTIONS                                                                   \
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")",                        \
	 OPTION_PLACE(struct policy_args, places.policies)},                             \
		{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")",        \
		 OPTION_PLACE(struct policy_args, places.states)},                       \
	{                                                                                \
		0, "topology", "DIR", "where --arch auto looks for GPUs",                \
			OPTION_PLACE(struct policy_args, places.topology)                \
	}

static const struct option_help apply_options[] = {
	PLACES_OPTIONS,
	OPTION_SWITCH('n', "dry-run", "change nothing: print what would be run",
		      struct policy_args, dry),
	OPTION_SWITCH(0, "mounts", "only mount what has to be mounted",
		      struct policy_args, mounts),
	OPTION_SWITCH(0, "no-mounts", "mount nothing: another program does",
		      struct policy_args, no_mounts),
	OPTION_SWITCH(0, "unmount", "only unmount, so that packages can be installed",
		      struct policy_args, unmount),
	OPTION_QUIET(struct policy_args, quiet),
	{0},
};

const struct command_help cmd_apply_help = {
	"apply",
	"[OPTION]... [NAME...]",
	"run the commands of policies for trees that changed",
	apply_options,
	"Only files that changed since the last run are looked at.\n"
	"NAME is a policy of " POLICY_DIR "/NAME.conf; without names, all.",
};

static const struct option_help status_options[] = {
	PLACES_OPTIONS,
	OPTION_JSON_ARRAY(struct policy_args, json),
	{0},
};

const struct command_help cmd_status_help = {
	"status",
	"[OPTION]... [NAME...]",
	"print how far the trees of policies are, and what they saved",
	status_options,
	NULL,
};

/* --- mounts -------------------------------------------------------------------------- */

/*
 * Run kpackfs, which is beside this program: it decides where to mount, locks, and leaves nothing
 * half-done.  What it prints of places is dropped, its messages are not.  ARGV ends with NULL.
 * Returns whether it succeeded.
 */
static bool run_kpackfs(const char **argv)
{
	KP_AUTO_FREE char *self = below_real("/proc/self/exe");
	KP_AUTO_FREE char *program = NULL;
	posix_spawn_file_actions_t actions;
	int err, status = -1;
	pid_t child;

	if (!self || posix_spawn_file_actions_init(&actions)) {
		report_error(NULL, "/proc is not mounted");
		return false;
	}
	program = xasprintf("%.*s/kpackfs", (int)(strrchr(self, '/') - self), self);
	fflush(stdout);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
					 0);
	err = posix_spawn(&child, program, &actions, NULL, (char *const *)(void *)argv,
			  environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		report_error(program, "cannot run it: %s", strerror(err));
	while (!err && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return !err && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/*
 * Take the mounts in TREE away.  false: one stays, because something uses it; that was reported.
 */
static bool unmount_tree(const char *tree)
{
	const char *argv[] = {"kpackfs", "--in-place", "--undo", "-q", tree, NULL};
	bool done = run_kpackfs(argv);

	if (!done)
		report_error(tree, "what is mounted in it cannot be unmounted");
	return done;
}

/* Mount the archives of a packed tree, and remember in its state how many mounts that are. */
static bool mount_tree(struct policy_tree *t)
{
	const char *tree = t->policy->tree;
	KP_AUTO_FREE char *arch = xasprintf("arch=%s", t->arch);
	const char *argv[] = {"kpackfs", "--in-place", "-q", "-o", arch, tree, NULL};
	uint64_t before = t->state.n_mounts;
	struct kpackx_error why = {0};
	bool done = run_kpackfs(argv);

	if (!done)
		report_error(tree, "its archives cannot be mounted");
	done = policy_tree_find_mounts(t) && done;
	/* after a failure something is missing, even if nothing was expected */
	if (done || t->state.n_mounts == 0)
		t->state.n_mounts = done ? t->n_mounts : 1;
	if (t->state.n_mounts != before && state_write(t->state_path, &t->state, &why)) {
		report_why(t->state_path, &why);
		done = false;
	}
	return done;
}

/*
 * Unmount what is mounted in the trees of policies; and of states, whose policies may be wrong or
 * gone, unless the user named some.
 */
static int unmount_all(const struct policy_args *a, const struct policies *list)
{
	struct dirent **files = NULL;
	int n = a->named ? 0 : below_scandir(a->places.states, &files, NULL);
	int status = EXIT_OK;
	struct stat st;

	for (int i = 0; i < n; i++) {
		const char *end = strrchr(files[i]->d_name, '.');
		KP_AUTO_FREE char *path =
			xasprintf("%s/%s", a->places.states, files[i]->d_name);
		struct kpackx_error why = {0};
		struct state s = {0};

		if (end && strcmp(end, ".state") == 0 && !state_read(path, &s, &why) &&
		    s.packed && below_stat(s.tree, &st) == 0 && !unmount_tree(s.tree))
			status = EXIT_FAULT;
		state_fini(&s);
		free(files[i]);
	}
	free(files);
	for (size_t i = 0; i < list->count; i++)
		if (!list->items[i].wrong &&
		    (below_stat(list->items[i].tree, &st) == 0 || errno != ENOENT) &&
		    !unmount_tree(list->items[i].tree))
			status = EXIT_FAULT;
	return status;
}

/* --- packages ------------------------------------------------------------------------ */

/* Report what only a reinstallation of packages can bring.  false: there is some. */
static bool check_lacking(const struct policy_tree *t)
{
	KP_AUTO_FREE char *gpus = policy_tree_lacking(t), *text = NULL, *names = NULL;
	const struct state *s = &t->state;
	char **files = NULL;
	struct packages packages;
	bool packs = !s->packed;
	size_t n = 0;

	for (size_t i = 0; i < t->policy->n_commands; i++)
		packs |= t->policy->commands[i].packs;
	if (t->gone)
		report_error(t->policy->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in --arch",
			     t->gone);
	if (!gpus && packs)
		return true;
	files = xcalloc(s->n_files, sizeof(*files));
	for (size_t i = 0; i < s->n_files; i++)
		if (gpus ? policy_tree_lacks(t, &s->files[i])
			 : s->files[i].kind != STATE_SEEN)
			files[n++] = policy_tree_path(t, s->files[i].path);
	text = gpus ? xasprintf("%s: was not wanted yet when %zu files of %s lost code: "
				"to have its code",
				gpus, n, t->policy->tree)
		    : xasprintf("%s is packed, and stays so: to have it thin",
				t->policy->tree);
	packages_ask(NULL, (const char *const *)files, n, &packages);
	names = packages_names(&packages, (const char *const *)files, n);
	report_error(t->policy->name, "%s, reinstall%s", text,
		     *names ? names : " what its files belong to");
	packages_fini(&packages);
	while (n)
		free(files[--n]);
	free(files);
	return false;
}

/* --- commands ------------------------------------------------------------------------ */

/* Word I of C, with the tree and the GPUs as they are now, on the heap. */
static char *word_of(const struct policy_tree *t, const struct policy_command *c,
		     size_t i)
{
	if (i == c->arch)
		return xasprintf("%.*s%s", (int)c->arch_skip, c->words[i], t->arch);
	return xstrdup(i + 1 == c->n_words ? t->policy->tree : c->words[i]);
}

/* As `known` of struct scan_skip: whether the last run left the file as it is now. */
static bool is_known(const void *arg, const char *path, const struct file_identity *id)
{
	const struct policy_tree *t = arg;

	return state_knows(&t->state, path, id);
}

/* Run one command in a child process, which has its own roots, locks and options. */
static int run_command(const struct policy_tree *t, const struct policy_command *c)
{
	const struct scan_skip skip = {.known = is_known, .arg = t};
	char quiet[] = "--quiet";
	int status = -1, n = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		char **argv = xcalloc(c->n_words + 2, sizeof(*argv));

		for (size_t i = 0; i < c->n_words; i++) {
			if (i == 1)
				argv[n++] = quiet;
			argv[n++] = word_of(t, c, i);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends this run means it */
		exit((c->packs ? cmd_pack_changed
			       : cmd_thin_changed)(n, argv, t->anew ? NULL : &skip));
	}
	if (child < 0)
		return report_error(NULL, "cannot make a process: %s", strerror(errno));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAULT;
}

/* --- archives ------------------------------------------------------------------------ */

/*
 * Find the packed files that an upgrade dropped, by their path in the tree: a package had them
 * in an earlier run, and none has them now, although one has something of their directory.
 */
static void find_dropped(struct policy_tree *t)
{
	KP_AUTO_FREE char *root = policy_tree_path(t, "");
	KP_AUTO(packages) packages = {0};
	enum packages_answer answer =
		packages_ask(NULL, (const char *const[]){root}, 1, &packages);

	if (answer == PACKAGES_FAILED)
		report_error(
			t->policy->name,
			"note: files of packages are not known: files that an upgrade "
			"dropped stay in the archives of %s",
			t->policy->tree);
	for (size_t i = 0; i < t->state.n_files && answer == PACKAGES_LISTED; i++) {
		struct state_file *f = &t->state.files[i];
		KP_AUTO_FREE char *path = policy_tree_path(t, f->path);

		if (f->kind == STATE_PACKED && packages_have(&packages, path)) {
			f->owned = true;
		} else if (f->kind == STATE_PACKED && f->owned) {
			strrchr(path, '/')[1] = '\0';
			f->dropped = packages_have(&packages, path);
		}
	}
}

/* As `file_goes` of struct prune_args; STATE is the tree's. */
static bool is_dropped(const void *state, struct kp_span path)
{
	const struct state *s = state;
	KP_AUTO_FREE char *text = xstrndup((const char *)path.data, path.size);
	const struct state_file probe = {.path = text};
	const struct state_file *f = kp_find(s->files, s->n_files, &probe,
					     KP_BY_TEXT(struct state_file, path));

	return f && f->dropped;
}

/* Remove from the archives what nothing needs any more, and their directory with the last one. */
static bool prune_archives(struct policy_tree *t)
{
	struct state *s = &t->state;
	struct prune prune = {.args = {.tree = t->policy->tree,
				       .force = true,
				       .file_goes = is_dropped,
				       .file_arg = s}};
	struct kpackx_error why = {0};
	size_t n, kept = 0;
	bool fine = true;

	policy_tree_archives(t, &n);
	if (n && strcmp(t->arch, "all") != 0 &&
	    arch_filter_add(&prune.args.filter, t->arch, &why)) {
		report_why(t->policy->name, &why);
		fine = false;
	} else if (n) {
		find_dropped(t);
		fine = prune_run(&prune) == EXIT_OK;
	}
	prune_close(&prune);
	if (!fine)
		return false;
	for (size_t i = 0; i < s->n_files; i++) {
		struct state_file *f = &s->files[i];

		if (f->dropped) {
			free(f->path);
			continue;
		}
		/* archives keep no code for GPUs that were wanted once */
		if (f->kind != STATE_SEEN && !gpu_list_covers(t->arch, s->gpus[f->gpus]))
			f->gpus = s->n_gpus - 1;
		s->files[kept++] = *f;
	}
	s->n_files = kept;
	policy_tree_archives(t, &n);
	if (n == 0) {
		KP_AUTO_FREE char *dir = policy_tree_path(t, KP_ARCHIVES_DIR);
		int lock;

		if (!leftovers_lock(dir, &lock, NULL)) {
			leftovers_remove(dir, "", NULL);
			lock_close(lock);
		}
		below_rmdir(dir);
		s->packed = false;
		s->n_mounts = 0;
	}
	return true;
}

/* --- kpack apply --------------------------------------------------------------------- */

/*
 * Run the commands of T's policy, and write down what they did.  Whatever fails, the state is
 * written: it has what was done, and without the policy's hash the next run begins anew.
 */
static int work_on_tree(struct policy_tree *t)
{
	const struct policy *p = t->policy;
	struct state *s = &t->state;
	struct kpackx_error why = {0};
	int status = EXIT_OK;
	bool left = false;
	size_t n;

	if (t->n_mounts && !(unmount_tree(p->tree) && policy_tree_look(t, STATE_SEEN)))
		return EXIT_FAULT;
	if (s->n_gpus == 0 || strcmp(s->gpus[s->n_gpus - 1], t->arch) != 0) {
		xgrow(&s->gpus, s->n_gpus, &s->gpus_cap, sizeof(*s->gpus));
		s->gpus[s->n_gpus++] = xstrdup(t->arch);
	}
	for (size_t i = 0; i < p->n_commands && !status; i++) {
		bool packs = p->commands[i].packs;

		status = run_command(t, &p->commands[i]);
		/* a damaged file is reported once, and not looked at until it changes */
		left |= status == EXIT_LEFT;
		status = status == EXIT_LEFT ? EXIT_OK : status;
		policy_tree_archives(t, &n);
		s->packed |= packs && n;
		if (!policy_tree_look(t, packs ? STATE_PACKED : STATE_REMOVED))
			status = EXIT_FAULT;
	}
	if (!status && s->packed && !prune_archives(t))
		status = EXIT_FAULT;
	s->policy = status ? (struct kp_hash){{0}} : p->hash;
	s->when = time(NULL);
	if (s->packed && s->n_mounts == 0)
		s->n_mounts = 1; /* until it is known how many */
	if (state_write(t->state_path, s, &why))
		status = report_why(t->state_path, &why);
	return left ? EXIT_FAULT : status;
}

static void print_tree_name(const struct policy *p)
{
	report_text(p->name);
	fputs(": ", stdout);
	report_text(p->tree);
}

/* Print the commands that a run would run, as words for a shell. */
static void print_dry_run(const struct policy_tree *t)
{
	print_tree_name(t->policy);
	if (!policy_tree_needs_work(t)) {
		puts(": nothing to do");
		return;
	}
	printf(": %zu files are new: would run\n", t->anew ? t->state.n_files : t->n_new);
	for (size_t i = 0; i < t->policy->n_commands; i++) {
		const struct policy_command *c = &t->policy->commands[i];

		fputs("  kpack", stdout);
		for (size_t k = 0; k < c->n_words; k++) {
			KP_AUTO_FREE char *now = word_of(t, c, k);
			KP_AUTO_FREE char *word = shell_word(now);

			printf(" %s", word);
		}
		putchar('\n');
	}
}

/* Print what this run changed; SAVED_BEFORE are the bytes that earlier runs saved. */
static void print_done(const struct policy_tree *t, uint64_t saved_before)
{
	const struct policy_sums s = policy_tree_sums(t);
	uint64_t freed = s.saved > saved_before ? s.saved - saved_before : 0;
	char size[24];

	print_tree_name(t->policy);
	if (!s.fresh[STATE_CHANGED] && !s.fresh[STATE_REMOVED] &&
	    !s.fresh[STATE_PACKED] && !freed)
		puts(": nothing changed");
	else
		printf(": %zu files changed, %zu removed, %zu packed, %s freed\n",
		       s.fresh[STATE_CHANGED], s.fresh[STATE_REMOVED],
		       s.fresh[STATE_PACKED], report_size(freed, size));
}

/* Do for one policy what the options say: mount, print, or run.  Returns the exit status. */
static int apply_policy(const struct policy_args *a, const struct policy *p)
{
	struct policy_tree t;
	int status = EXIT_OK;

	/* of two policies for one tree it is not known which one is meant */
	if (a->mounts && p->overlaps)
		return EXIT_FAULT;
	/* mounting needs no look at the files, for which a machine that starts has no time */
	if (!policy_tree_open(&t, p, &a->places) ||
	    (!t.missing && !a->mounts && !policy_tree_look(&t, STATE_SEEN))) {
		status = EXIT_FAULT;
	} else if (t.missing) {
		if (!a->quiet && !a->mounts) {
			print_tree_name(p);
			puts(": does not exist");
		}
	} else if (a->mounts) {
		status = t.state.packed && !mount_tree(&t) ? EXIT_FAULT : EXIT_OK;
	} else if (a->dry) {
		print_dry_run(&t);
	} else {
		bool work = policy_tree_needs_work(&t);
		uint64_t saved = policy_tree_sums(&t).saved;

		status = work ? work_on_tree(&t) : EXIT_OK;
		if (!a->quiet && !status)
			print_done(&t, saved);
		fflush(stdout);
		/* what was unmounted for a run that failed comes back, too */
		if (t.state.packed && !a->no_mounts &&
		    (work || t.n_mounts < t.state.n_mounts) && !mount_tree(&t))
			status = EXIT_FAULT;
		if (!check_lacking(&t))
			status = EXIT_FAULT;
	}
	fflush(stdout);
	policy_tree_fini(&t);
	return status;
}

/*
 * Make the directory of the states, and lock a file in it that other users cannot open, so
 * that they cannot lock it.  -1: it failed, which was reported.
 */
static int lock_states(const char *dir)
{
	KP_AUTO_FREE char *path = xasprintf("%s/lock", dir);
	struct kpackx_error why = {0};
	int fd = -1;

	if (!below_make_root(dir, 0755, &why)) {
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
		if (fd >= 0)
			lock_wait(fd, path);
		else
			below_fail(&why, "cannot open");
	}
	if (fd < 0)
		report_why(path, &why);
	return fd;
}

/*
 * Runs follow one another.  So does --unmount, although it changes no state: a run that ended after
 * it would mount where packages are being installed.
 */
int cmd_apply(int argc, char **argv)
{
	struct policy_args a = {.places = {POLICY_DIR, STATE_DIR, NULL}};
	int n = options_parse(&cmd_apply_help, argc, &argv, &a);
	int lock = -1, status = EXIT_OK;
	struct policies list;
	struct stat st;
	bool fine;

	if (a.mounts + a.unmount + (a.dry || a.no_mounts) > 1)
		options_usage(&cmd_apply_help,
			      "--mounts, --unmount, and --dry-run or --no-mounts exclude "
			      "each other");
	a.named = n > 0;
	fine = policies_read(a.places.policies, argv, (size_t)n, &list);
	/*
	 * A wrong policy may be for a part of another one's tree, so no tree is changed.
	 * But mounts are removed in any case, and mounted again, because programs need them.
	 */
	if (!fine && !a.unmount)
		a.mounts = !a.dry && !a.no_mounts;
	if ((fine || a.mounts || a.unmount) &&
	    (list.count || (a.unmount && below_stat(a.places.states, &st) == 0))) {
		if (!a.dry && (lock = lock_states(a.places.states)) < 0)
			status = EXIT_FAULT;
		else if (a.unmount)
			status = unmount_all(&a, &list);
		else
			for (size_t i = 0; i < list.count; i++)
				if (!list.items[i].wrong &&
				    apply_policy(&a, &list.items[i]))
					status = EXIT_FAULT;
		lock_close(lock);
	}
	/* whoever installs packages wants to know what is still mounted, and no more */
	if (!fine && (!a.unmount || a.named))
		status = EXIT_FAULT;
	policies_fini(&list);
	return report_finish(status);
}

/* --- kpack status -------------------------------------------------------------------- */

/* LACKING are the GPUs whose code a reinstallation would have to bring, or NULL. */
static void print_status(const struct policy_tree *t, const char *lacking, bool complete)
{
	const struct state *s = &t->state;
	const struct policy_sums sums = policy_tree_sums(t);
	time_t when = (time_t)s->when;
	char text[32], size[24];
	struct tm tm;

	print_tree_name(t->policy);
	if (t->missing) {
		puts(": does not exist");
		return;
	}
	printf(": for %s\n", t->arch);
	for (size_t i = 0; i < t->policy->n_commands; i++) {
		fputs("  kpack", stdout);
		for (size_t k = 0; k < t->policy->commands[i].n_words; k++) {
			putchar(' ');
			report_text(t->policy->commands[i].words[k]);
		}
		putchar('\n');
	}
	if (when && gmtime_r(&when, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		printf("  last run: %s UTC\n", text);
	printf("  saved: %s: %zu files changed, %zu removed, %zu packed%s\n",
	       report_size(sums.saved, size), sums.n[STATE_CHANGED],
	       sums.n[STATE_REMOVED], sums.n[STATE_PACKED],
	       s->forgotten ? "; what was changed before the state was lost is not known"
			    : "");
	if (t->anew)
		puts(s->n_gpus
			     ? "  the policy or the GPUs changed, or the last run failed"
			     : "  not applied yet");
	else if (t->n_new)
		printf("  files that changed since: %zu\n", t->n_new);
	if (s->n_mounts || t->n_mounts)
		printf("  mounts: %zu of %zu\n", t->n_mounts, (size_t)s->n_mounts);
	if (t->gone)
		printf("  not in this machine now: %s\n", t->gone);
	if (lacking)
		printf("  lacks code for: %s (kpack apply names the packages)\n",
		       lacking);
	puts(complete ? "  complete" : "  not complete: run kpack apply");
}

static const char *const file_states[STATE_KINDS] = {NULL, "changed", "removed",
						     "packed"};

static const struct row file_rows[] = {
	ROW("path", ROW_JSON, struct state_file, path),
	ROW_WORDS("status", ROW_JSON, struct state_file, kind, file_states),
	ROW("size_before", ROW_JSON, struct state_file, before),
	ROW("size_after", ROW_JSON, struct state_file, size),
};

static json_t *status_json(const struct policy_tree *t, const char *lacking,
			   bool complete)
{
	json_t *files = json_array(), *commands = json_array();
	const struct policy *p = t->policy;
	const struct state *s = &t->state;

	for (size_t i = 0; i < p->n_commands; i++)
		json_array_append_new(
			commands,
			report_json_list((const char *const *)p->commands[i].words,
					 p->commands[i].n_words));
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].kind != STATE_SEEN)
			json_array_append_new(files,
					      rows_object(ROWS(file_rows), &s->files[i]));
	return json_pack("{so so so ss sb sI sI sI sb sb so so ss}", "name",
			 report_json_text(p->name), "tree", report_json_text(p->tree),
			 "commands", commands, "arch", t->arch, "complete", complete,
			 "last_run", (json_int_t)s->when, "files_new",
			 (json_int_t)(t->anew ? s->n_files : t->n_new), "bytes_saved",
			 (json_int_t)policy_tree_sums(t).saved, "forgotten", s->forgotten,
			 "packed", s->packed, "files", files, "mounts",
			 report_json_list((const char *const *)t->mounts, t->n_mounts),
			 "lacking", lacking ? lacking : "");
}

/* The status is 0 if all trees are complete, so that a script can ask for that. */
int cmd_status(int argc, char **argv)
{
	struct policy_args a = {.places = {POLICY_DIR, STATE_DIR, NULL}};
	int n = options_parse(&cmd_status_help, argc, &argv, &a), status = EXIT_OK;
	struct report_array array = {0};
	struct policies list;

	if (!policies_read(a.places.policies, argv, (size_t)n, &list))
		status = EXIT_FAULT;
	for (size_t i = 0; i < list.count; i++) {
		KP_AUTO_FREE char *lacking = NULL;
		KP_AUTO(policy_tree) t = {0};
		bool complete; /* kpack apply has nothing to do, or to say */

		if (list.items[i].wrong)
			continue;
		if (!policy_tree_open(&t, &list.items[i], &a.places) ||
		    (!t.missing && !policy_tree_look(&t, STATE_SEEN))) {
			status = EXIT_FAULT;
			continue;
		}
		if (!t.missing)
			lacking = policy_tree_lacking(&t);
		complete = t.missing || (!policy_tree_needs_work(&t) && !lacking &&
					 t.n_mounts >= t.state.n_mounts);
		if (!complete)
			status = EXIT_FAULT;
		if (a.json)
			report_array_add(&array, status_json(&t, lacking, complete));
		else
			print_status(&t, lacking, complete);
	}
	if (a.json)
		report_array_end(&array);
	policies_fini(&list);
	return report_finish(status);
}
