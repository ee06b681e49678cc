/* SPDX-License-Identifier: MIT */
/*
 * The public calls on archives: check the arguments, forward, keep the reason of a failure.
 * First those of kpack.h, AMD's interface; then ours of kpackx.h on single entries and targets;
 * then those of AMD's design paper.
 *
 * AMD's calls have no argument for a reason, so it is kept for kpack_get_last_error: by archive and
 * by thread, as errno is, until the next failure.  Ours also give it to the caller.
 */
#include <stdlib.h>

#include "api_state.h"
#include "core/archive/entry.h"
#include "core/base/text.h"
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/target/target.h"
#include "lookup.h"

/* --- the ends of calls ------------------------------------------------------------ */

/*
 * End a call on ARCHIVE that returns ERR.  If ERR is a failure, keep REASON for
 * kpack_get_last_error, and copy it to WHY, unless WHY is NULL.  Returns ERR.
 */
static kpack_error_t end_call(kpack_archive_t archive, kpack_error_t err,
			      const struct kpackx_error *reason, struct kpackx_error *why)
{
	if (!err)
		return err;
	if (archive)
		kp_last_errors_note(kp_api_errors(archive), reason->text);
	if (why)
		*why = *reason;
	return err;
}

/* End a call on ARCHIVE, or without one, in which an argument is NULL. */
static kpack_error_t end_null(kpack_archive_t archive, struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err =
		kp_fail(&reason, KPACK_ERROR_INVALID_ARGUMENT, "an argument is NULL");

	return end_call(archive, err, &reason, why);
}

static kpack_error_t check_index(size_t index, size_t count, const char *what,
				 struct kpackx_error *reason)
{
	return index < count ? KPACK_SUCCESS
			     : kp_fail(reason, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s %zu of %zu", what, index, count);
}

/* Set *ENTRY to the number of the entry that kpack_get_kernel decodes. */
static kpack_error_t find_kernel(kpack_archive_t archive, const char *name,
				 const char *arch, size_t *entry,
				 struct kpackx_error *reason)
{
	char shown[160], target[64];
	const char *refusal;

	if (kp_archive_find_kernel(archive, kp_span_str(name), kp_span_str(arch), entry))
		return KPACK_SUCCESS;
	refusal = kp_archive_refusal(archive, kp_span_str(name), kp_span_str(arch));
	if (refusal)
		return kp_fail(reason, KPACK_ERROR_KERNEL_NOT_FOUND, "refused: %s",
			       refusal);
	return kp_fail(reason, KPACK_ERROR_KERNEL_NOT_FOUND, "no entry %s for %s",
		       kp_text_escape(kp_span_str(name), shown, sizeof(shown)),
		       kp_text_escape(kp_span_str(arch), target, sizeof(target)));
}

/* If ERR is a failure, put the name of ENTRY before its REASON.  Returns ERR. */
static kpack_error_t name_entry(kpack_archive_t archive, size_t entry, kpack_error_t err,
				struct kpackx_error *reason)
{
	char key[128], arch[40]; /* the reason needs room too */
	struct kp_entry_info info;

	if (!err)
		return err;
	kp_archive_entry(archive, entry, &info);
	return kp_fail_prefix(reason, err, "%s %s",
			      kp_text_escape(info.key, key, sizeof(key)),
			      kp_text_escape(info.arch, arch, sizeof(arch)));
}

/* --- opening ---------------------------------------------------------------------- */

/*
 * An archive is handed out only with its state, in which later calls keep reasons and answers: so none
 * of them can fail for lack of it.
 */
kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
			  struct kpackx_error *why)
{
	struct kpack_archive *opened = NULL;
	struct kpackx_error reason;
	kpack_error_t err;

