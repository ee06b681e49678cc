/* SPDX-License-Identifier: MIT */
/* The paths of one entry, and why a view does not show them. */
#include "view.h"

#include <stdio.h>
#include "core/archive/naming.h"
#include "core/base/text.h"

static void set_fault(struct kp_entry_path *p, struct kp_span text, const char *what,
		      const char *fault)
{
	p->text = text;
	snprintf(p->fault, sizeof(p->fault), "%s%s", what, fault);
}

size_t kp_entry_paths(const struct kpack_archive *a, size_t entry,
		      const struct kp_view_options *options,
		      struct kp_entry_path out[KP_ENTRY_PATHS])
{
	struct kp_entry_path *toc = &out[0], *tree = &out[1];
	struct kp_entry_info info;
	const char *fault;
	struct kp_meta meta;
	struct kp_key key;
	char name[256];
	size_t size;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	toc->fault[0] = tree->fault[0] = '\0';

	/* "toc/", the key without its index, and the file name */
	toc->kind = meta.path.data ? KP_VIEW_TOC_ALSO : KP_VIEW_TOC;
	key = kp_key_split(info.key);
	fault = kp_path_fault(key.binary);
	if (fault) {
		set_fault(toc, info.key, "the key is no path: ", fault);
	} else if (!kp_toc_file_name(info.arch, key.index, info.type, name, &size)) {
		set_fault(toc, info.key, "architecture and type give no file name", "");
	} else {
		snprintf(toc->room, sizeof(toc->room), "toc/%.*s/%.*s",
			 (int)key.binary.size, (const char *)key.binary.data, (int)size,
			 name);
		toc->text = kp_span_str(toc->room);
	}

	/* the path in its tree */
	if (meta.path.data) {
		tree->kind = KP_VIEW_PATH;
		tree->text = meta.path;
	} else if (kp_legacy_path(info.key, info.arch, tree->room, sizeof(tree->room),
				  &size)) {
		tree->kind = KP_VIEW_LEGACY;
		tree->text = (struct kp_span){(const uint8_t *)tree->room, size};
	} else {
		return 1;
	}
	fault = kp_path_fault(tree->text);
	if (!tree->text.size)
		set_fault(tree, info.key, "metadata.path is empty", "");
	else if (fault)
		set_fault(tree, tree->text, "it is no path inside the mount: ", fault);
	else if (kp_path_reserved(tree->text))
		set_fault(tree, tree->text, "toc and .kpackfs are the mount's own", "");
	else if (options && options->bundles &&
		 kp_path_within(tree->text, KP_BUNDLES_NAME))
		set_fault(tree, tree->text, "hipfb is the mount's own", "");
	return 2;
}

bool kp_view_selects(const struct kp_view_options *o, struct kp_span arch)
{
	return !o || !o->select || kp_choice_has(o->select, arch);
}
