/* SPDX-License-Identifier: MIT */
#include "apply.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "packer/base/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"
#include "work.h"

/*
 * A run changes files, and the next pass looks whether something changed meanwhile.  More
 * passes are made only while others write the tree, too.
 */
enum { PASSES = 4 };

/* --- the state ----------------------------------------------------------------------- */

static const char *states_dir(const struct apply *a)
{
	return a->places.states ? a->places.states : STATE_DIR;
}

/*
 * Make the directory of the states, and lock a file in it that other users cannot open, so
 * that they cannot lock it.  -1: it failed, which was reported.
 */
static int open_states(const struct apply *a)
{
	const char *dir = states_dir(a);
	char *path = xasprintf("%s/lock", dir);
	struct kpackx_error why = {0};
	kpack_error_t err = below_make_root(dir, 0755, &why);
	int fd = -1;

	if (err) {
		report_why(dir, &why);
	} else {
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
		err = fd < 0 ? below_fail(&why, "%s: cannot open", path)
			     : lock_wait(fd, path, NULL, &why);
		if (err)
			report_why(NULL, &why);
	}
	if (err) {
		lock_close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

static bool save_state(struct policy_tree *t)
{
	struct kpackx_error why = {0};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	t->state.when = now.tv_sec;
	if (state_write(t->state_path, &t->state, &why)) {
		report_why(t->state_path, &why);
		return false;
	}
	return true;
}

/* --- work ---------------------------------------------------------------------------- */

/* Wait until a file that is written from now on gets another time. */
static void wait_tick(void)
{
	const struct timespec tick = {.tv_nsec = 30000000};

	nanosleep(&tick, NULL);
}

/* Look again: what is as it was before the last pass needs no look any more. */
static bool look_again(struct policy_tree *t)
{
	struct look before = t->look;
	struct kp_hash *same;
	size_t n;

	wait_tick();
	t->look = (struct look){0};
	if (!policy_tree_look(t)) {
		look_fini(&before);
		return false;
	}
	same = look_same(&before, &t->look, &n);
	look_fini(&before);
	free(t->state.seen);
	t->state.seen = same;
	t->state.n_seen = n;
	t->look.n_new = 0;
	for (size_t i = 0; i < t->look.n_hashes; i++)
		t->look.n_new += !state_has_seen(&t->state, &t->look.hashes[i]);
	return true;
}

static bool take_mounts_away(struct policy_tree *t)
{
	if (t->mounts.count == 0)
		return true;
	return mounts_remove(t->policy) && policy_tree_look(t);
}

/* Until it is known what is mounted, the tree stands for it, and is missing. */
static void expect_mount(struct policy_tree *t)
{
	if (t->policy->mount != POLICY_NO_MOUNT && t->state.n_places == 0 &&
	    policy_tree_sums(t).packed)
		state_add_place(&t->state, t->policy->tree);
}

static int work_on_tree(struct policy_tree *t)
{
	int status = take_mounts_away(t) ? EXIT_OK : EXIT_FAULT;

	for (int pass = 0; pass < PASSES && !status; pass++) {
		status = work_on(t, false);
		if (!status && !look_again(t))
			status = EXIT_FAULT;
		if (t->look.n_new == 0)
			break;
	}
	if (status)
		return status;
	t->anew = t->interrupted = t->lost = false;
	expect_mount(t);
	return save_state(t) ? EXIT_OK : EXIT_FAULT;
}

/* --- mounts -------------------------------------------------------------------------- */

/* Remember what is mounted, so that the next run sees what is missing. */
static bool note_places(struct policy_tree *t)
{
	struct kpackx_error why = {0};
	enum policy_mount mount = t->policy->mount;

	mount_table_fini(&t->mounts);
	if (mount_table_find(t->policy->tree, &t->mounts, &why)) {
		report_why(t->policy->tree, &why);
		return false;
	}
	state_clear_places(&t->state);
	for (size_t i = 0; i < t->mounts.count; i++)
		if (mount != POLICY_NO_MOUNT &&
		    t->mounts.items[i].overlay == (mount == POLICY_OVERLAY))
			state_add_place(&t->state, t->mounts.items[i].path);
	return save_state(t);
}

static int mount_tree(struct policy_tree *t)
{
	if (t->policy->mount == POLICY_NO_MOUNT) {
		if (t->state.n_places == 0)
			return EXIT_OK;
		return mounts_remove(t->policy) && note_places(t) ? EXIT_OK : EXIT_FAULT;
	}
	if (policy_tree_is_mounted(t))
		return EXIT_OK;
	/* a run that was killed may have left a part of an overlay, which no table of mounts has */
	if ((t->mounts.count || t->policy->mount == POLICY_OVERLAY) &&
	    !mounts_remove(t->policy))
		return EXIT_FAULT;
	if (!mounts_make(t->policy, t->arch))
		return EXIT_FAULT;
	return note_places(t) ? EXIT_OK : EXIT_FAULT;
}

/* --- what a run changes -------------------------------------------------------------- */

/* The files that are changed already, by path; one that is changed again is another file. */
struct earlier {
	struct earlier_file {
		char *path;
		uint64_t ino, size;
	} * files;
	size_t n;
};

static bool is_changed(const struct state_file *f)
{
	return f->kind == STATE_CHANGED || f->kind == STATE_LINK;
}

static void earlier_take(struct earlier *e, const struct state *s)
{
	e->n = 0;
	e->files = xcalloc(s->n_files + 1, sizeof(*e->files));
	for (size_t i = 0; i < s->n_files; i++)
		if (is_changed(&s->files[i]))
			e->files[e->n++] =
				(struct earlier_file){xstrdup(s->files[i].path),
						      s->files[i].ino, s->files[i].after};
}

static void earlier_fini(struct earlier *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->files[i].path);
	free(e->files);
}

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct earlier_file *)file)->path);
}

