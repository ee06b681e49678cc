/* SPDX-License-Identifier: MIT */
#include "objcopy.h"
#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "packer/cli/shell_word.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

#define OBJCOPY "llvm-objcopy"

extern char **environ;

/* Where llvm-objcopy is looked for by a program with more rights than its user. */
#define SYSTEM_PATH "/usr/bin:/bin"

static bool is_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* ---- finding the program ---- */

static bool is_program(const char *path)
{
	struct below_target t;
	bool yes;

	if (below_target_open(&t, path) < 0)
		return false;
	yes = t.fd >= 0 && S_ISREG(t.st.st_mode) && below_target_access(&t, X_OK) == 0;
	below_target_close(&t);
	return yes;
}

/* DIR/NAME if it can be run, else NULL; the caller frees it. */
static char *program_in(const char *dir, size_t dir_size, const char *name)
{
	char *path = xasprintf("%.*s/%s", (int)dir_size, dir, name);

	if (is_program(path))
		return path;
	free(path);
	return NULL;
}

/*
 * llvm-objcopy next to PROGRAM, or next to this executable if PROGRAM has no directory.
 */
static char *find_beside(const char *program)
{
	const char *slash = strrchr(program, '/');
	char self[4096];
	ssize_t n;

	if (slash)
		return program_in(program, (size_t)(slash - program), OBJCOPY);
	n = below_readlink("/proc/self/exe", self, sizeof(self));
	while (n > 0 && self[n - 1] != '/')
		n--;
	return n > 1 ? program_in(self, (size_t)n - 1, OBJCOPY) : NULL;
}

/* The version in "llvm-objcopy-22", where TOOL is "llvm-objcopy"; 0: another name. */
static unsigned long version_of(const char *name, const char *tool)
{
	size_t n = strlen(tool);
	char *end;
	unsigned long version;

	if (strncmp(name, tool, n) != 0 || name[n] != '-' || name[n + 1] < '0' ||
	    name[n + 1] > '9')
		return 0;
	version = strtoul(name + n + 1, &end, 10);
	return *end ? 0 : version;
}

static bool is_better(unsigned long v, unsigned long than, unsigned long wanted)
{
	return v == wanted || ((than != wanted || wanted == 0) && v > than);
}

/*
 * llvm-objcopy in DIR: of version WANTED, else the newest, else without a version, else
 * NULL.
 */
static char *find_best(const char *dir, size_t dir_size, unsigned long wanted)
{
	char *path = xstrndup(dir, dir_size), *best = NULL, *found;
	DIR *d = below_opendir(path);
	unsigned long version = 0, v;
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		v = version_of(e->d_name, OBJCOPY);
		if (v == 0 || !is_better(v, version, wanted))
			continue;
		found = program_in(dir, dir_size, e->d_name);
		if (!found)
			continue;
		free(best);
		best = found;
		version = v;
	}
	if (d)
		closedir(d);
	free(path);
	return best ? best : program_in(dir, dir_size, OBJCOPY);
}

/*
 * The best llvm-objcopy in the first directory of PATH that has any.  The name without a
 * version is often an older LLVM's, which does not write the same bytes as the newest.
 */
static char *find_in_path(unsigned long wanted)
{
	/* with more rights than the user, nothing that the user names is run */
	const char *path = is_secure() ? SYSTEM_PATH : getenv("PATH");
	char *found = NULL;
	size_t n;

	for (const char *p = path; p && *p && !found; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		found = n ? find_best(p, n, wanted) : NULL;
	}
	return found;
}

char *objcopy_find(const char *program)
{
	const char *slash = strrchr(program, '/');
	/* the user can put a link to this program beside anything */
	char *found = is_secure() ? NULL : find_beside(program);

	return found ? found
		     : find_in_path(version_of(slash ? slash + 1 : program,
					       "clang-offload-bundler"));
}

/* ---- running it ---- */

/* Append WORD, which C owns from now on. */
static void add_word(struct objcopy *c, char *word)
{
	xgrow(&c->argv, c->n + 1, &c->room, sizeof(*c->argv));
	c->argv[c->n++] = word;
	c->argv[c->n] = NULL;
}

void objcopy_word(struct objcopy *c, const char *word)
{
	add_word(c, xstrdup(word));
}

void objcopy_print_word(struct objcopy *c, const char *fmt, ...)
{
	va_list ap;
	char *word;

	va_start(ap, fmt);
	if (vasprintf(&word, fmt, ap) < 0)
		xalloc_fail(0);
	va_end(ap);
	add_word(c, word);
}

void objcopy_fini(struct objcopy *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->argv[i]);
	free(c->argv);
}

static void print_word(const char *word)
{
	char *quoted = shell_word_in_quotes(word);

	fputs(quoted, stderr);
	free(quoted);
}

void objcopy_print_command(const char *program, const struct objcopy *c)
{
	fflush(stdout);
	print_word(program ? program : OBJCOPY);
	for (size_t i = 1; i < c->n; i++) {
		putc(' ', stderr);
		print_word(c->argv[i]);
	}
	putc('\n', stderr);
}

bool objcopy_run(const char *program, const struct objcopy *c)
{
	static char *const nothing[] = {NULL};
	int status = -1;
	pid_t pid;

	fflush(stdout);
	if (posix_spawn(&pid, program, NULL, NULL, c->argv,
			is_secure() ? nothing : environ) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
	return status == 0;
}
