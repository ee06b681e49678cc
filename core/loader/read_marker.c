/* SPDX-License-Identifier: MIT */
#include "read_marker.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "probe_memory.h"

/* Parse the marker in the readable bytes of [AT, AT + SIZE); *CUT: more may follow. */
static kpack_error_t parse_marker(const void *at, uint8_t *buf, size_t size, bool *cut,
				  struct kp_marker *out, struct kpackx_error *why)
{
	size_t got;

	*cut = false;
	KP_TRY(kp_probe(at, buf, size, &got, why));
	if (got == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: no readable memory at %p", at);
	*cut = got == size;
	return kp_marker_parse((struct kp_span){buf, got}, out, why);
}

/*
 * Its size is unknown, and reading past its end may have to wait for the disk, so at first
 * only the usual size of markers is read.
 */
kpack_error_t kp_marker_read_at(const void *at, struct kp_marker *out,
				struct kpackx_error *why)
{
	uint8_t few[1024], *buf;
	struct kpackx_error reason = {0};
	bool cut;
	kpack_error_t err = parse_marker(at, few, sizeof(few), &cut, out, &reason);

	if (err && cut) {
		buf = malloc(KP_MARKER_MAX);
		if (!buf)
			return kp_fail_memory(why, KP_MARKER_MAX, "a marker");
		err = parse_marker(at, buf, KP_MARKER_MAX, &cut, out, &reason);
		free(buf);
	}
	/* here only the marker can be invalid MessagePack, so report it as metadata */
	if (err == KPACK_ERROR_MSGPACK_PARSE_FAILED)
		err = KPACK_ERROR_INVALID_METADATA;
	return err ? kp_fail(why, err, "%s", reason.text) : KPACK_SUCCESS;
}
