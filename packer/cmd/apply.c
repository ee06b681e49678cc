/* SPDX-License-Identifier: MIT */
/*
 * kpack apply runs the commands of policies for trees that changed since the last run; kpack status
 * prints what the policies are, what they did, and what is new.
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
#include <time.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/process.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/pack/undo.h"
#include "packer/scan/scan.h"
#include "packer/thin/policy.h"
#include "packer/archives/prune.h"

/* The command line of either. */
struct policy_run {
	struct policy_places places;
	bool dry, quiet, json;
	bool mounts, no_mounts, unmount;
	bool named; /* the policies are those that the user named */
};

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct policy_run, member)

/* clang-format off */
#define PLACES_OPTIONS                                                                     \
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")", AT(places.policies)},        \
	{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")", AT(places.states)},  \
	{0, "topology", "DIR", "where --arch auto looks for GPUs", AT(places.topology)}
/* clang-format on */

static const struct option_help apply_options[] = {
	PLACES_OPTIONS,
	{'n', "dry-run", NULL, "change nothing: print what would be run", AT(dry)},
	{0, "mounts", NULL, "only mount what has to be mounted", AT(mounts)},
	{0, "no-mounts", NULL, "mount nothing: another program does", AT(no_mounts)},
	{0, "unmount", NULL, "only unmount, so that packages can be installed",
	 AT(unmount)},
	OPTION_QUIET(struct policy_run, quiet),
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
	OPTION_JSON_ARRAY(struct policy_run, json),
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
	pid_t child;
	int err;

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
	return !err && program_wait(child) == 0;
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

static void print_name(const struct policy *p)
{
	report_text(p->name);
	fputs(": ", stdout);
	report_text(p->tree);
	fputs(": ", stdout);
}

/* --- commands ------------------------------------------------------------------------ */

/* The words of C as they are run: with the tree and the GPUs as they are now. */
static char *word_of(const struct policy_tree *t, const struct policy_command *c,
		     size_t i)
{
	return i == c->arch         ? t->arch
	       : i + 1 < c->n_words ? c->words[i]
				    : t->policy->tree;
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
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		return report_error(NULL, "cannot make a process: %s", strerror(errno));
	if (child == 0) {
		char **argv = xcalloc(c->n_words + 2, sizeof(*argv)), quiet[] = "--quiet";

		argv[0] = c->words[0];
		argv[1] = quiet;
		for (size_t i = 1; i < c->n_words; i++)
			argv[i + 1] = word_of(t, c, i);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever ends this run means it */
		status = (c->packs ? cmd_pack_changed : cmd_thin_changed)(
			(int)c->n_words + 1, argv, t->anew ? NULL : &skip);
		free(argv);
		exit(status);
	}
	status = program_wait(child);
	return status < 0 ? EXIT_FAULT : status;
}

/* Remove from the archives what nothing needs any more, and their directory with the last one. */
static bool prune_archives(struct policy_tree *t)
{
	struct prune prune = {.args = {.tree = t->policy->tree, .force = true}};
	KP_AUTO_FREE char *dir = policy_tree_path(t, KP_ARCHIVES_DIR);
	struct kpackx_error why = {0};
	int lock, status = EXIT_OK;
	size_t n;

	policy_tree_archives(t, &n);
	if (n && strcmp(t->arch, "all") != 0 &&
	    arch_filter_add(&prune.args.filter, t->arch, &why))
		status = report_why(t->policy->name, &why);
	else if (n)
		status = prune_run(&prune);
	for (size_t i = 0; i < prune.n_archives && !status; i++) {
		const struct prune_archive *a = &prune.archives[i];

		for (int k = PRUNE_STAYS + 1; k < PRUNE_REASONS; k++)
			t->n_pruned += a->n_entries[k];
		t->pruned_bytes += a->before > a->after ? a->before - a->after : 0;
	}
	prune_close(&prune);
	if (status)
		return false;
	policy_tree_forget_gpus(t);
	policy_tree_archives(t, &n);
	if (n)
		return true;
	if (!leftovers_lock(dir, &lock, NULL)) {
		leftovers_remove(dir, "", NULL);
		lock_close(lock);
	}
	if (below_access(dir, F_OK) == 0 && originals_forget(t->policy->tree, &why)) {
		report_why(NULL, &why);
		return false;
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

	/*
	 * A mount hides the files below it, and its archives are about to change.  A command
	 * must see the tree as packages left it.
	 */
	if (t->n_mounts && !(unmount_tree(p->tree) && policy_tree_look(t, STATE_SEEN)))
		return EXIT_FAULT;
	/* files remember for which list of GPUs they lost code, by its number */
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
	/* a state without its policy's hash is that of a run that failed */
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
	const char *whose;
	bool thick = s->packed; /* although no command packs any more */
	KP_AUTO_FREE const char **files = xcalloc(s->n_files + 1, sizeof(*files));
	size_t n = 0;

	if (t->gone)
		report_error(p->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in --arch",
			     t->gone);
	/* a tree that was packed stays so when the policy turns to thin: code that moved is not moved back */
	for (size_t i = 0; i < p->n_commands; i++)
		thick &= !p->commands[i].packs;
	if (!gpus && !thick)
		return true;
	for (size_t i = 0; i < s->n_files; i++)
		if (gpus ? policy_tree_lacks(t, &s->files[i])
			 : s->files[i].kind != STATE_SEEN)
			files[n++] = s->files[i].path;
	names = packages_of(NULL, p->tree, files, n);
	whose = *names ? names : " what its files belong to";
	if (gpus)
		report_error(p->name,
			     "%s: was not wanted yet when %zu file%s of %s lost code: to "
			     "have its code, reinstall%s",
			     gpus, n, plural(n), p->tree, whose);
	else
		report_error(p->name,
			     "%s is packed, and stays so: to have it thin, reinstall%s",
			     p->tree, whose);
	return false;
}

/* Print what undoes the policy of T: without it, its commands, the last one first. */
static void print_undo(const struct policy_run *a, const struct policy_tree *t)
{
	const struct policy *p = t->policy;
	KP_AUTO_FREE char *path = xasprintf("%s/%s.conf", a->places.policies, p->name);
	KP_AUTO_FREE char *tree = shell_word(p->tree);
	bool lost = false; /* code that nothing keeps */

	fputs("undo: rm", stdout);
	shell_put(stdout, path);
	for (size_t i = p->n_commands; i-- > 0;) {
		const struct policy_command *c = &p->commands[i];
		const char *keep = NULL;
		bool arch = false;

		for (size_t k = 1; k < c->n_words; k++) {
			if (strncmp(c->words[k], "--keep=", 7) == 0)
				keep = c->words[k] + 7;
			else if (strcmp(c->words[k - 1], "--keep") == 0)
				keep = c->words[k];
			arch |= strcmp(c->words[k], "--arch") == 0 ||
				strncmp(c->words[k], "--arch=", 7) == 0;
		}
		lost |= arch && !keep;
		if (c->packs) {
			printf(" && kpackfs --in-place --undo %s && kpack pack --undo %s",
			       tree, tree);
		} else if (keep) {
			fputs(" && kpack thin --undo", stdout);
			shell_put(stdout, keep);
			printf(" %s", tree);
		}
	}
	puts(lost ? "\n  and then reinstall what its files belong to" : "");
}

static int apply_policy(const struct policy_run *a, const struct policy *p)
{
	struct policy_tree t;
	struct policy_sums sums;
	int status = EXIT_FAULT;
	uint64_t saved;
	char size[24];
	size_t n_new;
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
	/*
	 * What there is to do: nothing, for packages that are not installed; only the mounts; only to
	 * say what would be run; or the work, its report, and the mounts again.
	 */
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
			n_new = t.anew ? t.state.n_files : t.n_new;
			printf("%zu file%s to look at: would run\n", n_new,
			       plural(n_new));
			for (size_t i = 0; i < p->n_commands; i++) {
				const struct policy_command *c = &p->commands[i];

				fputs("  kpack", stdout);
				for (size_t k = 0; k < c->n_words; k++)
					shell_put(stdout, word_of(&t, c, k));
				putchar('\n');
			}
		} else {
			puts("nothing to do");
		}
	} else {
		saved = policy_tree_sums(&t).saved;
		status = work ? work_on_tree(&t) : EXIT_OK;
		if (!a->quiet && !status) {
			sums = policy_tree_sums(&t);
			saved = sums.saved > saved ? sums.saved - saved : 0;
			print_name(p);
			if (t.n_pruned)
				printf("%zu object%s that nothing needs any more left "
				       "the archives, %s freed\n",
				       t.n_pruned, plural(t.n_pruned),
				       report_size(t.pruned_bytes, size));
			if (!sums.fresh[STATE_CHANGED] && !sums.fresh[STATE_REMOVED] &&
			    !sums.fresh[STATE_PACKED] && !saved) {
				if (!t.n_pruned)
					puts("nothing changed");
			} else {
				if (t.n_pruned)
					print_name(p);
				printf("%zu file%s changed, %zu removed, %zu packed, %s "
				       "freed\n",
				       sums.fresh[STATE_CHANGED],
				       plural(sums.fresh[STATE_CHANGED]),
				       sums.fresh[STATE_REMOVED],
				       sums.fresh[STATE_PACKED],
				       report_size(saved, size));
				print_undo(a, &t);
			}
		}
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

/* --- kpack apply --------------------------------------------------------------------- */

/* Read the command line, and the policies.  false: one of them is wrong, which was reported. */
static bool open_policies(struct policy_run *r, const struct command_help *help, int argc,
			  char **argv, struct policies *list)
{
	int n;

	*r = (struct policy_run){.places = {.policies = POLICY_DIR, .states = STATE_DIR}};
	n = options_parse(help, argc, &argv, r);
	if (r->mounts + r->unmount + (r->dry || r->no_mounts) > 1)
		options_usage(help, "--mounts, --unmount, and --dry-run or --no-mounts "
				    "exclude each other");
	r->named = n > 0;
	return policies_read(r->places.policies, argv, (size_t)n, list);
}

/* A policy under a wrong name is none: say where they are looked for. */
static void print_no_policy(const struct policy_run *r)
{
	report_text(r->places.policies);
	puts(": no policy (*.conf) here");
}

/*
 * Runs follow one another: they lock a file beside the states that other users cannot open, so
 * that they cannot lock it.  So does --unmount, although it changes no state: a run that ended after
 * it would mount where packages are being installed.
 */
int cmd_apply(int argc, char **argv)
{
	struct policy_run r;
	struct policies list;
	bool fine = open_policies(&r, &cmd_apply_help, argc, argv, &list);
	KP_AUTO_FREE char *path = xasprintf("%s/lock", r.places.states);
	struct kpackx_error why = {0};
	struct dirent **files = NULL;
	int lock = -1, n, status = EXIT_OK;
	struct stat st;

	/*
	 * A wrong policy may be for a part of another one's tree, so no tree is changed.
	 * But mounts are removed in any case, and mounted again, because programs need them.
	 */
	if (!fine && !r.unmount)
		r.mounts = !r.dry && !r.no_mounts;
	/* whoever installs packages wants to know what is still mounted, and no more */
	if (!fine && (!r.unmount || r.named))
		status = EXIT_FAULT;
	if (!fine && !r.mounts && !r.unmount)
		goto out;
	/* the hooks run without policies, too, and print nothing then */
	if (list.count == 0 && r.dry && fine)
		print_no_policy(&r);
	if (list.count == 0 && !(r.unmount && below_stat(r.places.states, &st) == 0))
		goto out;
	if (!r.dry) {
		if (!below_make_root(r.places.states, 0755, &why)) {
			lock = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
			if (lock < 0)
				below_fail(&why, "cannot open");
		}
		if (lock < 0) {
			status = report_why(path, &why);
			goto out;
		}
		lock_wait(lock, path);
	}
	/* unless the user named policies, there are also states whose policies are wrong or gone */
	n = r.unmount && !r.named ? below_scandir(r.places.states, &files, NULL) : 0;
	for (int i = 0; i < n; i++) {
		KP_AUTO_FREE char *file =
			xasprintf("%s/%s", r.places.states, files[i]->d_name);
		struct state s = {0};

		if (kp_span_ends(kp_span_str(file), ".state") &&
		    !state_read(file, &s, NULL) && s.packed &&
		    below_stat(s.tree, &st) == 0 && !unmount_tree(s.tree))
			status = EXIT_FAULT;
		state_fini(&s);
		free(files[i]);
	}
	free(files);
	for (size_t i = 0; i < list.count; i++) {
		const struct policy *p = &list.items[i];

		if (p->wrong)
			continue;
		if (!r.unmount)
			status = apply_policy(&r, p) ? EXIT_FAULT : status;
		else if ((below_stat(p->tree, &st) == 0 || errno != ENOENT) &&
			 !unmount_tree(p->tree))
			status = EXIT_FAULT;
	}
out:
	lock_close(lock);
	policies_fini(&list);
	return report_finish(status);
}

/* --- kpack status -------------------------------------------------------------------- */

/* Whether kpack apply has nothing to do, or to say. */
static bool is_complete(const struct policy_tree *t, const char *lacking)
{
	return t->missing || (!policy_tree_needs_work(t) && !lacking &&
			      t->n_mounts >= t->state.n_mounts);
}

static void print_tree(const struct policy_tree *t, const char *lacking)
{
	const struct state *s = &t->state;
	const struct policy_sums sums = policy_tree_sums(t);
	time_t when = (time_t)s->when;
	char text[32], size[24];
	struct tm tm;

	print_name(t->policy);
	if (t->missing) {
		puts("does not exist");
		return;
	}
	printf("for %s\n", t->arch);
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
	printf("  saved: %s: %zu file%s changed, %zu removed, %zu packed%s\n",
	       report_size(sums.saved, size), sums.n[STATE_CHANGED],
	       plural(sums.n[STATE_CHANGED]), sums.n[STATE_REMOVED], sums.n[STATE_PACKED],
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
	puts(is_complete(t, lacking) ? "  complete" : "  not complete: run kpack apply");
}

static json_t *json_tree(const struct policy_tree *t, const char *lacking)
{
	static const char *const kinds[STATE_KINDS] = {NULL, "changed", "removed",
						       "packed"};
	json_t *files = json_array(), *commands = json_array();
	const struct state *s = &t->state;

	for (size_t i = 0; i < t->policy->n_commands; i++) {
		const struct policy_command *c = &t->policy->commands[i];

		json_array_append_new(
			commands,
			report_json_list((const char *const *)c->words, c->n_words));
	}
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].kind != STATE_SEEN)
			json_array_append_new(
				files,
				json_pack("{so ss sI sI}", "path",
					  report_json_text(s->files[i].path), "status",
					  kinds[s->files[i].kind], "size_before",
					  (json_int_t)s->files[i].before, "size_after",
					  (json_int_t)s->files[i].size));
	return json_pack("{so so so ss sb sI sI sI sb sb so so ss}", "name",
			 report_json_text(t->policy->name), "tree",
			 report_json_text(t->policy->tree), "commands", commands, "arch",
			 t->arch, "complete", is_complete(t, lacking), "last_run",
			 (json_int_t)s->when, "files_new",
			 (json_int_t)(t->anew ? s->n_files : t->n_new), "bytes_saved",
			 (json_int_t)policy_tree_sums(t).saved, "forgotten", s->forgotten,
			 "packed", s->packed, "files", files, "mounts",
			 report_json_list((const char *const *)t->mounts, t->n_mounts),
			 "lacking", lacking ? lacking : "");
}

/* The status is 0 if kpack apply has nothing to do for any of the policies. */
int cmd_status(int argc, char **argv)
{
	struct report_array array = {0};
	struct policy_run r;
	struct policies list;
	bool fine = open_policies(&r, &cmd_status_help, argc, argv, &list);

	if (list.count == 0 && !r.json && fine)
		print_no_policy(&r);
	for (size_t i = 0; i < list.count; i++) {
		KP_AUTO_FREE char *lacking = NULL;
		struct policy_tree t;

		if (list.items[i].wrong)
			continue;
		if (policy_tree_open(&t, &list.items[i], &r.places) &&
		    (t.missing || policy_tree_look(&t, STATE_SEEN))) {
			if (!t.missing)
				lacking = policy_tree_lacking(&t);
			fine &= is_complete(&t, lacking);
			if (r.json)
				report_array_add(&array, json_tree(&t, lacking));
			else
				print_tree(&t, lacking);
		} else {
			fine = false;
		}
		policy_tree_fini(&t);
	}
	if (r.json)
		report_array_end(&array);
	policies_fini(&list);
	return report_finish(fine ? EXIT_OK : EXIT_FAULT);
}
