/* SPDX-License-Identifier: MIT */
#include "unique.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const size_t TAIL = 1 << 20;

kpack_error_t kp_unique_init(struct kp_unique *u, int dir, struct kpackx_error *why)
{
	char name[KP_TEMP_NAME_SIZE];
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	*u = (struct kp_unique){.file.fd = -1, .file.dir_fd = -1};
	if (fd < 0)
		return kp_fail_errno(why, errno, "the archive's directory");
	if (!kp_temp_name(name)) {
		close(fd);
		return kp_fail_errno(why, errno, "a temporary name");
	}
	KP_TRY(kp_outfile_open_at(&u->file, fd, name, 0600, why));
	kp_outfile_unname(&u->file);
	u->tail = malloc(TAIL);
	return u->tail ? KPACK_SUCCESS : kp_fail_memory(why, TAIL, "unique bytes");
}

void kp_unique_fini(struct kp_unique *u)
{
	kp_outfile_close(&u->file);
	free(u->tail);
	*u = (struct kp_unique){0};
}

kpack_error_t kp_unique_flush(struct kp_unique *u, struct kpackx_error *why)
{
	size_t n = (size_t)(u->size - u->tail_at);

	if (n)
		KP_TRY(kp_outfile_pwrite(&u->file, u->tail_at, u->tail, n, why));
	u->tail_at = u->size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_unique_append(struct kp_unique *u, const uint8_t *data, size_t size,
			       struct kpackx_error *why)
{
	while (size) {
		size_t used = (size_t)(u->size - u->tail_at), n = TAIL - used;

		if (n > size)
			n = size;
		memcpy(u->tail + used, data, n);
		u->size += n;
		data += n;
		size -= n;
		if (used + n == TAIL)
			KP_TRY(kp_unique_flush(u, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_unique_read(const struct kp_unique *u, uint64_t pos, uint8_t *buf,
			     size_t size, struct kpackx_error *why)
{
	size_t n = 0; /* bytes in the file */

	if (pos < u->tail_at)
		n = size < u->tail_at - pos ? size : (size_t)(u->tail_at - pos);
	if (n)
		KP_TRY(kp_file_pread(u->file.fd, pos, buf, n, why));
	if (n < size)
		memcpy(buf + n, u->tail + (pos + n - u->tail_at), size - n);
	return KPACK_SUCCESS;
}
