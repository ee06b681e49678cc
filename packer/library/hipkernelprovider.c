/* SPDX-License-Identifier: MIT */
/*
 * Small databases that are recognised by their directories alone: the engines of hipDNN,
 * aiter's assembly kernels, and rocjitsu's translations.
 *
 * hipDNN's engines keep the files of each GPU in a directory of its own, some levels
 * below the engine's directory.  Files that GPUs share are next to these directories, and
 * are not part of the database.
 */
#include "rules.h"

static const struct rule provider_rules[] = {
	{"engines/arch_content", "*", RULE_BELOW, NULL, "provider"},
	{"engines/test_arch_content", "*", RULE_BELOW, NULL, "provider"},
	{"engines/hip_kernel_provider/asm_kernels", "*", RULE_BELOW, NULL, "provider"},
	{"hipdnn_plugins/engines", "*", RULE_BELOW, NULL, "provider"},
};

static const struct rule aiter_rules[] = {
	{"aiter_meta/hsa", "*.co", RULE_BELOW, NULL, "code"},
	{"aiter_meta/hsa", "*", RULE_BELOW, NULL, "file"},
};

/* The directory names a pair of steppings; the GPU is stated nowhere else. */
static const struct rule translation_rules[] = {
	{"share/rocjitsu/translations/gfx1250-b0-a0/v1", "*.man", RULE_TARGET, "gfx1250",
	 "manifest"},
	{"share/rocjitsu/translations/gfx1250-b0-a0/v1", "*.obj", RULE_TARGET, "gfx1250",
	 "code"},
};

#define LIST(rules) (&(const struct rule_list){rules, KP_COUNT(rules), false})

const struct library library_hipkernelprovider = {
	.name = "hipkernelprovider",
	.probe = rules_probe,
	.check = rules_check,
	.data = LIST(provider_rules),
};

const struct library library_aiter = {
	.name = "aiter",
	.probe = rules_probe,
	.check = rules_check,
	.data = LIST(aiter_rules),
};

const struct library library_hotswap_cache = {
	.name = "hotswap_cache",
	.probe = rules_probe,
	.check = rules_check,
	.data = LIST(translation_rules),
};
