/* SPDX-License-Identifier: MIT */
#include "core/rocm_kpack/kpackx.h"

const char *kpackx_version(void)
{
	return KP_VERSION;
}
