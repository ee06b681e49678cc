/* SPDX-License-Identifier: MIT */
/*
 * kpack apply: run the commands of policies for trees that changed since the last run.
 *
 * A run of a tree takes the mounts in it away, runs each command of its policy in a child process,
 * and finds out from the files before and after what the command did.  After a pack, entries that
 * nothing needs any more go from the archives: code for other GPUs, and what the tree has again as
 * files.  Then the archives are mounted again.  If a command fails, or the run is killed, the
 * state does not have the policy, and the next run begins anew.
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
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/process.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/scan/scan.h"
#include "packer/thin/packages.h"
#include "packer/thin/policy.h"
#include "packer/archives/prune.h"

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
	bool done = run_kpackfs(argv);

	if (!done)
		report_error(tree, "its archives cannot be mounted");
	done = policy_tree_find_mounts(t) && done;
	/* after a failure something is missing, even if nothing was expected */
	if (done || t->state.n_mounts == 0)
		t->state.n_mounts = done ? t->n_mounts : 1;
	return (t->state.n_mounts == before || policy_tree_save(t)) && done;
}

/* --- commands ------------------------------------------------------------------------ */

/* The words of C as they are run: with the tree and the GPUs as they are now. */
static const char *word_of(const struct policy_tree *t, const struct policy_command *c,
			   size_t i)
{
	return i == c->arch         ? t->arch
	       : i + 1 < c->n_words ? c->words[i]
				    : t->policy->tree;
}

static void print_dry_run(const struct policy_tree *t)
{
	for (size_t i = 0; i < t->policy->n_commands; i++) {
		const struct policy_command *c = &t->policy->commands[i];

		fputs("  kpack", stdout);
		for (size_t k = 0; k < c->n_words; k++) {
			KP_AUTO_FREE char *word = shell_word(word_of(t, c, k));

			printf(" %s", word);
		}
		putchar('\n');
	}
}

static bool is_known(const void *arg, const char *path, const struct file_identity *id)
{
	const struct policy_tree *t = arg;

	return state_knows(&t->state, path, id);
}

/* Run one command in a child process, which has its own roots, locks and options. */
static int run_command(const struct policy_tree *t, const struct policy_command *c)
{
	const struct scan_skip skip = {.known = is_known, .arg = t};
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		char **argv = xcalloc(c->n_words + 2, sizeof(*argv)), **at = argv;

		for (size_t i = 0; i < c->n_words; i++) {
			*at++ = xstrdup(word_of(t, c, i));
			if (i == 0)
				*at++ = xstrdup("--quiet");
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends this run means it */
		optind = 0;                       /* getopt begins anew */
		status = (c->packs ? cmd_pack_changed : cmd_thin_changed)(
			(int)c->n_words + 1, argv, t->anew ? NULL : &skip);
		while (at > argv)
			free(*--at);
		free(argv);
		exit(status);
	}
	if (child < 0)
		report_error(NULL, "cannot make a process: %s", strerror(errno));
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAULT;
}

/* Remove from the archives what nothing needs any more, and their directory with the last one. */
static bool prune_archives(struct policy_tree *t)
{
	struct prune prune = {.args = {.tree = t->policy->tree, .force = true}};
	KP_AUTO_FREE char *dir = policy_tree_path(t, KP_ARCHIVES_DIR);
	struct kpackx_error why = {0};
	bool fine = true;
	size_t n;
	int lock;

	policy_tree_archives(t, &n);
	if (n && strcmp(t->arch, "all") != 0 &&
	    arch_filter_add(&prune.args.filter, t->arch, &why)) {
		report_why(t->policy->name, &why);
		fine = false;
	} else if (n) {
		fine = prune_run(&prune) == EXIT_OK;
	}
	prune_close(&prune);
	if (!fine)
		return false;
	policy_tree_forget_gpus(t);
	policy_tree_archives(t, &n);
	if (n)
		return true;
	if (!leftovers_lock(dir, &lock, NULL)) {
		leftovers_remove(dir, "", NULL);
		lock_close(lock);
	}
	below_rmdir(dir);
	t->state.packed = false;
	t->state.n_mounts = 0;
	return true;
}

/* --- a tree -------------------------------------------------------------------------- */

/* Run the commands, and write down what they did. */
static int work_on_tree(struct policy_tree *t)
{
	const struct policy *p = t->policy;
	struct state *s = &t->state;
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
	strcpy(s->policy, status ? "-" : p->hash);
	s->when = time(NULL);
	if (s->packed && s->n_mounts == 0)
		s->n_mounts = 1; /* until it is known how many */
	if (!policy_tree_save(t))
		status = EXIT_FAULT;
	return left ? EXIT_FAULT : status;
}

