/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without a fuzzer over every file named on the command line, and
 * every file of every directory named.  Prints TAP, one test per argument.  A failure is
 * a crash, as under the fuzzer.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Run one file; prints its name to stderr first, so that it is the last line before a
 * crash.
 */
static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return -1;
	uint8_t *data = NULL;
	size_t size = 0;
	int result = -1;
	struct stat st;
	if (fstat(fileno(f), &st) != 0)
		goto out;
	size = (size_t)st.st_size;
	/* allocated at the exact size, so that a sanitizer detects reads past the end */
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, f) != size)
		goto out;
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, size);
	result = 0;
out:
	free(data);
	fclose(f);
	return result;
}

static int skip_dots(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Returns the number of files run, or -1. */
static int run_dir(const char *dir)
{
	struct dirent **names;
	int n = scandir(dir, &names, skip_dots, alphasort);
	int count = n;
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		if (asprintf(&path, "%s/%s", dir, names[i]->d_name) < 0)
			path = NULL;
		if (!path || run_file(path) != 0)
			count = -1;
		free(path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return count;
}

int main(int argc, char **argv)
{
	int failed = 0;
	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++) {
		struct stat st;
		errno = 0;
		int count = -1;
		if (stat(argv[i], &st) == 0)
			count = S_ISDIR(st.st_mode) ? run_dir(argv[i])
						    : run_file(argv[i]) + 1;
		if (count > 0) {
			printf("ok %d - %s: %d inputs\n", i, argv[i], count);
		} else {
			printf("not ok %d - %s: %s\n", i, argv[i],
			       errno ? strerror(errno) : "no input");
			failed = 1;
		}
		fflush(stdout);
	}
	return failed;
}
