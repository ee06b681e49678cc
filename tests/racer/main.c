/* SPDX-License-Identifier: MIT */
/*
 * racer [OPTION...] DIR COMMAND [ARGUMENT...]
 *
 * Run a command again and again, as root, on trees that belong to an ordinary user.  Each
 * time it is stopped before a call that names a file of theirs, where the user exchanges
 * this file, or a directory above it, for something hostile; then it goes on.  Afterwards
 * nothing of root's may have changed, nor be readable to the user.
 *
 * DIR/fixture  is copied to DIR/work before each run: home, which has the trees, and
 *              aside, which is empty; all of it belongs to the user
 * DIR/pristine is copied to DIR/canary: a tree of root's with the same names
 * DIR/secrets  what of the canaries only root may read: hexadecimal digits, one text a line
 *
 * --scene NAME      the first column of the output
 * --attack KIND     only this: none, link, swap, flip, dangling, hard, fifo, device, directory, away, fake, cut,
 *                   mount; with :N not the path but the Nth directory above; with @1 the second path of the call
 * --step N          only at this call
 * --runs N          about so many runs: of each kind of call and attack the first
 * --old             as on Linux 4.18, and a file system without nameless files
 * --count           only print the calls
 * --watch           no attack: look at what must hold at each moment (watch.h)
 * --kill N          only kill the run at this call, and leave the trees
 * --may-fail        the run without an attack may fail
 * -v                print each run, and what it says
 *
 * A line of the output is a fault: scene; place, which says where the exchanged path is with respect
 * to the paths in the command: below, operand, above, or beside (planted: before the run); attack; step; call; path; and what is
 * wrong: "changed", "touched" (only the time of the last change), "readable", "opened", "hangs" and
 * so on; with tabs between.  The exit status is 1 if there are any.
 */
#include "attack.h"
#include "calls.h"
#include "judge.h"
#include "run.h"
#include "watch.h"
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	const char *scene, *attack;
	size_t step, kill, runs;
	bool old, count, watch, may_fail, verbose;
};

/* One call of a run without attacks. */
struct event {
	const struct call *call;
	size_t count;
	char *path[2];        /* NULL: not ours */
	char kind[2];         /* what is there: d, f, l, o; - for nothing */
	uint64_t possible[2]; /* bit N: the user may exchange it N directories above */
};

struct plan {
	size_t step;
	struct attack attack;
};

struct racer {
	struct options o;
	char *const *command;
	struct area area;
	struct secrets secrets;
	struct listing canaries; /* before all runs */
	bool canaries_bad;       /* they have to be made anew */
	struct event *events;
	size_t event_count;
	struct plan *plans;
	size_t plan_count;
	size_t faults, runs, impossible;
	char watched[PATH_MAX + 128]; /* the last that was found */
	/* of this run */
	size_t step, at;
	const struct attack *attack;
	struct attack_done done;
	struct named names; /* the call that was attacked */
	int watch;          /* tells whether a FIFO or device was opened */
	struct listing attacked;
};

/* --- files --------------------------------------------------------------------------- */

static void spawn(const char *const *argv)
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char **)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		errx(2, "%s %s %s failed", argv[0], argv[1], argv[2]);
}

static void copy_tree(struct racer *r, const char *from, const char *to)
{
	char source[PATH_MAX], target[PATH_MAX];

	snprintf(source, sizeof(source), "%s/%s", r->area.dir, from);
	snprintf(target, sizeof(target), "%s/%s", r->area.dir, to);
	spawn((const char *[]){"rm", "-rf", target, NULL});
	spawn((const char *[]){"cp", "-a", source, target, NULL});
}

static void make_canaries(struct racer *r)
{
	copy_tree(r, "pristine", "canary");
	listing_fini(&r->canaries);
	listing_take(&r->canaries, r->area.canary);
	r->canaries_bad = false;
}

/* --- faults -------------------------------------------------------------------------- */

