/* SPDX-License-Identifier: MIT */
/*
 * unit-COMPONENT [-l] [PATTERN...]
 *
 * Runs the suites whose names match one of the patterns (all; "*" matches no slash), and prints
 * TAP; -l lists their names.  A suite's name is its file's, such as core/base/path.  Each runs in
 * a process of its own, so that no crash ends the others, and none sees what another one did to
 * the environment, signals or open files.
 */
#include "unit.h"
#include <fnmatch.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))
extern const struct unit_test *const __start_unit_tests[] HIDDEN;
extern const struct unit_test *const __stop_unit_tests[] HIDDEN;
/* weak: a program may have none */
extern const struct unit_suite *const __start_unit_suites[] HIDDEN __attribute__((weak));
extern const struct unit_suite *const __stop_unit_suites[] HIDDEN __attribute__((weak));

/* The tests of a file, which are adjacent and ordered in a list of all. */
struct suite {
	const struct unit_test *const *tests;
	size_t n;
};

static unsigned results; /* of all suites */
static bool failed;

static int compare(const void *a, const void *b)
{
	const struct unit_test *x = *(const struct unit_test *const *)a;
	const struct unit_test *y = *(const struct unit_test *const *)b;
	int c = strcmp(x->file, y->file);

	return c ? c : x->line - y->line;
}

static const char *name_of(const struct suite *s)
{
	static const char root[] = "tests/unit/";
	static char name[256];

	snprintf(name, sizeof(name), "%s", s->tests[0]->file + strlen(root));
	name[strlen(name) - strlen(".c")] = '\0';
	return name;
}

static bool is_wanted(const char *name, char **patterns)
{
	if (!*patterns)
		return true;
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, name, FNM_PATHNAME) == 0)
			return true;
	return false;
}

/* Print a line of cmocka's; a result gets its number among those of all suites. */
static size_t print_line(const char *suite, const char *line)
{
	bool bad = strncmp(line, "not ", 4) == 0;
	int rest = 0;

	/* later versions of cmocka than 1.1.5 begin each suite with the version, which prove takes once */
	if (strncmp(line, "1..", 3) == 0 || strncmp(line, "TAP version ", 12) == 0)
		return 0;
	if (sscanf(bad ? line + 4 : line, "ok %*u%n", &rest) < 0 || !rest) {
		fputs(line, stdout);
		return 0;
	}
	line += rest + (bad ? 4 : 0);
	/* cmocka calls a test that is skipped not ok, but does not count it as failed */
	bad &= strncmp(line, " # SKIP", 7) != 0;
	failed |= bad;
	printf("%sok %u - %s:%s", bad ? "not " : "", ++results, suite,
	       strncmp(line, " -", 2) == 0 ? line + 2 : line);
	return 1;
}

/* In the suite's own process. */
static int run_here(const struct suite *s, const char *name)
{
	struct CMUnitTest *tests = calloc(s->n, sizeof(*tests));
	CMFixtureFunction set_up = NULL, tear_down = NULL;
	int status;

	if (!tests)
		return 1;
	for (size_t i = 0; i < s->n; i++)
		tests[i] = s->tests[i]->test;
	for (const struct unit_suite *const *u = __start_unit_suites;
	     u < __stop_unit_suites; u++)
		if (strcmp((*u)->file, s->tests[0]->file) == 0) {
			set_up = (*u)->set_up;
			tear_down = (*u)->tear_down;
		}
	status = _cmocka_run_group_tests(name, tests, s->n, set_up, tear_down);
	free(tests);
	return status;
}

static void run(const struct suite *s)
{
	const char *name = name_of(s);
	char *line = NULL;
	size_t cap = 0, got = 0;
	int fds[2], status;
	bool bad = failed;
	FILE *from;
	pid_t pid;

	fflush(stdout);
	if (pipe(fds) || (pid = fork()) < 0) {
		perror(name);
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		exit(run_here(s, name));
	}
	close(fds[1]);
	from = fdopen(fds[0], "r");
	failed = false;
	while (getline(&line, &cap, from) > 0)
		got += print_line(name, line);
	free(line);
	fclose(from);
	waitpid(pid, &status, 0);
	/* a status that no failed test explains: a crash, a leak, or the suite's begin or end */
	if (got != s->n || (status && !failed)) {
		printf("not ok %u - %s: %zu of %zu tests ran\n# %s %d\n", ++results, name,
		       got, s->n, WIFSIGNALED(status) ? "signal" : "exit status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		failed = true;
	}
	failed |= bad;
}

/* The next suite of the list, which S is followed by. */
static bool next_suite(struct suite *s, const struct unit_test *const *end)
{
	s->tests += s->n;
	for (s->n = 0; s->tests + s->n < end &&
		       strcmp(s->tests[s->n]->file, s->tests[0]->file) == 0;
	     s->n++)
		;
	return s->n > 0;
}

int main(int argc, char **argv)
{
	bool lists = argc > 1 && strcmp(argv[1], "-l") == 0;
	size_t all = (size_t)(__stop_unit_tests - __start_unit_tests);
	const struct unit_test **list = malloc(all * sizeof(*list));
	struct suite s = {list, 0};
	unsigned n = 0;

	if (!list)
		return 1;
	memcpy(list, __start_unit_tests, all * sizeof(*list));
	qsort(list, all, sizeof(*list), compare);
	unsetenv("CMOCKA_MESSAGE_OUTPUT");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	while (next_suite(&s, list + all)) {
		if (!is_wanted(name_of(&s), argv + 1 + lists))
			continue;
		n++;
		if (lists)
			puts(name_of(&s));
		else
			run(&s);
	}
	free(list);
	if (!n) {
		fprintf(stderr, "%s: no such suite\n", argv[0]);
		return 1;
	}
	if (!lists)
		printf("1..%u\n", results);
	return failed;
}
