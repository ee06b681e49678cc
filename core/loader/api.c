/* SPDX-License-Identifier: MIT */
/*
 * The public calls on archives: check the arguments, forward, keep the reason of a failure.
 * First those of kpack.h, AMD's interface; then ours of kpackx.h on single entries and targets.
 */
#include <stdlib.h>

#include "api_call.h"
#include "cached_results.h"
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/target/target.h"
#include "last_error.h"

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

	KP_TRY(kp_entry_check_size(archive, entry, why));
	kp_archive_entry(archive, entry, &info);
	if (info.size <= KP_OBJECT_MAX) /* larger ones are chunked: to be read in parts */
		buf = kp_large_alloc((size_t)info.size);
	if (!buf)
		return kp_fail_memory(why, info.size, "a code object");
	err = kp_entry_read(archive, entry, buf, why);
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

/* The public calls of kpackx.h on the entries of an archive. */

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
				   kp_entry_read(archive, index, buf, &reason), &reason);
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
				   kp_entry_read_range(archive, index, offset, buf, size,
						       got, &reason),
				   &reason);
	return kp_call_end(archive, err, &reason, why);
}

/* The generic target of a GPU. */

static struct kp_span without_triple(struct kp_span s)
{
	static const char triple[] = "amdgcn-amd-amdhsa--";
	size_t n = sizeof(triple) - 1;

	return kp_span_starts(s, triple, n) ? (struct kp_span){s.data + n, s.size - n}
					    : s;
}

/* Change T to the generic processor NAME, which may have fewer features. */
static kpack_error_t make_generic(const char *name, struct kp_target *t)
{
	struct kp_target generic;

	KP_TRY(kp_target_parse(kp_span_str(name), &generic, NULL));
	if (generic.known && generic.known->sramecc)
		generic.sramecc = t->sramecc;
	if (generic.known && generic.known->xnack)
		generic.xnack = t->xnack;
	*t = generic;
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_generic_target(const char *target, char *out, size_t out_size)
{
	char text[KP_TARGET_TEXT_MAX];
	struct kp_target t;
	const char *generic;

	if (!target || !out)
		return KPACK_ERROR_INVALID_ARGUMENT;
	KP_TRY(kp_target_parse(without_triple(kp_span_str(target)), &t, NULL));
	generic = kp_processor_generic(kp_span_str(t.processor));
	if (!generic)
		return KPACK_ERROR_ARCH_NOT_FOUND;
	KP_TRY(make_generic(generic, &t));
	kp_target_format(&t, text);
	if (strlen(text) >= out_size)
		return KPACK_ERROR_INVALID_ARGUMENT;
	memcpy(out, text, strlen(text) + 1);
	return KPACK_SUCCESS;
}

const char *kpackx_version(void)
{
	return KP_VERSION;
}