/* Whether DIR is PATH or a directory above it. */
static bool contains(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	while (n > 0 && dir[n - 1] == '/')
		n--;
	return strncmp(dir, path, n) == 0 && (path[n] == '/' || !path[n]);
}

/* Where the exchanged path is with respect to the paths in the command. */
static const char *place_of(const struct racer *r)
{
	const char *target = r->done.target, *place = "beside";

	if (r->attack->kind == ATTACK_NONE)
		return "planted";
	for (char *const *arg = r->command + 1; *arg; arg++) {
		const char *begin = strstr(*arg, r->area.home);
		char operand[PATH_MAX];

		if (!begin) /* it may be in an option's value: file=PATH,... */
			continue;
		snprintf(operand, sizeof(operand), "%.*s", (int)strcspn(begin, ","),
			 begin);
		if (contains(operand, target))
			return contains(target, operand) ? "operand" : "below";
		if (contains(target, operand))
			place = "above";
	}
	return place;
}

__attribute__((format(printf, 2, 3))) static void report_fault(struct racer *r,
							       const char *format, ...)
{
	char attack[32];
	va_list args;

	attack_print(r->attack, attack);
	printf("%s\t%s\t%s\t%zu\t%s\t%s\t", r->o.scene, place_of(r), attack, r->at,
	       r->names.call->name,
	       r->names.path[r->attack->which] + strlen(r->area.work) + 1);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	r->faults++;
}

static void judge_canaries(struct racer *r)
{
	struct listing now;
	const char *what;

	listing_take(&now, r->area.canary);
	if ((what = listing_difference(r->canaries.state, now.state)))
		report_fault(r, "changed: %s", what);
	else if (r->attack->kind != ATTACK_HARD &&
		 (what = listing_difference(r->attacked.times, now.times)))
		report_fault(r, "touched: %s", what);
	r->canaries_bad = what != NULL;
	listing_fini(&now);
}

static void judge_end(struct racer *r, const struct run_result *result)
{
	const char *m = result->message;

	if (result->end == RUN_HUNG)
		report_fault(r, "hangs");
	else if (result->end == RUN_KILLED)
		report_fault(r, "hangs: does the same again and again");
	else if (result->end == RUN_SIGNALLED)
		report_fault(r, "ends by signal %d (%s)", result->status,
			     strsignal(result->status));
	else if (result->status > 2)
		report_fault(r, "exit status %d", result->status);
	else if (result->status > 0 && !strchr(m, ':'))
		report_fault(r, "exit status %d without a message", result->status);
	if (strstr(m, "Sanitizer") || strstr(m, "runtime error"))
		report_fault(r, "sanitizer: %.300s", m);
}

static void judge_watch(struct racer *r)
{
	char buf[4096] __attribute__((aligned(8)));
	ssize_t n = read(r->watch, buf, sizeof(buf));
	const struct inotify_event *e = (const void *)buf;

	if (n > 0 && (e->mask & IN_OPEN))
		report_fault(r, "opened: a %s",
			     r->attack->kind == ATTACK_FIFO ? "FIFO" : "device");
}

static void judge(struct racer *r, const struct run_result *result)
{
	const char *what;

	judge_end(r, result);
	judge_canaries(r);
	judge_watch(r);
	/* a hard link has the content in the tree already */
	if (r->attack->kind != ATTACK_HARD &&
	    (what = secrets_find(&r->secrets, r->area.work, ATTACKER)))
		report_fault(r, "readable: a secret is in %s",
			     what + strlen(r->area.work) + 1);
}

/* A run with so many steps more than without an attack does not end. */
#define STEPS_FACTOR 8
#define STEPS_LIMIT 1000

/* --- steps --------------------------------------------------------------------------- */

static char kind_of(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return '-';
	return S_ISDIR(st.st_mode)   ? 'd'
	       : S_ISREG(st.st_mode) ? 'f'
	       : S_ISLNK(st.st_mode) ? 'l'
				     : 'o';
}