	if (!path || !archive)
		err = kp_fail(&reason, KPACK_ERROR_INVALID_ARGUMENT,
			      "path or archive is NULL");
	else
		err = kp_archive_open(path, &opened, &reason);
	if (!err) {
		err = kp_api_attach(opened, &reason);
		if (!err) {
			*archive = opened;
			return KPACK_SUCCESS;
		}
		kp_archive_close(opened);
	}
	kp_last_errors_note(NULL, reason.text);
	return end_call(NULL, err, &reason, why);
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

kpack_error_t kpack_get_architecture_count(kpack_archive_t archive, size_t *count)
{
	if (!archive || !count)
		return end_null(archive, NULL);
	*count = kp_archive_arch_count(archive);
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
				     const char **arch)
{
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !arch)
		return end_null(archive, NULL);
	err = check_index(index, kp_archive_arch_count(archive), "architecture", &reason);
	if (!err)
		*arch = kp_archive_arch(archive, index);
	return end_call(archive, err, &reason, NULL);
}

kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count)
{
	if (!archive || !count)
		return end_null(archive, NULL);
	*count = kp_archive_toc(archive)->n_binaries;
	return KPACK_SUCCESS;
}

kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index, const char **binary)
{
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !binary)
		return end_null(archive, NULL);
	err = check_index(index, kp_archive_toc(archive)->n_binaries, "binary", &reason);
	if (!err)
		*binary = (const char *)kp_toc_key(kp_archive_toc(archive), index).data;
	return end_call(archive, err, &reason, NULL);
}

kpack_error_t kpack_get_architectures(kpack_archive_t archive, const char ***arches,
				      size_t *count)
{
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !arches || !count)
		return end_null(archive, NULL);
	err = kp_cached_arches(archive, arches, &reason);
	if (!err)
		*count = kp_archive_arch_count(archive);
	return end_call(archive, err, &reason, NULL);
}

kpack_error_t kpackx_get_group(kpack_archive_t archive, const char **group,
			       const char **family)
{
	const struct kp_toc *toc;

	if (!archive || !group || !family)
		return end_null(archive, NULL);
	toc = kp_archive_toc(archive);
	*group = toc->group.data ? (const char *)toc->group.data : "";
	*family = toc->family.data ? (const char *)toc->family.data : "";
	return KPACK_SUCCESS;
}

/* --- kernels ---------------------------------------------------------------------- */

kpack_error_t kpackx_get_kernel(kpack_archive_t archive, const char *binary_name,
				const char *arch, void **data, size_t *size,
				struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err;
	size_t entry;

	if (!archive || !binary_name || !arch || !data || !size)
		return end_null(archive, why);
	err = find_kernel(archive, binary_name, arch, &entry, &reason);
	if (!err)
		err = name_entry(archive, entry,
				 kp_decode_entry(archive, entry, data, size, &reason),
				 &reason);
	return end_call(archive, err, &reason, why);
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
	kpack_error_t err;

	if (!archive || !binary_name || !arch || !kernel_names || !count)
		return end_null(archive, NULL);
	err = kp_cached_kernels(archive, kp_span_str(binary_name), kp_span_str(arch),
				kernel_names, count, &reason);
	return end_call(archive, err, &reason, NULL);
}

kpack_error_t kpack_get_kernel_metadata(kpack_archive_t archive, const char *binary_name,
					const char *arch, const char **metadata_json,
					size_t *size)
{
	struct kpackx_error reason;
	kpack_error_t err;
	size_t entry;

	if (!archive || !binary_name || !arch || !metadata_json || !size)
		return end_null(archive, NULL);
	err = find_kernel(archive, binary_name, arch, &entry, &reason);
	if (!err)
		err = name_entry(
			archive, entry,
			kp_cached_metadata(archive, entry, metadata_json, size, &reason),
			&reason);
	return end_call(archive, err, &reason, NULL);
}

/* --- entries ---------------------------------------------------------------------- */

