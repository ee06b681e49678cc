/* SPDX-License-Identifier: MIT */
/* MD5 (RFC 1321), for formats that require it.  Not for security. */
#ifndef KP_CORE_BASE_MD5_H
#define KP_CORE_BASE_MD5_H

#include "span.h"

void kp_md5(struct kp_span data, uint8_t out[16]);

#endif
