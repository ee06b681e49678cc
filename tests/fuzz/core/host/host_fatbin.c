/* SPDX-License-Identifier: MIT */
/*
 * Host binaries: sections, relocations, wrappers, and the containers that wrappers point
 * to.
 */
#include "core/host/host_fatbin.h"
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct kpackx_error why;
	struct kp_fatbin fat;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	if (kp_fatbin_open(fd, size, &fat, &why) == KPACK_SUCCESS)
		kp_fatbin_fini(&fat);
	close(fd);
	return 0;
}
