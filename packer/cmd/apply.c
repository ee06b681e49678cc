/* SPDX-License-Identifier: MIT */
/*
 * kpack apply: run the commands of policies for trees that changed since the last run.
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
#include "packer/cli/report.h"
#include "packer/cli/shell_word.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/scan/scan.h"
#include "packer/thin/policy.h"
#include "packer/thin/prune.h"

struct apply_command {
	struct policy_places places;
	bool dry, quiet;
	bool mounts, no_mounts, unmount;
	bool named; /* the policies are those that the user named */
};

static const struct option_help options[] = {
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")",
	 OPTION_PLACE(struct apply_command, places.policies)},
	{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")",
	 OPTION_PLACE(struct apply_command, places.states)},
	{0, "topology", "DIR", "where --arch auto looks for GPUs",
	 OPTION_PLACE(struct apply_command, places.topology)},
	{'n', "dry-run", NULL, "change nothing: print what would be run",
	 OPTION_PLACE(struct apply_command, dry)},
	{0, "mounts", NULL, "only mount what has to be mounted",
	 OPTION_PLACE(struct apply_command, mounts)},
	{0, "no-mounts", NULL, "mount nothing: another program does",
	 OPTION_PLACE(struct apply_command, no_mounts)},
	{0, "unmount", NULL, "only unmount, so that packages can be installed",
	 OPTION_PLACE(struct apply_command, unmount)},
	{'q', "quiet", NULL, "print only errors",
	 OPTION_PLACE(struct apply_command, quiet)},
	{0},
};

const struct command_help cmd_apply_help = {
	"apply",
	"[OPTION]... [NAME...]",
	"run the commands of policies for trees that changed",
	options,
	"Only files that changed since the last run are looked at.\n"
	"NAME is a policy of " POLICY_DIR "/NAME.conf; without names, all.",
};

/* --- mounts -------------------------------------------------------------------------- */

/*
 * Run kpackfs, which is beside this program: it decides where to mount, locks, and leaves nothing
 * half-done.  What it prints of places is dropped, its messages are not.  ARGV ends with NULL.
 * Returns whether it succeeded.
 */
static bool run_kpackfs(const char **argv)
{
	char *self = below_real("/proc/self/exe"), *program;
	posix_spawn_file_actions_t actions;
	int err, status = -1;
	pid_t child;

	if (!self || posix_spawn_file_actions_init(&actions)) {
		report_error(NULL, "/proc is not mounted");
		free(self);
		return false;
	}
	*strrchr(self, '/') = '\0';
	program = xasprintf("%s/kpackfs", self);
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
	free(program);
	free(self);
	return !err && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

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
	char *arch = xasprintf("arch=%s", t->arch);
	const char *argv[] = {"kpackfs", "--in-place", "-q", "-o", arch, tree, NULL};
	uint64_t before = t->state.n_mounts;
	struct kpackx_error why = {0};
	bool done = run_kpackfs(argv);

	free(arch);
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

/* --- packages ------------------------------------------------------------------------ */

/* Paths of files that share the reason for which their packages are asked for. */
struct path_list {
	char **items;
	size_t count, cap;
};

static void path_list_add(struct path_list *list, char *path)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] = path;
}

