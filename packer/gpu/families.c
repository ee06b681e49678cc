/* SPDX-License-Identifier: MIT */
#include "families.h"
#include <stdlib.h>
#include "core/target/target.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

const struct family *families_find(const struct families *families, const char *arch)
{
	for (size_t i = 0; i < families->count; i++) {
		const struct family *f = &families->items[i];

		for (size_t k = 0; k < f->n_arches; k++)
			if (strcmp(f->arches[k], arch) == 0)
				return f;
	}
	return NULL;
}

static kpack_error_t add_member(const struct families *families, struct family *f,
				struct kp_span text, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_target target;

	KP_TRY(kp_target_parse(text, &target, why));
	kp_target_format(&target, arch);
	/* words of --arch, which say nothing about what an archive of the family holds */
	if (strcmp(arch, "auto") == 0 || strcmp(arch, "all") == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: name the targets of a family", arch);
	if (families_find(families, arch))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s is in a family already", arch);
	f->arches = xrealloc(f->arches, (f->n_arches + 1) * sizeof(char *));
	f->arches[f->n_arches++] = xstrdup(arch);
	return KPACK_SUCCESS;
}

kpack_error_t families_add(struct families *families, struct kp_span name,
			   const char *list, struct kpackx_error *why)
{
	struct family *f;

	if (!kp_component_ok(name) || !kp_text_ok(name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its name gives no file name");
	families->items = xrealloc(families->items, (families->count + 1) * sizeof(*f));
	f = &families->items[families->count++];
	*f = (struct family){.name = xstrndup((const char *)name.data, name.size)};
	for (const char *item = list, *end; item; item = *end ? end + 1 : NULL) {
		end = strchrnul(item, ',');
		KP_TRY(add_member(
			families, f,
			(struct kp_span){(const uint8_t *)item, (size_t)(end - item)},
			why));
	}
	return KPACK_SUCCESS;
}

void families_fini(struct families *families)
{
	for (size_t i = 0; i < families->count; i++) {
		struct family *f = &families->items[i];

		for (size_t k = 0; k < f->n_arches; k++)
			free(f->arches[k]);
		free(f->arches);
		free(f->name);
	}
	free(families->items);
	*families = (struct families){0};
}

char *families_stem(const struct families *families, const char *arch)
{
	const struct family *family = families_find(families, arch);

	return xasprintf("%c%s", family ? '-' : '_', family ? family->name : arch);
}
