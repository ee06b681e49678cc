/* SPDX-License-Identifier: MIT */
/* The content security policy of a page: it may run its own script and nothing else. */
#ifndef PACKER_HTML_REPORT_CONTENT_POLICY_H
#define PACKER_HTML_REPORT_CONTENT_POLICY_H

#include <stdio.h>
#include "core/base/errors.h"

/*
 * Print the meta element with a content security policy that allows STYLE and SCRIPT by
 * their hashes, and nothing from outside.  OUT_OF_MEMORY: libcrypto failed.
 */
kpack_error_t page_policy(FILE *out, const char *style, const char *script,
			  struct kpackx_error *why);

#endif