static void path_list_fini(struct path_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

/* Report TEXT, and the packages of the files that are to be installed again. */
static void report_reinstall(const struct policy_tree *t, const char *text,
			     const struct path_list *files)
{
	struct packages packages;
	char *names;

	packages_ask(NULL, (const char *const *)files->items, files->count, &packages);
	names = packages_names(&packages, (const char *const *)files->items,
			       files->count);
	report_error(t->policy->name, "%s, reinstall%s", text,
		     *names ? names : " what its files belong to");
	free(names);
	packages_fini(&packages);
}

/* Report what only a reinstallation of packages can bring.  false: there is some. */
static bool check_lacking(const struct policy_tree *t)
{
	char *gpus = policy_tree_lacking(t), *text;
	const struct state *s = &t->state;
	struct path_list files = {0};
	bool packs = false;

	for (size_t i = 0; i < t->policy->n_commands; i++)
		packs |= t->policy->commands[i].packs;
	if (t->gone)
		report_error(t->policy->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in --arch",
			     t->gone);
	for (size_t i = 0; i < s->n_files; i++)
		if (gpus ? policy_tree_lacks(t, &s->files[i])
			 : s->packed && !packs && s->files[i].kind != STATE_SEEN)
			path_list_add(&files, policy_tree_path(t, s->files[i].path));
	if (gpus || (s->packed && !packs)) {
		text = gpus ? xasprintf("%s: was not wanted yet when %zu files of %s "
					"lost code: to have its code",
					gpus, files.count, t->policy->tree)
			    : xasprintf("%s is packed, and stays so: to have it thin",
					t->policy->tree);
		report_reinstall(t, text, &files);
		free(text);
	}
	packs |= !s->packed;
	path_list_fini(&files);
	free(gpus);
	return !gpus && packs;
}

/* --- commands ------------------------------------------------------------------------ */

static bool is_known(const void *arg, const char *path, const struct file_identity *id)
{
	const struct policy_tree *t = arg;

	return state_knows(&t->state, path, id);
}

/*
 * The words of C, with the tree and the GPUs as they are now, and with OPTION behind the first one
 * unless it is NULL; words and array on the heap.
 */
static char **words_of(const struct policy_tree *t, const struct policy_command *c,
		       const char *option)
{
	char **words = xcalloc(c->n_words + 2, sizeof(*words)), **at = words;

	for (size_t i = 0; i < c->n_words; i++) {
		if (i == 1 && option)
			*at++ = xstrdup(option);
		if (i == c->arch)
			*at++ = xasprintf("%.*s%s", (int)c->arch_skip, c->words[i],
					  t->arch);
		else
			*at++ = xstrdup(i + 1 == c->n_words ? t->policy->tree
							    : c->words[i]);
	}
	return words;
}

static void words_free(char **words)
{
	for (size_t i = 0; words[i]; i++)
		free(words[i]);
	free(words);
}

static void print_dry_run(const struct policy_tree *t)
{
	for (size_t i = 0; i < t->policy->n_commands; i++) {
		char **words = words_of(t, &t->policy->commands[i], NULL);

		fputs("  kpack", stdout);
		for (size_t k = 0; words[k]; k++) {
			char *word = shell_word(words[k]);

			printf(" %s", word);
			free(word);
		}
		putchar('\n');
		words_free(words);
	}
}

/* Run one command in a child process, which has its own roots, locks and options. */
static int run_command(const struct policy_tree *t, const struct policy_command *c)
{
	const struct scan_skip skip = {.known = is_known, .arg = t};
	char **argv = words_of(t, c, "--quiet");
	int argc = (int)c->n_words + 1, status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends this run means it */
		optind = 0;                       /* getopt begins anew */
		exit((c->packs ? cmd_pack_changed
			       : cmd_thin_changed)(argc, argv, t->anew ? NULL : &skip));
	}
	if (child < 0)
		report_error(NULL, "cannot make a process: %s", strerror(errno));
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	words_free(argv);
	return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAULT;
}

/* --- archives ------------------------------------------------------------------------ */

/*
 * Find the packed files that an upgrade dropped, by their path in the tree: a package had them
 * in an earlier run, and none has them now, although one has something of their directory.
 */
static void find_dropped(struct policy_tree *t, struct path_list *dropped)
{
	struct state *s = &t->state;
	struct path_list dirs = {0};
	struct packages packages = {0};
	enum packages_answer answer;

	for (size_t i = 0; i < s->n_files; i++) {
		char *dir = policy_tree_path(t, s->files[i].path);

		strrchr(dir, '/')[1] = '\0';
		if (s->files[i].kind == STATE_PACKED &&
		    (!dirs.count || strcmp(dirs.items[dirs.count - 1], dir) != 0))
			path_list_add(&dirs, dir);
		else
			free(dir);
	}
	answer = packages_ask(NULL, (const char *const *)dirs.items, dirs.count,
			      &packages);
	if (answer == PACKAGES_FAILED)
		report_error(
			t->policy->name,
			"note: files of packages are not known: files that an upgrade "
			"dropped stay in the archives of %s",
			t->policy->tree);
	for (size_t i = 0; i < s->n_files && answer == PACKAGES_LISTED; i++) {
		struct state_file *f = &s->files[i];
		char *path = policy_tree_path(t, f->path);

		if (f->kind == STATE_PACKED && packages_have(&packages, path)) {
			f->owned = true;
		} else if (f->kind == STATE_PACKED && f->owned) {
			strrchr(path, '/')[1] = '\0';
			if (packages_have(&packages, path))
				path_list_add(dropped, xstrdup(f->path));
		}
		free(path);
	}
	packages_fini(&packages);
	path_list_fini(&dirs);
}