/* The files that are changed now, or would be, and were not so before. */
static size_t count_changed(const struct state *s, const struct earlier *e)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *f = &s->files[i];
		const struct earlier_file *was =
			bsearch(f->path, e->files, e->n, sizeof(*was), compare_path);

		n += is_changed(f) &&
		     (f->planned || !was || was->ino != f->ino || was->size != f->after);
	}
	return n;
}

/* --- the line ------------------------------------------------------------------------ */

static void print_begin(const struct policy *p)
{
	report_text(p->name);
	fputs(": ", stdout);
	report_text(p->tree);
	fputs(": ", stdout);
}

/* Files that were replaced meanwhile may make the second number smaller. */
static size_t more_than(size_t was, size_t is)
{
	return is > was ? is - was : 0;
}

static void print_sums(const struct policy_sums *was, const struct policy_sums *is,
		       size_t changed, const struct policy_tree *t, bool dry)
{
	bool pack = t->policy->action == POLICY_PACK;
	const char *would = dry ? "would be " : "";
	uint64_t gone = policy_sums_saved(is), gone_before = policy_sums_saved(was);
	char size[24];

	if (!changed && is->changed == was->changed && is->removed == was->removed &&
	    is->packed == was->packed && gone == gone_before) {
		puts(dry ? "nothing to do" : "nothing changed");
		return;
	}
	printf("%zu files %s%s, %zu %sremoved", changed, would,
	       pack ? "converted" : "thinned", more_than(was->removed, is->removed),
	       would);
	if (pack)
		printf(", %zu %spacked", more_than(was->packed, is->packed), would);
	if (!dry || !pack)
		printf(", %s %s",
		       report_size(gone > gone_before ? gone - gone_before : 0, size),
		       dry ? "would be freed" : "freed");
	putchar('\n');
}

/* Report TEXT, with the packages of the files WHICH. */
static void ask_for_packages(const struct policy_tree *t, enum policy_files which,
			     const char *text)
{
	struct owners owners;
	char *names;

	policy_tree_packages(t, which, &owners);
	names = owners_text(&owners);
	report_error(t->policy->name, "%s: reinstall%s", text,
		     owners.count ? names : " what its files belong to");
	owners_fini(&owners);
	free(names);
}

