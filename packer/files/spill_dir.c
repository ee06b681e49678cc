/* SPDX-License-Identifier: MIT */
#include "spill_dir.h"
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>
#include "below.h"
#include "core/base/spill.h"

/*
 * Larger blocks of memory go back to the system at once.  Smaller ones are used again: the
 * system would have to clear new ones.  Each thread has a heap, whose end is given back when
 * it is free and longer than HEAP_KEEPS.
 */
enum { MALLOC_KEEPS = 32 << 20, HEAP_KEEPS = 16 << 20 };

void spill_dir_begin(struct spill_dir *s, const char *dir)
{
	int at = below_open_following(dir, O_RDONLY | O_DIRECTORY), fd;

	mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEPS);
	if (at < 0)
		return;
	kp_spill_into(at);
	fd = kp_spill_open();
	if (fd < 0) { /* not on this file system */
		kp_spill_into(-1);
		close(at);
		return;
	}
	close(fd);
	*s = (struct spill_dir){true, at};
}

void spill_dir_end(struct spill_dir *s)
{
	if (!s->spilling)
		return;
	kp_spill_into(-1);
	close(s->fd);
	*s = (struct spill_dir){0};
}