static bool has_path(const struct path_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], path) == 0)
			return true;
	return false;
}

static bool is_dropped(const void *arg, struct kp_span path)
{
	char *text = xstrndup((const char *)path.data, path.size);
	bool dropped = has_path(arg, text);

	free(text);
	return dropped;
}

/* Remove from the archives what nothing needs any more, and their directory with the last one. */
static bool prune_archives(struct policy_tree *t)
{
	struct path_list dropped = {0};
	struct prune prune = {.args = {.tree = t->policy->tree,
				       .force = true,
				       .file_goes = is_dropped,
				       .file_arg = &dropped}};
	struct kpackx_error why = {0};
	struct state *s = &t->state;
	size_t n, kept = 0;
	bool fine = true;

	policy_tree_archives(t, &n);
	if (n && strcmp(t->arch, "all") != 0 &&
	    arch_filter_add(&prune.args.filter, t->arch, &why)) {
		report_why(t->policy->name, &why);
		fine = false;
	} else if (n) {
		find_dropped(t, &dropped);
		fine = prune_run(&prune) == EXIT_OK;
	}
	for (size_t i = 0; i < s->n_files && fine; i++) {
		struct state_file *f = &s->files[i];

		if (f->kind == STATE_PACKED && has_path(&dropped, f->path)) {
			free(f->path);
			continue;
		}
		/* archives keep no code for GPUs that were wanted once */
		if (f->kind != STATE_SEEN && !gpu_list_covers(t->arch, s->gpus[f->gpus]))
			f->gpus = s->n_gpus - 1;
		s->files[kept++] = *f;
	}
	if (fine)
		s->n_files = kept;
	prune_close(&prune);
	path_list_fini(&dropped);
	policy_tree_archives(t, &n);
	if (fine && n == 0) {
		char *dir = policy_tree_path(t, KP_ARCHIVES_DIR);
		int lock;

		if (!leftovers_lock(dir, &lock, NULL)) {
			leftovers_remove(dir, "", NULL);
			lock_close(lock);
		}
		below_rmdir(dir);
		free(dir);
		s->packed = false;
		s->n_mounts = 0;
	}
	return fine;
}

/* --- a tree -------------------------------------------------------------------------- */

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
	if (state_write(t->state_path, s, &why)) {
		report_why(t->state_path, &why);
		status = EXIT_FAULT;
	}
	return left ? EXIT_FAULT : status;
}

static void print_name(const struct policy *p)
{
	report_text(p->name);
	fputs(": ", stdout);
	report_text(p->tree);
	fputs(": ", stdout);
}

static void print_sums(const struct policy_tree *t, uint64_t saved_before)
{
	const struct policy_sums s = policy_tree_sums(t);
	uint64_t freed = s.saved > saved_before ? s.saved - saved_before : 0;
	char size[24];

	print_name(t->policy);
	if (!s.fresh[STATE_CHANGED] && !s.fresh[STATE_REMOVED] &&
	    !s.fresh[STATE_PACKED] && !freed)
		puts("nothing changed");
	else
		printf("%zu files changed, %zu removed, %zu packed, %s freed\n",
		       s.fresh[STATE_CHANGED], s.fresh[STATE_REMOVED],
		       s.fresh[STATE_PACKED], report_size(freed, size));
}

static int apply_policy(const struct apply_command *a, const struct policy *p)
{
	struct policy_tree t;
	int status = EXIT_FAULT;
	uint64_t saved;

	/* of two policies for one tree it is not known which one is meant */
	if (a->mounts && p->overlaps)
		return EXIT_FAULT;
	/* mounting needs no look at the files, for which a machine that starts has no time */
	if (!policy_tree_open(&t, p, &a->places) ||
	    (!t.missing && !a->mounts && !policy_tree_look(&t, STATE_SEEN)))
		goto out;
	status = EXIT_OK;
	if (t.missing) {
		if (!a->quiet && !a->mounts) {
			print_name(p);
			puts("does not exist");
		}
	} else if (a->mounts) {
		status = t.state.packed && !mount_tree(&t) ? EXIT_FAULT : EXIT_OK;
	} else if (a->dry) {
		print_name(p);
		if (policy_tree_needs_work(&t)) {
			printf("%zu files are new: would run\n",
			       t.anew ? t.state.n_files : t.n_new);
			print_dry_run(&t);
		} else {
			puts("nothing to do");
		}
	} else {
		bool work = policy_tree_needs_work(&t);

		saved = policy_tree_sums(&t).saved;
		status = work ? work_on_tree(&t) : EXIT_OK;
		if (!a->quiet && !status)
			print_sums(&t, saved);
		fflush(stdout);
		/* what was unmounted for a run that failed comes back, too */
		if (t.state.packed && !a->no_mounts &&
		    (work || t.n_mounts < t.state.n_mounts) && !mount_tree(&t))
			status = EXIT_FAULT;
		if (!check_lacking(&t))
			status = EXIT_FAULT;
	}
out:
	fflush(stdout);
	policy_tree_fini(&t);
	return status;
}

