/* SPDX-License-Identifier: MIT */
#include "old_archive.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/pack/inherited_archives.h"
#include "output_name.h"
#include "partition.h"
#include "core/base/text.h"
#include "core/archive/naming.h"
#include "core/target/target.h"

bool old_archive_is(const struct scan_entry *e)
{
	return S_ISREG(e->mode) && !e->leftover && !e->database &&
	       (kp_is_archive_of_tree(e->relative) ||
		(e->archive && kp_is_archive_name(strrchr(e->path, '/') + 1)));
}

/* The --family that contains all architectures; or NULL. */
static const struct family *chosen_family(const struct families *families,
					  const struct old_archive *a)
{
	const struct family *family =
		a->n_arches ? families_find(families, a->arches[0]) : NULL;

	for (size_t i = 1; i < a->n_arches; i++)
		if (families_find(families, a->arches[i]) != family)
			return NULL;
	return family;
}

/* True if the archive states a usable family that is not the name of a target. */
static bool own_family(const struct kpack_archive *archive, const struct old_archive *a,
		       struct kp_span *out)
{
	*out = kp_archive_family(archive);
	return out->size && kp_component_ok(*out) && kp_text_ok(*out) &&
	       !memchr(out->data, ':', out->size) && !kp_processor_by_name(*out) &&
	       !(a->n_arches == 1 && kp_span_is(*out, a->arches[0]));
}

static char *choose_part(const struct kpack_archive *archive,
			 const struct families *families, struct old_archive *a)
{
	const struct family *family = chosen_family(families, a);
	struct kp_span own;

	a->family = true;
	if (family)
		return xstrdup(family->name);
	if (own_family(archive, a, &own)) {
		char *name = xstrndup((const char *)own.data, own.size);
		char *part = xstrdup(output_name_of_code(families, name));

		free(name);
		return part;
	}
	a->family = false;
	return xstrdup(a->n_arches == 1 ? output_name_of_code(families, a->arches[0])
					: KP_ARCH_GENERIC);
}

static kpack_error_t read_arches(const struct kpack_archive *archive,
				 struct old_archive *out, struct kpackx_error *why)
{
	size_t n = kp_archive_arch_count(archive);

	out->arches = calloc(n + 1, sizeof(*out->arches));
	if (!out->arches)
		return kp_fail_memory(why, n, "architectures");
	for (size_t i = 0; i < n; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_canonical(kp_span_str(kp_archive_arch(archive, i)), arch);
		out->arches[out->n_arches++] = xstrdup(arch);
	}
	return KPACK_SUCCESS;
}

kpack_error_t old_archive_open(const char *path, const struct families *families,
			       struct old_archive *out, struct kpackx_error *why)
{
	struct kpack_archive *archive = NULL;
	kpack_error_t err = below_archive_open(path, &archive, why);

	*out = (struct old_archive){0};
	if (err)
		return err;
	err = read_arches(archive, out, why);
	if (!err)
		out->part = choose_part(archive, families, out);
	kp_archive_close(archive);
	return err;
}

void old_archive_close(struct old_archive *archive)
{
	for (size_t i = 0; i < archive->n_arches; i++)
		free(archive->arches[i]);
	free(archive->arches);
	free(archive->part);
	*archive = (struct old_archive){0};
}

bool old_archive_wanted(const struct old_archive *archive, struct arch_filter *filter)
{
	bool wanted = archive->n_arches == 0;

	for (size_t i = 0; i < archive->n_arches; i++)
		wanted |= arch_filter_match(filter, kp_span_str(archive->arches[i]));
	return wanted;
}
