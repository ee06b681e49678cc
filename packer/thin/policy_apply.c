/* SPDX-License-Identifier: MIT */
#include "policy_apply.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/base/strbuf.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"

/*
 * A run changes files, and the next pass looks whether something changed meanwhile.  More
 * passes are made only while others write the tree, too.
 */
enum { PASSES = 4 };

/* --- work ---------------------------------------------------------------------------- */

static bool save_state(struct policy_tree *t)
{
	struct kpackx_error why = {0};

	t->state.when = time(NULL);
	if (!state_write(t->state_path, &t->state, &why))
		return true;
	report_why(t->state_path, &why);
	return false;
}

/* Look again: what is as it was before the last pass needs no look any more. */
static bool look_again(struct policy_tree *t)
{
	/* a file that is written from now on gets another time */
	const struct timespec tick = {.tv_nsec = 30000000};
	struct look before = t->look;
	size_t n = 0;
	bool fine;

	nanosleep(&tick, NULL);
	t->look = (struct look){0};
	fine = policy_tree_look(t);
	free(t->state.seen);
	t->state.seen = xcalloc(before.count + 1, sizeof(*t->state.seen));
	for (size_t i = 0; i < before.count && fine; i++) {
		const struct kp_hash *hash = &before.items[i].hash;

		if (before.items[i].sure &&
		    state_find_hash(hash, t->look.items, t->look.count,
				    sizeof(*t->look.items)))
			t->state.seen[n++] = *hash;
	}
	t->state.n_seen = n;
	/* files with equal hashes would be one file */
	t->look.n_new = t->look.count - n;
	free(before.items);
	return fine;
}

static int work_on_tree(struct policy_tree *t)
{
	const struct policy *p = t->policy;

	if (t->mounts.count &&
	    !(mounts_remove(p->tree, p->mount == POLICY_OVERLAY) && policy_tree_look(t)))
		return EXIT_FAULT;
	for (int pass = 0; pass < PASSES; pass++) {
		int status = work_on(t, false);

		if (status || !look_again(t))
			return EXIT_FAULT;
		if (t->look.n_new == 0)
			break;
	}
	t->anew = t->interrupted = t->lost = false;
	if (t->missing) /* since it became empty */
		state_clear_places(&t->state);
	/* until it is known what is mounted, the tree stands for it, and is missing */
	if (p->mount != POLICY_NO_MOUNT && t->state.n_places == 0 &&
	    policy_tree_sums(t).packed)
		state_add_place(&t->state, p->tree);
	return save_state(t) ? EXIT_OK : EXIT_FAULT;
}

/* Mount what the policy says, and remember it, so that the next run sees what is missing. */
static bool mount_tree(struct policy_tree *t)
{
	const char *tree = t->policy->tree;
	enum policy_mount kind = policy_tree_mount(t);
	bool none = kind == POLICY_NO_MOUNT, overlay = kind == POLICY_OVERLAY;

	if (t->missing || none ? t->state.n_places == 0 : policy_tree_is_mounted(t))
		return true;
	/* a run that was killed may have left a part of an overlay, which no table of mounts has */
	if ((none || overlay || t->mounts.count) && !mounts_remove(tree, overlay))
		return false;
	if ((!none && !mounts_make(tree, kind, t->arch)) ||
	    !mount_table_find(tree, &t->mounts))
		return false;
	t->state.mount = kind;
	state_clear_places(&t->state);
	for (size_t i = 0; i < t->mounts.count && !none; i++)
		if (t->mounts.items[i].overlay == overlay)
			state_add_place(&t->state, t->mounts.items[i].path);
	return save_state(t);
}

/* --- the line ------------------------------------------------------------------------ */

static void print_begin(const struct policy *p)
{
	report_text(p->name);
	fputs(": ", stdout);
	report_text(p->tree);
	fputs(": ", stdout);
}

