/* SPDX-License-Identifier: MIT */
#include "fs/base/log.h"
#include "subdir.h"
#include "core/archive/naming.h"

const char *subdir_clean(char *text)
{
	char *to = text;

	if (!*text)
		return "is empty; use . for the root without toc";
	for (const char *from = text; *from;) {
		size_t n = strcspn(from, "/");

		if (n == 2 && memcmp(from, "..", 2) == 0)
			return "may not have a component ..";
		if (n && !(n == 1 && *from == '.')) {
			if (to != text)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n + (from[n] == '/');
	}
	*to = '\0';
	return NULL;
}

static bool report_error(const struct kpackx_error *why)
{
	log_print(LOG_ERR, "%s", why->text);
	return false;
}

/* FOUND: PATH exists when every architecture is shown.  false: it failed; logged. */
static bool is_anywhere(const struct edition *e, const char *path, bool *found)
{
	const struct kp_view_options options = {.bundles = e->bundles};
	struct kpackx_error why = {0};
	struct kp_view *all;
	uint32_t dir;

	if (kp_view_new(e->archives, e->holdings.count, &options, &all, &why))
		return report_error(&why);
	*found = kp_view_find_dir(all, kp_span_str(path), &dir);
	kp_view_free(all);
	return true;
}

/*
 * Replace *VIEW by a view without archives; *ROOT becomes its toc, which is an empty
 * directory.
 */
static bool make_empty(struct kp_view **view, uint32_t *root)
{
	struct kpackx_error why = {0};
	struct kp_view *empty;

	if (kp_view_new(NULL, 0, NULL, &empty, &why))
		return report_error(&why);
	kp_view_free(*view);
	*view = empty;
	return kp_view_find_dir(empty, kp_span_str(KP_TOC_NAME), root);
}

bool subdir_find(struct edition *e, const char *path, bool must_be, uint32_t *root)
{
	bool found = false;

	if (!*path)
		kp_view_hide(e->view, 0, kp_span_str(KP_TOC_NAME));
	if (kp_view_find_dir(e->view, kp_span_str(path), root)) {
		if (kp_view_hide(e->view, *root, kp_span_str(KP_CONTROL_NAME)))
			log_about(LOG_WARNING, path,
				  "its own " KP_CONTROL_NAME " is not shown");
		return true;
	}
	if (!is_anywhere(e, path, &found))
		return false;
	if (!found && must_be) {
		log_about(LOG_ERR, path, "subdir= is no directory of any archive");
		return false;
	}
	log_about(LOG_WARNING, path,
		  found ? "has no file for the chosen architectures"
			: "is no directory of any archive any more");
	return make_empty(&e->view, root);
}