static bool record_step(const struct named *names, void *arg)
{
	struct racer *r = arg;
	struct event *e;

	r->events = reallocarray(r->events, r->event_count + 1, sizeof(*r->events));
	if (!r->events)
		err(2, "memory");
	e = &r->events[r->event_count++];
	*e = (struct event){.call = names->call, .count = names->count};
	for (size_t i = 0; i < names->count; i++) {
		e->path[i] = names->ours[i] ? strdup(names->path[i]) : NULL;
		e->kind[i] = names->ours[i] ? kind_of(names->path[i]) : '-';
		for (int n = 0; names->ours[i] && n < attack_levels(&r->area, e->path[i]);
		     n++)
			if (attack_possible(&r->area, e->path[i], n))
				e->possible[i] |= UINT64_C(1) << n;
	}
	return r->o.kill == 0 || r->event_count < r->o.kill;
}

/* Before the attack is seen by anybody else. */
static void begin_watch(struct racer *r)
{
	enum attack_kind k = r->attack->kind;

	if (k == ATTACK_FIFO || k == ATTACK_DEVICE)
		inotify_add_watch(r->watch, r->done.target, IN_OPEN | IN_DONT_FOLLOW);
	listing_take(&r->attacked, r->area.canary);
}

static void watch_step(const struct seccomp_notif *stopped, bool named, void *arg)
{
	struct racer *r = arg;
	const char *what = watch_look(stopped, r->area.home, named);

	if (!what || strcmp(what, r->watched) == 0)
		return;
	snprintf(r->watched, sizeof(r->watched), "%s", what);
	printf("%s\tmoment\tnone\t%zu\t-\t-\t%s\n", r->o.scene, r->event_count, what);
	r->faults++;
}

static bool attack_step(const struct named *names, void *arg)
{
	struct racer *r = arg;

	r->step++;
	if (r->step > STEPS_LIMIT + STEPS_FACTOR * r->event_count)
		return false;
	if (r->step > r->at && !r->done.done && r->attack->kind == ATTACK_FLIP)
		attack_do(&r->area, r->attack, r->names.path[r->attack->which], &r->done);
	else if (r->done.done &&
		 (r->attack->kind == ATTACK_SWAP || r->attack->kind == ATTACK_FLIP))
		attack_undo(&r->done);
	if (r->step != r->at)
		return true;
	r->names = *names;
	if (r->attack->which >= names->count || !names->ours[r->attack->which] ||
	    !attack_do(&r->area, r->attack, names->path[r->attack->which], &r->done))
		return false;
	begin_watch(r);
	return true;
}

/* --- runs ---------------------------------------------------------------------------- */

static void run_attack(struct racer *r, const struct plan *plan)
{
	struct run_options o = {.command = r->command,
				.dir = r->area.home,
				.old = r->o.old,
				.step = attack_step,
				.arg = r};
	struct run_result result;

	copy_tree(r, "fixture", "work");
	if (r->canaries_bad)
		make_canaries(r);
	r->step = 0;
	r->at = plan->step;
	r->attack = &plan->attack;
	r->done = (struct attack_done){.connection = -1};
	o.waits = r->attack->kind == ATTACK_MOUNT;
	r->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	run(&o, &result);
	attack_unmount(&r->done);
	r->runs++;
	if (r->attacked.state)
		judge(r, &result);
	else
		r->impossible++;
	if (r->o.verbose) {
		char attack[32];

		attack_print(r->attack, attack);
		fprintf(stderr, "%s at %zu: %s %s: %s, end %d status %d: %s\n", attack,
			r->at, r->names.call ? r->names.call->name : "",
			r->names.call ? r->names.path[r->attack->which] : "",
			r->attacked.state ? "done" : "impossible", result.end,
			result.status, result.message);
	}
	listing_fini(&r->attacked);
	r->names = (struct named){0};
	close(r->watch);
	free(result.message);
}