/* Report the GPUs that are new, and whose code is gone already.  false: there are some. */
static bool check_lacking(const struct policy_tree *t)
{
	char *gpus = policy_tree_lacking(t), *text;

	if (t->gone)
		report_error(t->policy->name,
			     "note: %s: not in this machine now; its code stays: to "
			     "remove it, name the other GPUs in arch=",
			     t->gone);
	if (!gpus)
		return true;
	text = xasprintf(
		"%s: its code was removed from %zu files of %s before it was wanted",
		gpus, policy_tree_count(t, POLICY_LACKING), t->policy->tree);
	ask_for_packages(t, POLICY_LACKING, text);
	free(text);
	free(gpus);
	return false;
}

/* Report a packed tree that is only to be thin: there is no way back but its packages. */
static bool check_packed(const struct policy_tree *t)
{
	char *text;

	if (t->policy->action == POLICY_PACK || !policy_tree_is_packed(t))
		return true;
	text = xasprintf("do=thin: %s is packed, and stays so", t->policy->tree);
	ask_for_packages(t, POLICY_CHANGED, text);
	free(text);
	return false;
}

/* --- a policy ------------------------------------------------------------------------ */

/* Carry out what has to be done.  The line is printed also if that fails half-way. */
static int apply_tree(const struct apply *a, struct policy_tree *t)
{
	struct policy_sums was = policy_tree_sums(t), is;
	struct earlier earlier;
	bool dry = a->dry;
	int status = EXIT_OK;

	earlier_take(&earlier, &t->state);
	if (policy_tree_needs_work(t))
		status = dry ? work_on(t, true) : work_on_tree(t);
	is = policy_tree_sums(t);
	/* what was unmounted for a run that failed comes back, too */
	if (!dry && !a->no_mounts && mount_tree(t))
		status = EXIT_FAULT;
	if (!a->quiet && !status) {
		print_begin(t->policy);
		print_sums(&was, &is, count_changed(&t->state, &earlier), t, dry);
		fflush(stdout);
	}
	earlier_fini(&earlier);
	return check_lacking(t) && !t->damaged ? status : EXIT_FAULT;
}

/* Whether P's tree does not exist: its packages are not installed, which is no fault. */
static bool is_missing(const struct apply *a, const struct policy *p)
{
	struct stat st;

	if (below_stat(p->tree, &st) == 0 || errno != ENOENT)
		return false;
	if (a->what == APPLY_ALL && !a->quiet) {
		print_begin(p);
		puts("does not exist");
	}
	return true;
}

static int apply_policy(const struct apply *a, const struct policy *p)
{
	struct policy_tree t;
	int status = EXIT_FAULT;

	if (is_missing(a, p))
		return EXIT_OK;
	/* it is not known which of the policies' mounts is the right one */
	if (a->what == APPLY_MOUNTS && p->overlaps)
		return EXIT_FAULT;
	if (a->what == APPLY_UNMOUNT)
		return mounts_remove(p) ? EXIT_OK : EXIT_FAULT;
	if (!policy_tree_open(&t, p, &a->places))
		status = EXIT_FAULT;
	else if (a->what == APPLY_MOUNTS)
		status = mount_tree(&t);
	else if (policy_tree_look(&t) && check_packed(&t))
		status = apply_tree(a, &t);
	policy_tree_fini(&t);
	return status;
}

/*
 * Runs that change something follow one another.  So does --unmount, although it has no state: a
 * run that ended after it would mount where packages are being installed.
 */
static int apply_all(const struct apply *a, const struct policies *list)
{
	int status = EXIT_OK;

	if (!a->dry && !mounts_lock())
		return EXIT_FAULT;
	for (size_t i = 0; i < list->count; i++) {
		int one = apply_policy(a, &list->items[i]);

		status = one > status ? one : status;
	}
	mounts_unlock();
	return status;
}

int apply_policies(const struct apply *a, const struct policies *list)
{
	int lock = -1, status;

	if (list->count == 0)
		return EXIT_OK;
	if (!a->dry && a->what != APPLY_UNMOUNT) {
		lock = open_states(a);
		if (lock < 0)
			return EXIT_FAULT;
	}
	status = apply_all(a, list);
	lock_close(lock);
	return status;
}