kpack_error_t kpackx_get_entry_count(kpack_archive_t archive, size_t *count)
{
	if (!archive || !count)
		return end_null(archive, NULL);
	*count = kp_archive_entry_count(archive);
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_get_entry(kpack_archive_t archive, size_t index,
			       struct kpackx_entry *entry)
{
	struct kp_entry_info info;
	struct kpackx_error reason;
	struct kp_span metadata;
	struct kp_meta meta;
	kpack_error_t err;

	if (!archive || !entry)
		return end_null(archive, NULL);
	err = check_index(index, kp_archive_entry_count(archive), "entry", &reason);
	if (err)
		return end_call(archive, err, &reason, NULL);
	metadata = kp_archive_meta_raw(archive, index);
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
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_find_entry(kpack_archive_t archive, const char *binary_name,
				const char *arch, size_t *index)
{
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !binary_name || !arch || !index)
		return end_null(archive, NULL);
	err = find_kernel(archive, binary_name, arch, index, &reason);
	return end_call(archive, err, &reason, NULL);
}

kpack_error_t kpackx_read_entry(kpack_archive_t archive, size_t index, void *buf,
				size_t buf_size, struct kpackx_error *why)
{
	struct kp_entry_info info;
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !buf)
		return end_null(archive, why);
	err = check_index(index, kp_archive_entry_count(archive), "entry", &reason);
	if (err)
		return end_call(archive, err, &reason, why);
	kp_archive_entry(archive, index, &info);
	if (info.size > buf_size)
		err = kp_fail(&reason, KPACK_ERROR_INVALID_ARGUMENT,
			      "entry %zu has %llu bytes, the buffer %zu", index,
			      (unsigned long long)info.size, buf_size);
	else
		err = name_entry(archive, index,
				 kp_entry_read(archive, index, buf, &reason), &reason);
	return end_call(archive, err, &reason, why);
}

kpack_error_t kpackx_read_range(kpack_archive_t archive, size_t index, uint64_t offset,
				void *buf, size_t size, size_t *got,
				struct kpackx_error *why)
{
	struct kpackx_error reason;
	kpack_error_t err;

	if (!archive || !buf || !got)
		return end_null(archive, why);
	err = check_index(index, kp_archive_entry_count(archive), "entry", &reason);
	if (!err)
		err = name_entry(archive, index,
				 kp_entry_read_range(archive, index, offset, buf, size,
						     got, &reason),
				 &reason);
	return end_call(archive, err, &reason, why);
}

/* --- the generic target of a GPU ---------------------------------------------------- */

kpack_error_t kpackx_generic_target(const char *target, char *out, size_t out_size)
{
	static const char triple[] = "amdgcn-amd-amdhsa--";
	char text[KP_TARGET_TEXT_MAX];
	struct kp_target t, generic;
	const char *name;

	if (!target || !out)
		return KPACK_ERROR_INVALID_ARGUMENT;
	if (strncmp(target, triple, strlen(triple)) == 0)
		target += strlen(triple);
	KP_TRY(kp_target_parse(kp_span_str(target), &t, NULL));
	name = kp_processor_generic(kp_span_str(t.processor));
	if (!name)
		return KPACK_ERROR_ARCH_NOT_FOUND;
	KP_TRY(kp_target_parse(kp_span_str(name), &generic, NULL));
	/* it may have fewer features */
	if (generic.known && generic.known->sramecc)
		generic.sramecc = t.sramecc;
	if (generic.known && generic.known->xnack)
		generic.xnack = t.xnack;
	kp_target_format(&generic, text);
	if (strlen(text) >= out_size)
		return KPACK_ERROR_INVALID_ARGUMENT;
	memcpy(out, text, strlen(text) + 1);
	return KPACK_SUCCESS;
}

const char *kpackx_version(void)
{
	return KP_VERSION;
}

/* --- kpack_design.h: the functions that its macros stand for -------------------------- */

#include "core/rocm_kpack/kpack_design.h"

/* Here AMD's names mean the functions, as in code that does not include the header. */
#undef kpack_get_kernel
#undef kpack_free_kernel

kpack_error_t kpackx_design_get_kernel(kpack_archive_t archive, const char *binary_name,
				       const char *arch, const void **kernel_data,
				       size_t *kernel_size)
{
	void *data = NULL;
	kpack_error_t err = kpack_get_kernel(archive, binary_name, arch,
					     kernel_data ? &data : NULL, kernel_size);

	if (!err)
		*kernel_data = data;
	return err;
}

void kpackx_design_free_kernel(kpack_archive_t archive, const void *kernel_data)
{
	(void)archive;
	kpack_free_kernel((void *)kernel_data);
}
