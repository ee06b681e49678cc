/* SPDX-License-Identifier: MIT */
#include "api_call.h"
#include "core/archive/archive.h"
#include "last_error.h"
#include "core/base/text.h"
#include "cached_results.h"

kpack_error_t kp_call_args(bool ok, struct kpackx_error *reason)
{
	if (ok)
		return KPACK_SUCCESS;
	return kp_fail(reason, KPACK_ERROR_INVALID_ARGUMENT, "an argument is NULL");
}

kpack_error_t kp_call_index(size_t index, size_t count, const char *what,
			    struct kpackx_error *reason)
{
	if (index < count)
		return KPACK_SUCCESS;
	return kp_fail(reason, KPACK_ERROR_INVALID_ARGUMENT, "%s %zu of %zu", what, index,
		       count);
}

kpack_error_t kp_call_find(kpack_archive_t archive, const char *name, const char *arch,
			   size_t *entry, struct kpackx_error *reason)
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

kpack_error_t kp_call_name(kpack_archive_t archive, size_t entry, kpack_error_t err,
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

kpack_error_t kp_call_end(kpack_archive_t archive, kpack_error_t err,
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
