/* SPDX-License-Identifier: MIT */
#include "join.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/archives/binary.h"
#include "host_compare.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

void join_fini(struct join *join)
{
	kp_marker_fini(&join->marker);
	*join = (struct join){0};
}

static void set_relation(struct join *out, enum join_relation relation, size_t other,
			 const char *text)
{
	out->relation = relation;
	out->other = other;
	snprintf(out->text, sizeof(out->text), "%s", text);
}

/* The kernel_name is part of the code's keys, so one name cannot find code of both. */
static void compare_names(const struct binary *a, const struct binary *b, size_t other,
			  struct join *out)
{
	char x[90], y[90], text[240];

	if (strcmp(a->marker.kernel_name, b->marker.kernel_name) == 0)
		return;
	kp_text_escape(kp_span_str(a->marker.kernel_name), x, sizeof(x));
	kp_text_escape(kp_span_str(b->marker.kernel_name), y, sizeof(y));
	snprintf(text, sizeof(text), "kernel_name %s, and %s", x, y);
	set_relation(out, JOIN_WRAPPERS, other, text);
}

static void add_paths(struct join *out, const struct kp_marker *from)
{
	for (size_t i = 0; i < from->n_search_paths; i++) {
		size_t j = 0;

		while (j < out->marker.n_search_paths &&
		       strcmp(out->marker.search_paths[j], from->search_paths[i]) != 0)
			j++;
		if (j == out->marker.n_search_paths)
			marker_add_path(&out->marker, from->search_paths[i]);
	}
}

static kpack_error_t compare_one(const struct binary *chosen, const struct binary *b,
				 size_t other, struct join *out, struct kpackx_error *why)
{
	struct host_verdict verdict;

	KP_TRY(host_compare(chosen, b, &verdict, why));
	if (verdict.relation == HOST_WRAPPERS)
		set_relation(out, JOIN_WRAPPERS, other, verdict.text);
	else
		compare_names(chosen, b, other, out);
	if (verdict.relation == HOST_DIFFERS && out->relation == JOIN_SAME)
		set_relation(out, JOIN_DIFFERS, other, verdict.text);
	return KPACK_SUCCESS;
}

static kpack_error_t join_binaries(const struct binary *list, size_t n, size_t chosen,
				   struct join *out, struct kpackx_error *why)
{
	out->relation = JOIN_SAME;
	for (size_t i = 0; i < n && out->relation != JOIN_WRAPPERS; i++)
		if (i != chosen)
			KP_TRY(compare_one(&list[chosen], &list[i], i, out, why));
	marker_set_name(&out->marker, list[chosen].marker.kernel_name);
	for (size_t i = 0; i < n; i++)
		add_paths(out, &list[i].marker);
	out->same_marker = kp_marker_same(&out->marker, &list[chosen].marker);
	return KPACK_SUCCESS;
}

/* Whether all are converted; if not, OUT says why. */
static bool compare_kinds(const struct binary *list, size_t n, size_t chosen,
			  struct join *out)
{
	char text[120];
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		any |= list[i].fat.kind != KP_FATBIN_NONE;
		if (list[i].fat.kind == KP_FATBIN_CONVERTED)
			continue;
		snprintf(text, sizeof(text), "one is %s, the other %s",
			 binary_kind(&list[chosen]), binary_kind(&list[i]));
		set_relation(out, JOIN_KINDS, i, text);
	}
	if (any && list[chosen].fat.kind != KP_FATBIN_CONVERTED)
		out->other = chosen ? 0 : 1;
	if (!any)
		out->relation = JOIN_NOTHING;
	return any && out->relation != JOIN_KINDS;
}

static kpack_error_t open_one(const char *path, struct binary *out,
			      struct kpackx_error *why)
{
	kpack_error_t err = binary_open(path, out, why);

	if (!err && out->fat.kind == KP_FATBIN_CONVERTED)
		err = binary_read_marker(out, why);
	return err ? kp_fail_prefix(why, err, "%s", path) : KPACK_SUCCESS;
}

kpack_error_t join_look(char *const *paths, size_t n, size_t chosen, struct join *out,
			struct kpackx_error *why)
{
	struct binary *list = xcalloc(n, sizeof(*list));
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct join){0};
	for (size_t i = 0; i < n; i++)
		list[i].fd = -1;
	for (size_t i = 0; i < n && !err; i++)
		err = open_one(paths[i], &list[i], why);
	if (!err && compare_kinds(list, n, chosen, out))
		err = join_binaries(list, n, chosen, out, why);
	for (size_t i = 0; i < n; i++)
		binary_close(&list[i]);
	free(list);
	return err;
}

static kpack_error_t write_marker(const struct binary *b, const char *to,
				  const struct kp_marker *marker,
				  struct kpackx_error *why)
{
	struct rewrite r;
	uint8_t *bytes;
	size_t size;
	kpack_error_t err;

	KP_TRY(kp_marker_write(marker, &bytes, &size, why));
	err = rewrite_open(&r, b, to, why);
	if (!err)
		err = kp_convert_set(b->fd, b->size, &b->fat,
				     (struct kp_span){bytes, size}, &r.out, why);
	if (!err)
		err = rewrite_publish(&r, why);
	rewrite_close(&r);
	free(bytes);
	return err;
}

kpack_error_t join_write(const char *from, const char *to, const struct kp_marker *marker,
			 struct kpackx_error *why)
{
	struct binary b;
	kpack_error_t err = binary_open(from, &b, why);

	if (!err)
		err = write_marker(&b, to, marker, why);
	binary_close(&b);
	return err;
}
