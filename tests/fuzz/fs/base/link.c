/* SPDX-License-Identifier: MIT */
/* A message from a compromised server, as the supervisor receives it. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fs/base/process_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct link_buffer room;
	struct link_message m;
	int ends[2];

	if (!link_pair(ends))
		return 0;
	if (send(ends[0], data, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size &&
	    link_receive(ends[1], false, &room, &m) == LINK_DONE &&
	    (m.word >= LINK_WORDS || m.fd >= 0 ||
	     strlen(m.path) + strlen(m.text) + 2 > size))
		__builtin_trap();
	close(ends[0]);
	close(ends[1]);
	return 0;
}