static void print_sums(const struct policy_tree *t, uint64_t saved_before, bool dry)
{
	bool pack = t->policy->action == POLICY_PACK;
	const char *would = dry ? "would be " : "";
	const struct policy_sums s = policy_tree_sums(t);
	size_t changed = s.fresh[STATE_THINNED] + s.fresh[STATE_CONVERTED];
	uint64_t freed = s.saved > saved_before ? s.saved - saved_before : 0;
	char size[24];

	print_begin(t->policy);
	if (!changed && !s.fresh[STATE_REMOVED] && !s.fresh[STATE_PACKED] && !freed) {
		puts(dry ? "nothing to do" : "nothing changed");
		return;
	}
	printf("%zu files %s%s, %zu %sremoved", changed, would,
	       pack ? "converted" : "thinned", s.fresh[STATE_REMOVED], would);
	if (pack)
		printf(", %zu %spacked", s.fresh[STATE_PACKED], would);
	if (!dry || !pack)
		printf(", %s %sfreed", report_size(freed, size), would);
	putchar('\n');
}

/* Report what only a reinstallation of packages can bring.  false: there is some. */
static bool check_lacking(const struct policy_tree *t)
{
	char *gpus = policy_tree_lacking(t);
	bool packed = t->policy->action == POLICY_THIN && policy_tree_is_packed(t);

	if (t->gone)
		report_error(t->policy->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in arch=",
			     t->gone);
	for (int i = 0; i < 2; i++) {
		struct owners owners;
		char *names, *text;
		size_t n;

		if (i == 0 ? !packed : !gpus)
			continue;
		n = policy_tree_packages(
			t, i == 0 ? policy_file_packed : policy_file_lacks, &owners);
		names = owners_text(&owners);
		text = i == 0 ? xasprintf("do=thin: %s is packed, and stays so",
					  t->policy->tree)
			      : xasprintf("%s: its code was removed from %zu files of %s "
					  "before it was wanted",
					  gpus, n, t->policy->tree);
		report_error(t->policy->name, "%s: reinstall%s", text,
			     owners.count ? names : " what its files belong to");
		owners_fini(&owners);
		free(names);
		free(text);
	}
	packed |= gpus != NULL;
	free(gpus);
	return !packed;
}

/* --- policies ------------------------------------------------------------------------ */

static int apply_policy(const struct apply *a, const struct policy *p)
{
	struct policy_tree t;
	int status = EXIT_FAULT;
	uint64_t saved;

	/* it is not known which of the policies' mounts is the right one */
	if (a->what == APPLY_MOUNTS && p->overlaps)
		return EXIT_FAULT;
	if (!policy_tree_open(&t, p, &a->places)) {
		status = EXIT_FAULT;
	} else if (t.missing) {
		status = EXIT_OK;
		if (a->what == APPLY_ALL && !a->quiet) {
			print_begin(p);
			puts("does not exist");
		}
	} else if (a->what == APPLY_MOUNTS) {
		status = mount_tree(&t) ? EXIT_OK : EXIT_FAULT;
	} else if (policy_tree_look(&t)) {
		saved = policy_tree_sums(&t).saved;
		status = EXIT_OK;
		if (policy_tree_needs_work(&t))
			status = a->dry ? work_on(&t, true) : work_on_tree(&t);
		/* what was unmounted for a run that failed comes back, too */
		if (!a->dry && !a->no_mounts && !mount_tree(&t))
			status = EXIT_FAULT;
		if (!a->quiet && !status)
			print_sums(&t, saved, a->dry);
		fflush(stdout);
		if (!check_lacking(&t) || t.damaged)
			status = EXIT_FAULT;
	}
	policy_tree_fini(&t);
	return status;
}

/*
 * Unmount what is mounted in the trees of policies; of states, too, whose policies are wrong
 * or gone, unless the user named some.  Returns an exit status: only for what stays.
 */
static int unmount_all(const struct apply *a, const struct policies *list)
{
	const char *dir = a->places.states ? a->places.states : STATE_DIR;
	struct dirent **files;
	int n = a->named ? 0 : below_scandir(dir, &files, NULL), status = EXIT_OK;

	for (int i = 0; i < n; i++) {
		const char *end = strrchr(files[i]->d_name, '.');
		char *path = xasprintf("%s/%s", dir, files[i]->d_name);
		struct kpackx_error why = {0};
		struct state s = {0};

		if (end && strcmp(end, ".state") == 0 && !state_read(path, &s, &why) &&
		    s.n_places && !mounts_remove(s.tree, false))
			status = EXIT_FAULT;
		state_fini(&s);
		free(path);
		free(files[i]);
	}
	if (n > 0 || (n == 0 && !a->named))
		free(files);
	for (size_t i = 0; i < list->count; i++) {
		const struct policy *p = &list->items[i];
		struct stat st;

		if (!p->wrong && (below_stat(p->tree, &st) == 0 || errno != ENOENT) &&
		    !mounts_remove(p->tree, p->mount == POLICY_OVERLAY))
			status = EXIT_FAULT;
	}
	return status;
}

