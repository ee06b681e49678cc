/* SPDX-License-Identifier: MIT */
/* open ARCHIVE: measure the milliseconds of kpack_open, and the memory per entry. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "core/archive/archive.h"

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

static long status_kib(const char *field)
{
	char line[256];
	long value = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			sscanf(line + strlen(field), ": %ld", &value);
	if (f)
		fclose(f);
	return value;
}

int main(int argc, char **argv)
{
	kpack_archive_t archive;
	struct kpackx_error why = {0};

	if (argc != 2) {
		fputs("usage: open ARCHIVE\n", stderr);
		return 2;
	}
	size_t heap = heap_bytes();
	long rss = status_kib("VmRSS");
	double start = now_ms();
	if (kpackx_open(argv[1], &archive, &why) != KPACK_SUCCESS) {
		fprintf(stderr, "open: %s: %s\n", argv[1], why.text);
		return 1;
	}
	double ms = now_ms() - start;
	heap = heap_bytes() - heap;
	rss = status_kib("VmRSS") - rss;
	size_t entries = kp_archive_entry_count(archive);
	double per = entries ? (double)entries : 1;
	/* for contrib/bench/open */
	printf("%.2f %zu %.1f %.1f %ld\n", ms, entries, (double)heap / per,
	       (double)rss * 1024 / per, status_kib("VmHWM"));
	kpack_close(archive);
	return 0;
}