/* Run without attack: the calls go to events. */
static void run_plainly(struct racer *r)
{
	struct run_options o = {.command = r->command,
				.dir = r->area.home,
				.old = r->o.old,
				.step = record_step,
				.look = r->o.watch ? watch_step : NULL,
				.arg = r};
	struct run_result result;

	copy_tree(r, "fixture", "work");
	run(&o, &result);
	if (r->o.kill
		    ? result.end != RUN_KILLED
		    : result.end != RUN_EXITED || result.status > (r->o.may_fail ? 2 : 0))
		errx(2, "%s: without an attack: end %d, status %d: %s", r->o.scene,
		     result.end, result.status, result.message);
	free(result.message);
}

static void print_events(const struct racer *r)
{
	for (size_t i = 0; i < r->event_count; i++) {
		const struct event *e = &r->events[i];

		printf("%zu\t%s", i + 1, e->call->name);
		for (size_t k = 0; k < e->count; k++)
			printf("\t%c %s", e->kind[k],
			       e->path[k] ? e->path[k] + strlen(r->area.work) + 1 : "");
		putchar('\n');
	}
}

/* --- plans --------------------------------------------------------------------------- */

static void add_plan(struct racer *r, size_t step, const struct attack *a)
{
	r->plans = reallocarray(r->plans, r->plan_count + 1, sizeof(*r->plans));
	if (!r->plans)
		err(2, "memory");
	r->plans[r->plan_count++] = (struct plan){step, *a};
}

/* Whether an attack makes sense on what is there; nothing can be replaced, too. */
static bool is_sensible(const struct attack *a, char there)
{
	if (a->level > 0)
		return a->kind == ATTACK_LINK || a->kind == ATTACK_SWAP ||
		       a->kind == ATTACK_MOUNT || a->kind == ATTACK_FLIP ||
		       a->kind == ATTACK_AWAY || a->kind == ATTACK_FAKE;
	switch (a->kind) {
	case ATTACK_DIRECTORY:
	case ATTACK_HARD:
	case ATTACK_DANGLING:
		return there != 'd';
	case ATTACK_FAKE:
		return there == 'd';
	case ATTACK_NONE:
		return false;
	case ATTACK_AWAY:
		return there != '-';
	default:
		return true;
	}
}

static void plan_step(struct racer *r, size_t step)
{
	const struct event *e = &r->events[step - 1];

	for (size_t which = 0; which < e->count; which++) {
		int levels = e->path[which] ? attack_levels(&r->area, e->path[which]) : 0;

		for (int level = 0; level < levels; level++)
			for (int k = 0; k < ATTACK_KINDS; k++) {
				struct attack a = {k, level, which};

				if ((e->possible[which] >> level & 1) &&
				    is_sensible(&a, e->kind[which]))
					add_plan(r, step, &a);
			}
	}
}

static void make_plans(struct racer *r)
{
	struct attack only;

	if (r->o.step > r->event_count)
		errx(2, "%s has %zu steps", r->o.scene, r->event_count);
	for (size_t step = 1; step <= r->event_count; step++) {
		if (r->o.step && r->o.step != step)
			continue;
		if (!r->o.attack) {
			plan_step(r, step);
			continue;
		}
		if (!attack_parse(r->o.attack, &only))
			errx(2, "no such attack: %s", r->o.attack);
		add_plan(r, step, &only);
	}
}

/* What makes plans similar: the call, the attack, the kind of path, and how deep it is. */
static void describe_plan(const struct racer *r, const struct plan *p, char out[128])
{
	const struct event *e = &r->events[p->step - 1];
	const char *path = e->path[p->attack.which];
	/* attacks that are not about a link do not need every call */
	bool link = p->attack.kind == ATTACK_LINK;

	snprintf(out, 128, "%d %d %zu %s %c %d %d", p->attack.kind, p->attack.level,
		 p->attack.which, link ? e->call->name : "", e->kind[p->attack.which],
		 attack_levels(&r->area, path), strstr(path, "/.") != NULL);
}