/*
 * Make the directory of the states, and lock a file in it that other users cannot open, so
 * that they cannot lock it.  -1: it failed, which was reported.
 */
static int open_states(const struct apply *a)
{
	const char *dir = a->places.states ? a->places.states : STATE_DIR;
	char *path = xasprintf("%s/lock", dir);
	struct kpackx_error why = {0};
	kpack_error_t err = below_make_root(dir, 0755, &why);
	int fd = -1;

	if (!err) {
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
		err = fd < 0 ? below_fail(&why, "cannot open")
			     : lock_wait(fd, path, NULL, &why);
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
 * Runs that change something follow one another.  So does --unmount, although it changes no
 * state: a run that ended after it would mount where packages are being installed.
 */
int apply_policies(const struct apply *a, const struct policies *list)
{
	int lock = -1, status = EXIT_OK;

	if (a->what == APPLY_UNMOUNT) {
		status = mounts_lock() ? unmount_all(a, list) : EXIT_FAULT;
		mounts_unlock();
		return status;
	}
	if (list->count == 0)
		return EXIT_OK;
	if (!a->dry && ((lock = open_states(a)) < 0 || !mounts_lock())) {
		lock_close(lock);
		return EXIT_FAULT;
	}
	for (size_t i = 0; i < list->count; i++)
		if (!list->items[i].wrong && apply_policy(a, &list->items[i]))
			status = EXIT_FAULT;
	mounts_unlock();
	lock_close(lock);
	return status;
}

/* --- the unit ------------------------------------------------------------------------ */

/* Add PATH as one word: systemd.syntax(7), % of systemd.unit(5), and $ of commands. */
static void put_word(struct kp_compose *c, const char *path, bool command)
{
	kp_compose_str(c, "\"");
	for (; *path; path++)
		kp_compose_print(c, "%s%c",
				 *path == '"' || *path == '\\' ? "\\"
				 : *path == '%'                ? "%"
				 : *path == '$' && command     ? "$"
							       : "",
				 *path);
	kp_compose_str(c, "\"");
}

static void put_command(struct kp_compose *c, const char *key, const char *program,
			const char *dir, const char *option)
{
	kp_compose_print(c, "%s=", key);
	put_word(c, program, true);
	kp_compose_str(c, " apply ");
	if (strcmp(dir, POLICY_DIR) != 0) {
		kp_compose_str(c, "--policy-dir ");
		put_word(c, dir, true);
		kp_compose_str(c, " ");
	}
	kp_compose_print(c, "%s\n", option);
}

bool unit_print(const char *dir, const struct policies *list)
{
	char *program = below_real("/proc/self/exe"), *real = below_real(dir);
	struct kp_compose c = {0};
	bool any = false;

	if (!program) {
		report_error(NULL, "/proc is not mounted");
		free(real);
		return false;
	}
	kp_compose_str(&c, "[Unit]\n"
			   "Description=Kernels in the trees that have policies\n"
			   "Documentation=man:kpack-apply(1)\n");
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].wrong || list->items[i].mount == POLICY_NO_MOUNT)
			continue;
		any = true;
		kp_compose_str(&c, "RequiresMountsFor=");
		put_word(&c, list->items[i].tree, false);
		kp_compose_str(&c, "\n");
	}
	kp_compose_str(&c, "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
	put_command(&c, "ExecStart", program, real ? real : dir, "--mounts");
	put_command(&c, "ExecStop", program, real ? real : dir, "--unmount");
	/* the daemons stay, and serve open files even after the mounts are gone */
	kp_compose_str(&c, "KillMode=process\n");
	if (c.no_memory)
		xalloc_fail(0);
	if (any)
		fputs(c.text, stdout);
	kp_compose_fini(&c);
	free(real);
	free(program);
	return true;
}
