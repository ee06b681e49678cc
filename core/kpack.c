/* SPDX-License-Identifier: MIT */
/* The public calls: check arguments, forward. */
#include <stdlib.h>
#include "archive.h"
#include "limits.h"
#include "rocm_kpack/kpack.h"
#include "text.h"

kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
			  struct kpackx_error *why)
{
	if (!path || !archive)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "path or archive is NULL");
	return kp_archive_open(path, archive, why);
}

kpack_error_t kpack_open(const char *path, kpack_archive_t *archive)
{
	return kpackx_open(path, archive, NULL);
}

void kpack_close(kpack_archive_t archive)
{
	kp_archive_close(archive);
}

kpack_error_t kpack_get_architecture_count(kpack_archive_t archive, size_t *count)
{
	if (!archive || !count)
		return KPACK_ERROR_INVALID_ARGUMENT;
	*count = kp_archive_arch_count(archive);
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
				     const char **arch)
{
	if (!archive || !arch || index >= kp_archive_arch_count(archive))
		return KPACK_ERROR_INVALID_ARGUMENT;
	*arch = kp_archive_arch(archive, index);
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count)
{
	if (!archive || !count)
		return KPACK_ERROR_INVALID_ARGUMENT;
	*count = kp_archive_binary_count(archive);
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index, const char **binary)
{
	if (!archive || !binary || index >= kp_archive_binary_count(archive))
		return KPACK_ERROR_INVALID_ARGUMENT;
	*binary = kp_archive_binary(archive, index);
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_get_kernel(kpack_archive_t archive, const char *binary_name,
				const char *arch, void **data, size_t *size,
				struct kpackx_error *why)
{
	struct kp_entry_info info;
	kpack_error_t err;
	size_t entry;
	void *buf;

	if (!archive || !binary_name || !arch || !data || !size)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "an argument is NULL");
	if (!kp_archive_find_kernel(archive, kp_span_str(binary_name), kp_span_str(arch),
				    &entry)) {
		char key[512], text[128];
		return kp_fail(why, KPACK_ERROR_KERNEL_NOT_FOUND, "no entry %s for %s",
			       kp_text_escape(kp_span_str(binary_name), key, 160),
			       kp_text_escape(kp_span_str(arch), text, 64));
	}
	kp_archive_entry(archive, entry, &info);
	if (info.size > KP_OBJECT_MAX) /* chunked ones may be: to be read in parts */
		return kp_fail_memory(why, info.size, "a code object");
	buf = malloc(info.size ? (size_t)info.size : 1);
	if (!buf)
		return kp_fail_memory(why, info.size, "a code object");
	err = kp_archive_read(archive, entry, buf, why);
	if (err) {
		free(buf);
		return err;
	}
	*data = buf;
	*size = (size_t)info.size;
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_kernel(kpack_archive_t archive, const char *binary_name,
			       const char *arch, void **data, size_t *size)
{
	return kpackx_get_kernel(archive, binary_name, arch, data, size, NULL);
}

void kpack_free_kernel(void *data)
{
	free(data);
}
