/* SPDX-License-Identifier: MIT */
/* What a page may do: run its own script, nothing else. */
#ifndef PACKER_HTML_REPORT_POLICY_H
#define PACKER_HTML_REPORT_POLICY_H

#include <stdio.h>
#include "core/base/errors.h"

/*
 * The meta element with the content security policy that lets STYLE and SCRIPT in and nothing
 * from outside.  Where SHA-256 is not built they are let in as any inline ones.
 */
kpack_error_t page_policy(FILE *out, const char *style, const char *script,
			  struct kpackx_error *why);

#endif
