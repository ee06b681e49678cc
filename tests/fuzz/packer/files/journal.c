/* SPDX-License-Identifier: MIT */
/* Journals of a killed run that was about to rename its trees. */
#include "packer/files/staging.h"
#include "core/base/text.h"
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/kpack-fuzz-XXXXXX";
	int at = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int fd = at < 0 ? -1
			: openat(at, JOURNAL_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct journal j;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	if (journal_read(&j, at)) {
		for (size_t i = 0; i < j.count; i++) {
			assert(kp_component_ok(kp_span_str(j.items[i].name)));
			journal_given(&j.items[i], at);
		}
		journal_fini(&j);
	}
	unlinkat(at, JOURNAL_NAME, 0);
	close(at);
	rmdir(dir);
	return 0;
}
