/* SPDX-License-Identifier: MIT */
#include "variant.h"
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

#define VARIANT_NAMESPACE "amd"
#define VARIANT_FEATURE "gfx_arch"

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

bool variant_label_ok(const char *text)
{
	if (!*text || strcmp(text, "null") == 0)
		return false;
	for (const char *p = text; *p; p++)
		if (!is_plain(*p) && *p != '_' && *p != '.')
			return false;
	return true;
}

/* --- files ------------------------------------------------------------------------- */

static json_t *json_texts(const char *const *texts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, json_string(texts[i])))
			xalloc_fail(0);
	return list;
}

static json_t *variants_of(const char *const *gpus, size_t n)
{
	json_t *all = json_object();

	for (size_t i = 0; i < n; i++)
		if (json_object_set_new(all, gpus[i],
					json_pack("{s:{s:[s]}}", VARIANT_NAMESPACE,
						  VARIANT_FEATURE, gpus[i])))
			xalloc_fail(0);
	return all;
}

char *variant_host_json(const char *const *gpus, size_t n)
{
	json_t *root;

	root = json_pack("{s:{s:{s:b, s:s, s:[s]}}, s:{s:[s], s:{s:{s:o}}}, s:o}",
			 "providers", VARIANT_NAMESPACE, "install-time", 1, "plugin-api",
			 "amd_variant_provider.plugin:AMDVariantPlugin", "requires",
			 "amd-variant-provider >= 1.0", "default-priorities", "namespace",
			 VARIANT_NAMESPACE, "property", VARIANT_NAMESPACE,
			 VARIANT_FEATURE, json_texts(gpus, n), "variants",
			 variants_of(gpus, n));
	return report_json_new(root, JSON_INDENT(2));
}
