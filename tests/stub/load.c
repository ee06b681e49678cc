/* SPDX-License-Identifier: MIT */
/*
 * load [-c FUNCTION[=N]] FILE...: dlopen() each FILE, read all memory that its program
 * headers state, call FUNCTION of the last as int FUNCTION(void *out, long N), print its
 * result, and dlclose() the files.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096

static void die(const char *what, const char *text)
{
	fprintf(stderr, "load: %s: %s\n", what, text);
	exit(1);
}

/* Read all memory, including red zones. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void
read_segment(uintptr_t start, size_t size)
{
	const volatile unsigned char *p = (const volatile unsigned char *)start;
	unsigned sum = 0;

	for (size_t i = 0; i < size; i += PAGE)
		sum += p[i];
	if (size > 0)
		sum += p[size - 1];
	(void)sum;
}

/* Check that the loader's table of program headers equals the file's. */
static void check_table(const struct dl_phdr_info *info, const char *path)
{
	static ElfW(Phdr) table[256];
	ElfW(Ehdr) header;
	size_t size = info->dlpi_phnum * sizeof(table[0]);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || size > sizeof(table) ||
	    pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    pread(fd, table, size, (off_t)header.e_phoff) != (ssize_t)size)
		die(path, "cannot read its program headers");
	close(fd);
	if (memcmp(table, info->dlpi_phdr, size) != 0)
		die(path, "the loader has other program headers");
}

static int read_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	/* the kernel's own page has no file, and need not be readable everywhere */
	if (strncmp(info->dlpi_name, "linux-vdso", 10) == 0)
		return 0;
	check_table(info, info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
	for (int i = 0; i < info->dlpi_phnum; i++) {
		ElfW(Phdr) p; /* GNU strip may leave the table at any address */

		memcpy(&p, (const char *)info->dlpi_phdr + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD && p.p_flags & PF_R)
			read_segment(info->dlpi_addr + p.p_vaddr, p.p_memsz);
	}
	return 0;
}

static void call(void *handle, char *name)
{
	static char out[1 << 16];
	char *number = strchr(name, '=');
	int (*function)(void *, long);

	if (number)
		*number++ = '\0';
	*(void **)&function = dlsym(handle, name);
	if (!function)
		die(name, dlerror());
	printf("%s %d\n", name, function(out, number ? strtol(number, NULL, 0) : 0));
}

int main(int argc, char **argv)
{
	char *function = NULL;
	void *handle = NULL;

	for (int c; (c = getopt(argc, argv, "c:")) != -1;) {
		if (c != 'c')
			return 2;
		function = optarg;
	}
	for (int i = optind; i < argc; i++) {
		handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			die(argv[i], dlerror());
	}
	if (!handle)
		die("usage", "load [-c FUNCTION[=N]] FILE...");
	dl_iterate_phdr(read_object, NULL);
	if (function)
		call(handle, function);
	return dlclose(handle) != 0;
}
