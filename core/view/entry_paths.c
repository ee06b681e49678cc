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

/* Compose "toc/", the key without its index, and the file name. */
static void toc_path(const struct kp_entry_info *info, struct kp_entry_path *p)
{
	struct kp_key key = kp_key_split(info->key);
	const char *fault = kp_path_fault(key.binary);
	char name[256];
	size_t size;
	int used;

	p->fault[0] = '\0';
	if (fault) {
		set_fault(p, info->key, "the key is no path: ", fault);
		return;
	}
	if (!kp_toc_file_name(info->arch, key.index, info->type, name, &size)) {
		set_fault(p, info->key, "architecture and type give no file name", "");
		return;
	}
	used = snprintf(p->room, sizeof(p->room), "toc/%.*s/%.*s", (int)key.binary.size,
			(const char *)key.binary.data, (int)size, name);
	p->text = (struct kp_span){(const uint8_t *)p->room, (size_t)used};
}

static void check_path(struct kp_entry_path *p, struct kp_span key, bool bundles)
{
	const char *fault = kp_path_fault(p->text);

	p->fault[0] = '\0';
	if (!p->text.size)
		set_fault(p, key, "metadata.path is empty", "");
	else if (fault)
		set_fault(p, p->text, "it is no path inside the mount: ", fault);
	else if (kp_path_reserved(p->text))
		set_fault(p, p->text, "toc and .kpackfs are the mount's own", "");
	else if (bundles && kp_path_within(p->text, KP_BUNDLES_NAME))
		set_fault(p, p->text, "hipfb is the mount's own", "");
}

size_t kp_entry_paths(const struct kpack_archive *a, size_t entry,
		      const struct kp_view_options *options,
		      struct kp_entry_path out[KP_ENTRY_PATHS])
{
	struct kp_entry_info info;
	struct kp_meta meta;
	size_t size;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	out[0].kind = meta.path.data ? KP_VIEW_TOC_ALSO : KP_VIEW_TOC;
	toc_path(&info, &out[0]);
	if (meta.path.data) {
		out[1].kind = KP_VIEW_PATH;
		out[1].text = meta.path;
	} else if (kp_legacy_path(info.key, info.arch, out[1].room, sizeof(out[1].room),
				  &size)) {
		out[1].kind = KP_VIEW_LEGACY;
		out[1].text = (struct kp_span){(const uint8_t *)out[1].room, size};
	} else {
		return 1;
	}
	check_path(&out[1], info.key, options && options->bundles);
	return 2;
}

bool kp_view_selects(const struct kp_view_options *o, struct kp_span arch)
{
	return !o || !o->select || kp_choice_has(o->select, arch);
}
