/* SPDX-License-Identifier: MIT */
/* The public calls of kpackx.h on the entries of an archive. */
#include "core/archive/archive.h"
#include "api_call.h"
#include "core/rocm_kpack/kpackx.h"

kpack_error_t kpackx_get_entry_count(kpack_archive_t archive, size_t *count)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && count, &reason);

	if (!err)
		*count = kp_archive_entry_count(archive);
	return kp_call_end(archive, err, &reason, NULL);
}

static kpack_error_t check_entry(kpack_archive_t archive, size_t index,
				 struct kpackx_error *reason)
{
	return kp_call_index(index, kp_archive_entry_count(archive), "entry", reason);
}

static void describe_entry(kpack_archive_t archive, size_t index,
			   struct kpackx_entry *entry)
{
	struct kp_span metadata = kp_archive_meta_raw(archive, index);
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(archive, index, &info);
	kp_archive_meta(archive, index, &meta);
	*entry = (struct kpackx_entry){
		.binary = (const char *)info.key.data,
		.arch = (const char *)info.arch.data,
		.type = (const char *)info.type.data,
		.size = info.size,
		.stored_size = info.stored,
		.chunk = meta.chunk,
		.metadata = metadata.data,
		.metadata_size = metadata.size,
		.ordinal = info.ordinal,
	};
}

kpack_error_t kpackx_get_entry(kpack_archive_t archive, size_t index,
			       struct kpackx_entry *entry)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && entry, &reason);

	if (!err)
		err = check_entry(archive, index, &reason);
	if (!err)
		describe_entry(archive, index, entry);
	return kp_call_end(archive, err, &reason, NULL);
}

kpack_error_t kpackx_find_entry(kpack_archive_t archive, const char *binary_name,
				const char *arch, size_t *index)
{
	struct kpackx_error reason;
	kpack_error_t err =
		kp_call_args(archive && binary_name && arch && index, &reason);

	if (!err)
		err = kp_call_find(archive, binary_name, arch, index, &reason);
	return kp_call_end(archive, err, &reason, NULL);
}

static kpack_error_t check_room(kpack_archive_t archive, size_t index, size_t room,
				struct kpackx_error *reason)
{
	struct kp_entry_info info;

	kp_archive_entry(archive, index, &info);
	if (info.size <= room)
		return KPACK_SUCCESS;
	return kp_fail(reason, KPACK_ERROR_INVALID_ARGUMENT,
		       "entry %zu has %llu bytes, the buffer %zu", index,
		       (unsigned long long)info.size, room);
}

kpack_error_t kpackx_read_entry(kpack_archive_t archive, size_t index, void *buf,
				size_t buf_size, struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && buf, &reason);

	if (!err)
		err = check_entry(archive, index, &reason);
	if (!err)
		err = check_room(archive, index, buf_size, &reason);
	if (!err)
		err = kp_call_name(archive, index,
				   kp_archive_read_fast(archive, index, buf, &reason),
				   &reason);
	return kp_call_end(archive, err, &reason, why);
}

kpack_error_t kpackx_read_range(kpack_archive_t archive, size_t index, uint64_t offset,
				void *buf, size_t size, size_t *got,
				struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err = kp_call_args(archive && buf && got, &reason);

	if (!err)
		err = check_entry(archive, index, &reason);
	if (!err)
		err = kp_call_name(archive, index,
				   kp_archive_read_range(archive, index, offset, buf,
							 size, got, &reason),
				   &reason);
	return kp_call_end(archive, err, &reason, why);
}
