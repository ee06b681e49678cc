/* SPDX-License-Identifier: MIT */
/*
 * Names, each split or made by one rule that this file alone knows: archives in a directory
 * ("GROUP[.VOLUME]_ARCH.kpack"), keys ("BINARY#INDEX"), the file names of entries in a mount,
 * and paths that the keys of kpack's design paper stand for.
 */
#include "naming.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"

size_t kp_archive_stem(struct kp_span name)
{
	return kp_span_ends(name, KP_ARCHIVE_SUFFIX)
		       ? name.size - (sizeof(KP_ARCHIVE_SUFFIX) - 1)
		       : 0;
}

bool kp_is_archive_name(const char *path)
{
	const char *name = kp_path_name(path);

	return name[0] != '.' && kp_archive_stem(kp_span_str(name)) > 0;
}

char *kp_archive_file_name(const char *group, unsigned volume, const char *stem)
{
	char number[16] = "", *file;

	if (volume > 1)
		snprintf(number, sizeof(number), ".%u", volume);
	return asprintf(&file, "%s%s%s" KP_ARCHIVE_SUFFIX, group, number, stem) < 0
		       ? NULL
		       : file;
}

bool kp_is_archive_of_tree(const char *path)
{
	static const char dir[] = KP_ARCHIVES_DIR "/";
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash + 1 - path) : 0, m = strlen(dir);

	return n >= m && memcmp(slash + 1 - m, dir, m) == 0 &&
	       (n == m || slash[-(ptrdiff_t)m] == '/') && kp_is_archive_name(slash + 1);
}

bool kp_archive_name_split(const char *name, const char *group, unsigned *volume,
			   struct kp_span *stem)
{
	size_t n = strlen(group), size = kp_archive_stem(kp_span_str(name));
	unsigned long long number = 1;
	char *end;

	if (size <= n || strncmp(name, group, n) != 0)
		return false;
	if (name[n] == '.') {
		/* one spelling for each volume, as it is made above */
		if (name[n + 1] < '1' || name[n + 1] > '9')
			return false;
		number = strtoull(name + n + 1, &end, 10);
		if (number < 2 || number > UINT32_MAX)
			return false;
		n = (size_t)(end - name);
	}
	if (name[n] != '_' && name[n] != '-')
		return false;
	*volume = (unsigned)number;
	*stem = (struct kp_span){(const uint8_t *)name + n, size - n};
	return true;
}

struct kp_key kp_key_split(struct kp_span key)
{
	struct kp_key whole = {key, 0};
	uint64_t n = 0, scale = 1;
	size_t at = key.size;

	/* from the end: a binary's own name may have a "#", too */
	while (at > 0 && key.data[at - 1] >= '0' && key.data[at - 1] <= '9') {
		n += scale * (uint64_t)(key.data[--at] - '0');
		scale *= 10;
		if (n > UINT32_MAX || scale > UINT64_C(10000000000))
			return whole;
	}
	/* "#" must follow something and precede digits without a leading zero */
	if (at == key.size || at < 2 || key.data[at - 1] != '#' ||
	    (key.data[at] == '0' && key.size - at > 1))
		return whole;
	return (struct kp_key){{key.data, at - 1}, (uint32_t)n};
}

bool kp_toc_file_name(struct kp_span arch, uint32_t index, struct kp_span type,
		      char out[256], size_t *size)
{
	char number[16] = "";
	size_t n = 0;

	if (index)
		n = (size_t)snprintf(number, sizeof(number), "#%u", index);
	if (arch.size > 255 || type.size > 255 || arch.size + n + 1 + type.size > 255)
		return false;
	memcpy(out, arch.data, arch.size);
	memcpy(out + arch.size, number, n);
	n += arch.size;
	out[n++] = '.';
	memcpy(out + n, type.data, type.size);
	*size = n + type.size;
	return kp_component_ok((struct kp_span){(uint8_t *)out, *size});
}

#define LIBRARY(name)                                                                    \
	{                                                                                \
		(const uint8_t *)(name), sizeof(name) - 1                                \
	}

static const struct {
	struct kp_span library; /* first component of the key */
	const char *before;     /* directory before the arch */
	const char *after;      /* suffix of the file */
} layouts[] = {
	{LIBRARY("rocblas/"), "rocblas/library/", ".co"},
	{LIBRARY("hipblaslt/"), "hipblaslt/library/TensileLibrary/", ".co"},
	{LIBRARY("aotriton/"), "aotriton/kernels/", ".hsaco"},
};

bool kp_legacy_path(struct kp_span key, struct kp_span arch, char *out, size_t cap,
		    size_t *size)
{
	for (size_t i = 0; i < KP_COUNT(layouts); i++) {
		size_t n = layouts[i].library.size;
		struct kp_span rest;
		int used;

		if (key.size < n || !kp_span_eq(kp_span_head(key, n), layouts[i].library))
			continue;
		rest = (struct kp_span){key.data + n, key.size - n};
		if (!kp_span_starts(rest, arch.data, arch.size) ||
		    rest.size <= arch.size + 1 || rest.data[arch.size] != '/')
			return false;
		used = snprintf(out, cap, "%s%.*s%s", layouts[i].before, (int)rest.size,
				(const char *)rest.data, layouts[i].after);
		*size = (size_t)used;
		return used > 0 && (size_t)used < cap;
	}
	return false;
}

bool kp_path_reserved(struct kp_span path)
{
	return kp_path_within(path, KP_TOC_NAME) || kp_path_within(path, KP_CONTROL_NAME);
}

/* --- archives in a directory ----------------------------------------------------------- */

static int is_archive(const struct dirent *d)
{
	return kp_is_archive_name(d->d_name);
}

kpack_error_t kp_archives_find_at(int fd, const char *source, char ***paths,
				  size_t *count, struct kpackx_error *why)
{
	struct dirent **names = NULL;
	char **list = NULL;
	kpack_error_t err;
	struct stat st;
	int n = 1;

	if (fstat(fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	if (S_ISDIR(st.st_mode))
		n = scandirat(fd, ".", &names, is_archive, NULL);
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot list it");
	err = kp_new(&list, (size_t)n, "a list of archives", why);
	for (int i = 0; i < n; i++) {
		if (!err && names &&
		    asprintf(&list[i], "%s/%s", source, names[i]->d_name) < 0)
			list[i] = NULL;
		else if (!err && !names)
			list[i] = strdup(source);
		if (!err && !list[i])
			err = kp_fail_memory(why, strlen(source), "a path");
		if (names)
			free(names[i]);
	}
	free(names);
	if (err) {
		for (int i = 0; list && i < n; i++)
			free(list[i]);
		free(list);
		return err;
	}
	kp_sort(list, (size_t)n, KP_AS_TEXT);
	*paths = list;
	*count = (size_t)n;
	return KPACK_SUCCESS;
}

kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why)
{
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	KP_AUTO_CLOSE int fd = open(source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	return kp_archives_find_at(fd, source, paths, count, why);
}
