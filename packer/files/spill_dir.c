/* SPDX-License-Identifier: MIT */
/*
 * Decoded bundles of gigabytes are in files without a name below the output, where there must be
 * room for their content anyway, and not in memory, where there need not be.  They are mapped, so
 * a file system is tried first with one byte: one that has no such files, or does not map them
 * shared, is not used, and bundles are decoded into memory as without this file.
 */
#include "spill_dir.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "below.h"
#include "core/base/alloc.h"
#include "core/base/file.h"

/* The directory; -1: none.  As core has it, there is one for the whole process. */
static int spill_fd = -1;

void spill_dir_begin(const char *dir)
{
	void *map = MAP_FAILED;
	int fd;

	spill_dir_end(); /* of a tree that was packed before */
	spill_fd = below_open_following(dir, O_RDONLY | O_DIRECTORY);
	if (spill_fd < 0)
		return;
	kp_spill_into(spill_fd);
	fd = kp_spill_open();
	/* some network file systems map no file that is written through the mapping */
	if (fd >= 0 && ftruncate(fd, 1) == 0)
		map = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		spill_dir_end();
	else
		munmap(map, 1);
	if (fd >= 0)
		close(fd);
}

void spill_dir_end(void)
{
	kp_spill_into(-1);
	kp_close_at(&spill_fd);
	spill_fd = -1;
}
