/* SPDX-License-Identifier: MIT */
/*
 * Takes and opens file handles, which NFS servers use as names instead of paths.
 *
 *   handles take <PATHS          reads one path per line; prints its handle and the path
 *   handles open MOUNT <HANDLES  opens each handle in the file system of MOUNT and prints
 *                                for its path: kind, inode, size and a checksum of the
 *                                bytes (for a directory: of the names); or the error
 *   handles look <HANDLES        prints the same for the files that the paths lead to
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

/* FNV-1a */
static uint64_t add(uint64_t sum, const void *data, size_t size)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
	return sum;
}

#define EMPTY UINT64_C(0xcbf29ce484222325)

static int sum_file(int fd, uint64_t *sum)
{
	static char buf[1 << 16];
	ssize_t n;

	for (*sum = EMPTY; (n = read(fd, buf, sizeof(buf))) > 0;)
		*sum = add(*sum, buf, (size_t)n);
	return n < 0 ? -1 : 0;
}

/* The sum does not depend on the order of the names. */
static int sum_names(int fd, uint64_t *sum)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *e;

	if (!d)
		return -1;
	for (*sum = EMPTY; (e = readdir(d));)
		*sum += add(EMPTY, e->d_name, strlen(e->d_name));
	closedir(d);
	return 0;
}

static void print_file(const char *path, int fd)
{
	struct stat st;
	uint64_t sum;

	if (fd < 0 || fstat(fd, &st) ||
	    (S_ISDIR(st.st_mode) ? sum_names(fd, &sum) : sum_file(fd, &sum)))
		printf("%s\t%s\n", path, strerrorname_np(errno));
	else
		printf("%s\t%o %ju %jd %016" PRIx64 "\n", path, st.st_mode,
		       (uintmax_t)st.st_ino, (intmax_t)st.st_size, sum);
	if (fd >= 0)
		close(fd);
}

static int take(char *path)
{
	struct handle h = {.head.handle_bytes = MAX_HANDLE_SZ};
	const unsigned char *bytes = h.head.f_handle;
	int mount;

	if (name_to_handle_at(AT_FDCWD, path, &h.head, &mount, 0)) {
		fprintf(stderr, "handles: %s: %s\n", path, strerror(errno));
		return 1;
	}
	printf("%d ", h.head.handle_type);
	for (unsigned i = 0; i < h.head.handle_bytes; i++)
		printf("%02x", bytes[i]);
	printf(" %s\n", path);
	return 0;
}

/* Parse a LINE that `take` wrote; returns the path in it. */
static char *parse(char *line, struct handle *h)
{
	char *hex = strchr(line, ' ') + 1, *path = strchr(hex, ' ') + 1;

	*h = (struct handle){.head.handle_type = atoi(line)};
	for (; hex < path - 1 && h->head.handle_bytes < MAX_HANDLE_SZ; hex += 2)
		sscanf(hex, "%2hhx", &h->bytes[h->head.handle_bytes++]);
	return path;
}

/*
 * Describe the file that LINE's handle leads to in MOUNT; if MOUNT is negative, the file
 * at LINE's path.
 */
static void look(char *line, int mount)
{
	struct handle h;
	char *path = parse(line, &h);

	if (mount < 0)
		print_file(path, open(path, O_RDONLY));
	else
		print_file(path, open_by_handle_at(mount, &h.head, O_RDONLY));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool taking = strcmp(what, "take") == 0;
	int failed = 0, mount = argc > 2 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;
	char line[8192];

	if (!taking && strcmp(what, mount < 0 ? "look" : "open"))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (taking)
			failed |= take(line);
		else
			look(line, mount);
	}
	return fflush(stdout) ? 1 : failed;
}
