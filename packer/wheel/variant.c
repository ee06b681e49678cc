/* SPDX-License-Identifier: MIT */
#include "variant.h"
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

#define VARIANT_NAMESPACE "amd"
#define VARIANT_FEATURE "gfx_arch"

/* A text being written into a buffer; writing fails if the buffer is too small. */
struct writer {
	char *at, *end;
};

static bool put_bytes(struct writer *w, const char *text, size_t size)
{
	if ((size_t)(w->end - w->at) <= size)
		return false;
	memcpy(w->at, text, size);
	w->at += size;
	*w->at = '\0';
	return true;
}

static bool put_text(struct writer *w, const char *text)
{
	return put_bytes(w, text, strlen(text));
}

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

/* --- escape ------------------------------------------------------------------------ */

static bool escape_char(struct writer *w, const char *p, bool feature)
{
	bool last = p[1] == '\0' || p[1] == ':';

	if (is_plain(*p))
		return put_bytes(w, p, 1);
	if (*p == ':')
		return put_text(w, ".");
	if (feature && last && *p == '+')
		return put_text(w, "_on");
	if (feature && last && *p == '-')
		return put_text(w, "_off");
	return !feature && *p == '-' && put_text(w, "_");
}

bool variant_escape(const char *arch, char out[VARIANT_TEXT_MAX])
{
	struct writer w = {out, out + VARIANT_TEXT_MAX};
	bool feature = false;
	char back[KP_TARGET_TEXT_MAX];

	out[0] = '\0';
	for (const char *p = arch; *p; p++) {
		if (!escape_char(&w, p, feature))
			return false;
		feature = feature || *p == ':';
	}
	return variant_unescape(out, back) && strcmp(back, arch) == 0;
}

/* Unescape the name before the first ".": "_" becomes "-". */
static bool unescape_name(struct writer *w, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!is_plain(text[i]) && text[i] != '_')
			return false;
		if (!put_bytes(w, text[i] == '_' ? "-" : text + i, 1))
			return false;
	}
	return size > 0;
}

/* Unescape a feature, like "xnack_on". */
static bool unescape_feature(struct writer *w, const char *text, size_t size)
{
	size_t name = 0;

	while (name < size && is_plain(text[name]))
		name++;
	if (name == 0 || !put_text(w, ":") || !put_bytes(w, text, name))
		return false;
	if (size - name == 3 && memcmp(text + name, "_on", 3) == 0)
		return put_text(w, "+");
	return size - name == 4 && memcmp(text + name, "_off", 4) == 0 &&
	       put_text(w, "-");
}

bool variant_unescape(const char *value, char out[KP_TARGET_TEXT_MAX])
{
	struct writer w = {out, out + KP_TARGET_TEXT_MAX};
	size_t n = strcspn(value, ".");

	out[0] = '\0';
	if (!unescape_name(&w, value, n))
		return false;
	for (value += n; *value; value += n) {
		value++;
		n = strcspn(value, ".");
		if (!unescape_feature(&w, value, n))
			return false;
	}
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

static json_t *variants_of(const struct variant *variants, size_t n)
{
	json_t *all = json_object();

	for (size_t i = 0; i < n; i++) {
		json_t *one =
			json_pack("{s:{s:o}}", VARIANT_NAMESPACE, VARIANT_FEATURE,
				  json_texts(variants[i].values, variants[i].n_values));

		if (json_object_set_new(all, variants[i].label, one))
			xalloc_fail(0);
	}
	return all;
}

char *variant_json(const struct variant *variants, size_t n)
{
	json_t *root = json_pack("{s:s, s:{s:[s], s:{s:[s]}}, s:o}", "$schema",
				 VARIANT_SCHEMA, "default-priorities", "namespace",
				 VARIANT_NAMESPACE, "feature", VARIANT_NAMESPACE,
				 VARIANT_FEATURE, "variants", variants_of(variants, n));

	return report_json_new(root, JSON_INDENT(2) | JSON_SORT_KEYS);
}

char *variant_host_json(const char *const *gpus, size_t n)
{
	struct variant *list = xcalloc(n, sizeof(*list));
	json_t *root;

	for (size_t i = 0; i < n; i++)
		list[i] = (struct variant){gpus[i], &gpus[i], 1};
	root = json_pack("{s:{s:{s:b, s:s, s:[s]}}, s:{s:[s], s:{s:{s:o}}}, s:o}",
			 "providers", VARIANT_NAMESPACE, "install-time", 1, "plugin-api",
			 "amd_variant_provider.plugin:AMDVariantPlugin", "requires",
			 "amd-variant-provider >= 1.0", "default-priorities", "namespace",
			 VARIANT_NAMESPACE, "property", VARIANT_NAMESPACE,
			 VARIANT_FEATURE, json_texts(gpus, n), "variants",
			 variants_of(list, n));
	free(list);
	return report_json_new(root, JSON_INDENT(2));
}