/* --- the command --------------------------------------------------------------------- */

/*
 * Unmount what is mounted in the trees of policies; and of states, whose policies may be wrong or
 * gone, unless the user named some.
 */
static int unmount_all(const struct apply_command *a, const struct policies *list)
{
	const char *dir = a->places.states ? a->places.states : STATE_DIR;
	struct dirent **files = NULL;
	int n = a->named ? 0 : below_scandir(dir, &files, NULL), status = EXIT_OK;
	struct stat st;

	for (int i = 0; i < n; i++) {
		const char *end = strrchr(files[i]->d_name, '.');
		char *path = xasprintf("%s/%s", dir, files[i]->d_name);
		struct kpackx_error why = {0};
		struct state s = {0};

		if (end && strcmp(end, ".state") == 0 && !state_read(path, &s, &why) &&
		    s.packed && below_stat(s.tree, &st) == 0 && !unmount_tree(s.tree))
			status = EXIT_FAULT;
		state_fini(&s);
		free(path);
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

/*
 * Make the directory of the states, and lock a file in it that other users cannot open, so
 * that they cannot lock it.  -1: it failed, which was reported.
 */
static int lock_states(const struct apply_command *a)
{
	const char *dir = a->places.states ? a->places.states : STATE_DIR;
	char *path = xasprintf("%s/lock", dir);
	struct kpackx_error why = {0};
	kpack_error_t err = below_make_root(dir, 0755, &why);
	int fd = -1;

	if (!err) {
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
		if (fd < 0)
			err = below_fail(&why, "cannot open");
		else
			lock_wait(fd, path);
	}
	if (err) {
		report_why(path, &why);
		lock_close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

/*
 * Runs follow one another.  So does --unmount, although it changes no state: a run that ended after
 * it would mount where packages are being installed.
 */
static int apply_policies(const struct apply_command *a, const struct policies *list)
{
	const char *states = a->places.states ? a->places.states : STATE_DIR;
	int lock = -1, status = EXIT_OK;
	struct stat st;

	if (list->count == 0 && !(a->unmount && below_stat(states, &st) == 0))
		return EXIT_OK;
	if (!a->dry && (lock = lock_states(a)) < 0)
		return EXIT_FAULT;
	if (a->unmount)
		status = unmount_all(a, list);
	for (size_t i = 0; i < list->count && !a->unmount; i++)
		if (!list->items[i].wrong && apply_policy(a, &list->items[i]))
			status = EXIT_FAULT;
	lock_close(lock);
	return status;
}

int cmd_apply(int argc, char **argv)
{
	struct options o = {.help = &cmd_apply_help, .argc = argc, .argv = argv};
	struct apply_command c = {0};
	int status = options_read(&o, &c);
	struct policies list;
	const char *dir;
	bool fine;

	if (status >= 0)
		return status;
	if (c.mounts + c.unmount + (c.dry || c.no_mounts) > 1)
		return options_usage(&cmd_apply_help,
				     "--mounts, --unmount, and --dry-run or --no-mounts "
				     "exclude each other");
	c.named = optind < argc;
	dir = c.places.policies ? c.places.policies : POLICY_DIR;
	fine = policies_read(dir, argv + optind, (size_t)(argc - optind), &list);
	/*
	 * A wrong policy may be for a part of another one's tree, so no tree is changed.
	 * But mounts are removed in any case, and mounted again, because programs need them.
	 */
	if (!fine && !c.unmount)
		c.mounts = !c.dry && !c.no_mounts;
	status = EXIT_OK;
	if (fine || c.mounts || c.unmount)
		status = apply_policies(&c, &list);
	/* whoever installs packages wants to know what is still mounted, and no more */
	if (!fine && (!c.unmount || c.named))
		status = EXIT_FAULT;
	policies_fini(&list);
	return report_finish(status);
}
