/* SPDX-License-Identifier: MIT */
/*
 * latency ROUNDS: measure the microseconds of open, read of 4 KiB at the start, and
 * close, for each file named on standard input, ROUNDS times, after one round that does
 * not count.  Prints the median, the 95th percentile and the mean.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "names.h"

static double visit(const char *name)
{
	char piece[4096];
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	int fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, piece, sizeof(piece)) < 0 || close(fd) != 0)
		die(name);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - start.tv_sec) * 1e6 +
	       (double)(end.tv_nsec - start.tv_nsec) / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long rounds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	double *us, sum = 0;
	size_t n = 0;

	if (rounds < 1) {
		fputs("usage: latency ROUNDS <NAMES\n", stderr);
		return 2;
	}
	take_names();
	us = calloc(n_names * (size_t)rounds + 1, sizeof(*us));
	if (!us || n_names == 0)
		die("names");
	for (size_t i = 0; i < n_names; i++)
		visit(names[i]);
	for (long r = 0; r < rounds; r++)
		for (size_t i = 0; i < n_names; i++)
			sum += us[n++] = visit(names[i]);
	qsort(us, n, sizeof(*us), compare);
	printf("%.3f %.3f %.3f\n", us[n / 2], us[n * 95 / 100], sum / (double)n);
	return 0;
}
