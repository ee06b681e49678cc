/* SPDX-License-Identifier: MIT */
/* The public calls of kpack.h on archives: check arguments, forward, keep the reason. */
#include <stdlib.h>
#include "cached_results.h"
#include "core/archive/archive.h"
#include "api_call.h"
#include "last_error.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack.h"
#include "api_state.h"

/* --- opening ---------------------------------------------------------------------- */

static kpack_error_t open_archive(const char *path, kpack_archive_t *archive,
				  struct kpackx_error *why)
{
	struct kpack_archive *opened;
	kpack_error_t err;

	if (!path || !archive)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "path or archive is NULL");
	KP_TRY(kp_archive_open(path, &opened, why));
	err = kp_api_attach(opened, why);
	if (err)
		kp_archive_close(opened);
	else
		*archive = opened;
	return err;
}

kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
			  struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err = open_archive(path, archive, &reason);

	if (err)
		kp_last_errors_note(NULL, reason.text);
	return kp_call_end(NULL, err, &reason, why);
}

kpack_error_t kpack_open(const char *path, kpack_archive_t *archive)
{
	return kpackx_open(path, archive, NULL);
}

void kpack_close(kpack_archive_t archive)
{
	kp_archive_close(archive);
}

const char *kpack_get_last_error(kpack_archive_t archive)
{
	return kp_last_errors_text(archive ? kp_api_errors(archive) : NULL);
}

/* --- architectures and binaries --------------------------------------------------- */

static kpack_error_t get_count(kpack_archive_t archive,
			       size_t (*count_of)(const struct kpack_archive *a),
			       size_t *count)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && count, &reason);

	if (!err)
		*count = count_of(archive);
	return kp_call_end(archive, err, &reason, NULL);
}

static kpack_error_t get_name(kpack_archive_t archive, size_t index, const char *what,
			      size_t (*count_of)(const struct kpack_archive *a),
			      const char *(*name_of)(const struct kpack_archive *a,
						     size_t index),
			      const char **name)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && name, &reason);

	if (!err)
		err = kp_call_index(index, count_of(archive), what, &reason);
	if (!err)
		*name = name_of(archive, index);
	return kp_call_end(archive, err, &reason, NULL);
}

kpack_error_t kpack_get_architecture_count(kpack_archive_t archive, size_t *count)
{
	return get_count(archive, kp_archive_arch_count, count);
}

kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
				     const char **arch)
{
	return get_name(archive, index, "architecture", kp_archive_arch_count,
			kp_archive_arch, arch);
}

kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count)
{
	return get_count(archive, kp_archive_binary_count, count);
}

kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index, const char **binary)
{
	return get_name(archive, index, "binary", kp_archive_binary_count,
			kp_archive_binary, binary);
}

kpack_error_t kpack_get_architectures(kpack_archive_t archive, const char ***arches,
				      size_t *count)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && arches && count, &reason);

	if (!err)
		err = kp_cached_arches(archive, arches, &reason);
	if (!err)
		*count = kp_archive_arch_count(archive);
	return kp_call_end(archive, err, &reason, NULL);
}

/* --- kernels ---------------------------------------------------------------------- */

kpack_error_t kp_call_decode(const struct kpack_archive *archive, size_t entry,
			     void **data, size_t *size, struct kpackx_error *why)
{
	struct kp_entry_info info;
	kpack_error_t err;
	void *buf = NULL;

	KP_TRY(kp_archive_check_size(archive, entry, why));
	kp_archive_entry(archive, entry, &info);
	if (info.size <= KP_OBJECT_MAX) /* larger ones are chunked: to be read in parts */
		buf = kp_large_alloc((size_t)info.size);
	if (!buf)
		return kp_fail_memory(why, info.size, "a code object");
	err = kp_archive_read_fast(archive, entry, buf, why);
	if (err) {
		free(buf);
		return err;
	}
	*data = buf;
	*size = (size_t)info.size;
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_get_kernel(kpack_archive_t archive, const char *binary_name,
				const char *arch, void **data, size_t *size,
				struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err =
		kp_call_args(archive && binary_name && arch && data && size, &reason);
	size_t entry;

	if (!err)
		err = kp_call_find(archive, binary_name, arch, &entry, &reason);
	if (!err)
		err = kp_call_name(archive, entry,
				   kp_call_decode(archive, entry, data, size, &reason),
				   &reason);
	return kp_call_end(archive, err, &reason, why);
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

kpack_error_t kpack_list_kernels(kpack_archive_t archive, const char *binary_name,
				 const char *arch, const char ***kernel_names,
				 size_t *count)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(
		archive && binary_name && arch && kernel_names && count, &reason);

	if (!err)
		err = kp_cached_kernels(archive, kp_span_str(binary_name),
					kp_span_str(arch), kernel_names, count, &reason);
	return kp_call_end(archive, err, &reason, NULL);
}

kpack_error_t kpack_get_kernel_metadata(kpack_archive_t archive, const char *binary_name,
					const char *arch, const char **metadata_json,
					size_t *size)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(
		archive && binary_name && arch && metadata_json && size, &reason);
	size_t entry;

	if (!err)
		err = kp_call_find(archive, binary_name, arch, &entry, &reason);
	if (!err)
		err = kp_call_name(
			archive, entry,
			kp_cached_metadata(archive, entry, metadata_json, size, &reason),
			&reason);
	return kp_call_end(archive, err, &reason, NULL);
}
