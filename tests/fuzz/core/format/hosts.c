/* SPDX-License-Identifier: MIT */
/*
 * Files of hosts, of Windows and of any class of ELF: list their sections with device code,
 * and search for it where no section has it.
 */
#include "core/host/host_fatbin.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/format/sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list(const struct kp_source *src, const struct kp_format *format,
		 bool salvage)
{
	struct kp_containers list = {0};

	if (!(salvage ? kp_containers_salvage
		      : kp_containers_add)(src, 0, format, KP_NOWHERE, &list, NULL))
		for (size_t i = 0; i < list.n_images; i++)
			if (!list.images[i].id ||
			    (strcmp(list.images[i].id, KP_NO_SECTION) == 0 &&
			     !kp_range_ok(src->size, list.images[i].offset,
					  list.images[i].size)))
				__builtin_trap();
	kp_containers_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	int fd = memfd_create("host", MFD_CLOEXEC);
	struct kp_fatbin fat;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	list(&src, &kp_format_pe, false);
	list(&src, &kp_format_host_elf, false);
	list(&src, &kp_format_host_elf, true);
	for (int sections = 0; sections < 2; sections++)
		if (!kp_fatbin_nest(fd, size, sections, &fat, NULL))
			kp_fatbin_fini(&fat);
	kp_fatbin_has_code(fd, size);
	close(fd);
	return 0;
}