/* Report what only a reinstallation of packages can bring.  false: there is some. */
static bool check_lacking(const struct policy_tree *t)
{
	const struct policy *p = t->policy;
	const struct state *s = &t->state;
	KP_AUTO_FREE char *gpus = policy_tree_lacking(t);
	KP_AUTO_FREE char *names = NULL;
	bool thick = s->packed; /* although no command packs any more */
	char **files;
	size_t n = 0;

	if (t->gone)
		report_error(p->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in --arch",
			     t->gone);
	for (size_t i = 0; i < p->n_commands; i++)
		thick &= !p->commands[i].packs;
	if (!gpus && !thick)
		return true;
	files = xcalloc(s->n_files + 1, sizeof(*files));
	for (size_t i = 0; i < s->n_files; i++)
		if (gpus ? policy_tree_lacks(t, &s->files[i])
			 : s->files[i].kind != STATE_SEEN)
			files[n++] = policy_tree_path(t, s->files[i].path);
	names = packages_of(NULL, files, n);
	if (gpus)
		report_error(p->name,
			     "%s: was not wanted yet when %zu files of %s lost code: to "
			     "have its code, reinstall%s",
			     gpus, n, p->tree,
			     *names ? names : " what its files belong to");
	else
		report_error(p->name,
			     "%s is packed, and stays so: to have it thin, reinstall%s",
			     p->tree, *names ? names : " what its files belong to");
	while (n)
		free(files[--n]);
	free(files);
	return false;
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
	bool work;

	/* of two policies for one tree it is not known which one is meant */
	if (a->mounts && p->overlaps)
		return EXIT_FAULT;
	/* mounting needs no look at the files, for which a machine that starts has no time */
	if (!policy_tree_open(&t, p, &a->places) ||
	    (!t.missing && !a->mounts && !policy_tree_look(&t, STATE_SEEN)))
		goto out;
	status = EXIT_OK;
	work = policy_tree_needs_work(&t);
	if (t.missing) {
		if (!a->quiet && !a->mounts) {
			print_name(p);
			puts("does not exist");
		}
	} else if (a->mounts) {
		status = t.state.packed && !mount_tree(&t) ? EXIT_FAULT : EXIT_OK;
	} else if (a->dry) {
		print_name(p);
		if (work) {
			printf("%zu files are new: would run\n",
			       t.anew ? t.state.n_files : t.n_new);
			print_dry_run(&t);
		} else {
			puts("nothing to do");
		}
	} else {
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
	struct dirent **files = NULL;
	int n = a->named ? 0 : below_scandir(a->places.states, &files, NULL);
	int status = EXIT_OK;
	struct stat st;

	for (int i = 0; i < n; i++) {
		const char *end = strrchr(files[i]->d_name, '.');
		KP_AUTO_FREE char *path =
			xasprintf("%s/%s", a->places.states, files[i]->d_name);
		struct state s = {0};

		if (end && strcmp(end, ".state") == 0 && !state_read(path, &s, NULL) &&
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

/*
 * Runs follow one another: they lock a file beside the states that other users cannot open, so
 * that they cannot lock it.  So does --unmount, although it changes no state: a run that ended after
 * it would mount where packages are being installed.
 */
static int apply_policies(const struct apply_command *a, const struct policies *list)
{
	KP_AUTO_FREE char *path = xasprintf("%s/lock", a->places.states);
	struct kpackx_error why = {0};
	int lock = -1, status = EXIT_OK;
	struct stat st;

	if (list->count == 0 && !(a->unmount && below_stat(a->places.states, &st) == 0))
		return EXIT_OK;
	if (!a->dry) {
		if (!below_make_root(a->places.states, 0755, &why)) {
			lock = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
			if (lock < 0)
				below_fail(&why, "cannot open");
		}
		if (lock < 0) {
			report_why(path, &why);
			return EXIT_FAULT;
		}
		lock_wait(lock, path);
	}
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
	struct apply_command c = {
		.places = {.policies = POLICY_DIR, .states = STATE_DIR}};
	int status = options_read(&o, &c);
	struct policies list;
	bool fine;

	if (status >= 0)
		return status;
	if (c.mounts + c.unmount + (c.dry || c.no_mounts) > 1)
		return options_usage(&cmd_apply_help,
				     "--mounts, --unmount, and --dry-run or --no-mounts "
				     "exclude each other");
	c.named = optind < argc;
	fine = policies_read(c.places.policies, argv + optind, (size_t)(argc - optind),
			     &list);
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