/* Keep of similar plans the first; of these about as many as were asked for. */
static void thin_plans(struct racer *r)
{
	char(*seen)[128] = calloc(r->plan_count + 1, sizeof(*seen));
	size_t kept = 0, n;

	if (!seen)
		err(2, "memory");
	for (size_t i = 0; i < r->plan_count; i++) {
		describe_plan(r, &r->plans[i], seen[kept]);
		for (n = 0; strcmp(seen[n], seen[kept]) != 0; n++)
			;
		if (n == kept)
			r->plans[kept++] = r->plans[i];
	}
	free(seen);
	r->plan_count = kept < r->o.runs ? kept : r->o.runs;
	for (size_t i = 0; i < r->plan_count; i++)
		r->plans[i] = r->plans[i * kept / r->plan_count];
}

/* --- the program --------------------------------------------------------------------- */

static void parse_options(struct racer *r, int argc, char **argv)
{
	static const struct option long_options[] = {
		{"scene", required_argument, NULL, 'n'},
		{"attack", required_argument, NULL, 'a'},
		{"step", required_argument, NULL, 's'},
		{"runs", required_argument, NULL, 'r'},
		{"kill", required_argument, NULL, 'k'},
		{"old", no_argument, NULL, 'o'},
		{"count", no_argument, NULL, 'c'},
		{"watch", no_argument, NULL, 'w'},
		{"may-fail", no_argument, NULL, 'm'},
		{0}};
	int c;

	r->o = (struct options){.scene = "-"};
	while ((c = getopt_long(argc, argv, "+v", long_options, NULL)) != -1)
		switch (c) {
		case 'n':
			r->o.scene = optarg;
			break;
		case 'a':
			r->o.attack = optarg;
			break;
		case 's':
			r->o.step = strtoul(optarg, NULL, 10);
			break;
		case 'r':
			r->o.runs = strtoul(optarg, NULL, 10);
			break;
		case 'k':
			r->o.kill = strtoul(optarg, NULL, 10);
			break;
		case 'o':
			r->o.old = true;
			break;
		case 'c':
			r->o.count = true;
			break;
		case 'w':
			r->o.watch = true;
			break;
		case 'm':
			r->o.may_fail = true;
			break;
		case 'v':
			r->o.verbose = true;
			break;
		default:
			exit(2);
		}
	if (argc - optind < 2)
		errx(2, "usage: racer [OPTION...] DIR COMMAND [ARGUMENT...]");
	area_init(&r->area, argv[optind]);
	r->command = argv + optind + 1;
}

static void free_all(struct racer *r)
{
	for (size_t i = 0; i < r->event_count; i++)
		for (size_t k = 0; k < 2; k++)
			free(r->events[i].path[k]);
	for (size_t i = 0; i < r->secrets.count; i++)
		free(r->secrets.items[i].bytes);
	free(r->secrets.items);
	free(r->events);
	free(r->plans);
	listing_fini(&r->canaries);
}

int main(int argc, char **argv)
{
	struct racer r = {0};
	char secrets[PATH_MAX];

	parse_options(&r, argc, argv);
	if (setgroups(0, NULL) < 0)
		err(2, "only root has something to lose");
	snprintf(secrets, sizeof(secrets), "%s/secrets", r.area.dir);
	make_canaries(&r);
	run_plainly(&r);
	if (r.o.count) {
		print_events(&r);
	} else if (r.o.watch) {
		fprintf(stderr, "%s: %zu steps, watched, %zu faults\n", r.o.scene,
			r.event_count, r.faults);
	} else if (!r.o.kill) {
		secrets_read(&r.secrets, secrets);
		make_plans(&r);
		if (r.o.runs)
			thin_plans(&r);
		for (size_t i = 0; i < r.plan_count; i++)
			run_attack(&r, &r.plans[i]);
		fprintf(stderr, "%s: %zu steps, %zu runs, %zu not possible, %zu faults\n",
			r.o.scene, r.event_count, r.runs, r.impossible, r.faults);
	}
	free_all(&r);
	return r.faults != 0;
}
