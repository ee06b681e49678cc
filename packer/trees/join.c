/* SPDX-License-Identifier: MIT */
/*
 * Builds of one binary for different GPUs should have the same host part: then any of them
 * does for all, if its marker names the archives of all.
 *
 * The host parts are the loaded sections and .comment, byte for byte, but for what depends
 * on the device code or on its conversion: some sections, and the wrappers
 * with the relocations of their pointers.  Addresses are not explained away.  Where
 * device code of another size moved what follows it, or where the list of GPUs went into a
 * name (clang's __hip_cuid_...), the builds differ, and the user says which one to take:
 * every wrapper still asks for the same key and index, so the code of all fits either.
 */
#include "join.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "core/format/sections.h"
#include "packer/archives/binary.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- host parts -------------------------------------------------------------------- */

/* Read the section table; only the sections to compare stay in ALL, in their order. */
static kpack_error_t read_host(const struct binary *b, struct kp_sections *all,
			       struct kpackx_error *why)
{
	/* what conversion adds and takes, and what differs from link to link; the last four are of PE */
	static const char *const left_out[] = {
		KP_FATBIN_SECTION,  KP_MARKER_SECTION,    KP_LAYOUT_SECTION,
		".rocm_kpack_phdr", ".note.gnu.build-id", ".relro_padding",
		".hip_fat",         ".kpackrf",           ".kpackrc",
		".buildid",
	};
	struct kp_source src = kp_source_fd(b->fd, 0, b->size);
	size_t n = 0;

	KP_TRY(kp_host_sections(&src, all, why));
	for (size_t i = 1; i < all->count; i++) {
		const struct kp_section *s = &all->items[i];
		bool compared = s->flags & SHF_ALLOC || strcmp(s->name, ".comment") == 0;

		for (size_t k = 0; k < KP_COUNT(left_out); k++)
			compared &= strcmp(s->name, left_out[k]) != 0;
		if (compared)
			all->items[n++] = *s;
	}
	all->count = n;
	return KPACK_SUCCESS;
}

/*
 * Read SIZE bytes at OFFSET of the file, and blank what leads to the device code.  A wrapper
 * points to the device code or to the marker, and so does the relocation of its pointer:
 * both have other addresses in each build, and after each converter.
 */
static kpack_error_t read_blanked(const struct binary *b, uint64_t offset, uint8_t *bytes,
				  size_t size, struct kpackx_error *why)
{
	struct kp_source src = kp_source_fd(b->fd, offset, size);

	KP_TRY(kp_source_read(&src, 0, bytes, size, why));
	for (size_t i = 0; i < 2 * b->fat.host.n_wrappers; i++) {
		const struct kp_host_wrapper *w = &b->fat.host.wrappers[i / 2];
		uint64_t at = i % 2 ? w->reloc_offset : w->offset;
		uint64_t n = i % 2 ? w->reloc_size : KP_WRAPPER_SIZE;
		uint64_t from = at > offset ? at - offset : 0;
		uint64_t end = at + n > offset ? at + n - offset : 0;

		if (from < size && end > from)
			memset(bytes + from, 0,
			       (size_t)((end < size ? end : size) - from));
	}
	return KPACK_SUCCESS;
}

/*
 * Compare B, number OTHER, with A, the chosen one; OUT gets the first difference.  Wrappers and
 * kernel_name come first: they find the code, and if they differ, the code of one does not fit
 * the other, whichever is taken.  Of the hosts, tables are compared before bytes, because
 * "another section" says more than a byte.
 */
static kpack_error_t compare_hosts(const struct binary *a, const struct binary *b,
				   size_t other, struct join *out,
				   struct kpackx_error *why)
{
	enum { PIECE = 1 << 16 };
	const struct kp_host *host = &a->fat.host, *its = &b->fat.host;
	enum join_relation relation = JOIN_WRAPPERS;
	KP_AUTO_FREE uint8_t *bytes = xmalloc(2 * PIECE);
	KP_AUTO(kp_sections) x = {0}, y = {0};
	char text[sizeof(out->text)] = "", name[90], second[90];

	if (host->n_wrappers != its->n_wrappers) {
		snprintf(text, sizeof(text), "%zu wrappers, and %zu", host->n_wrappers,
			 its->n_wrappers);
	} else if (strcmp(a->marker.kernel_name, b->marker.kernel_name) != 0) {
		kp_text_escape(kp_span_str(a->marker.kernel_name), name, sizeof(name));
		kp_text_escape(kp_span_str(b->marker.kernel_name), second,
			       sizeof(second));
		snprintf(text, sizeof(text), "kernel_name %s, and %s", name, second);
	} else if (out->relation != JOIN_SAME) {
		return KPACK_SUCCESS; /* only wrappers would say more */
	} else {
		relation = JOIN_DIFFERS;
		KP_TRY(read_host(a, &x, why));
		KP_TRY(read_host(b, &y, why));
		if (host->machine != its->machine || host->type != its->type)
			snprintf(text, sizeof(text),
				 "type %u for machine %u, and %u for %u", host->type,
				 host->machine, its->type, its->machine);
		else if ((x.stack_flags ^ y.stack_flags) & PF_X)
			snprintf(text, sizeof(text),
				 "only one needs an executable stack");
	}
	for (size_t i = 0; i < x.count && i < y.count && !*text; i++) {
		const struct kp_section *s = &x.items[i], *t = &y.items[i];

		kp_text_escape(kp_span_str(s->name), name, 64);
		kp_text_escape(kp_span_str(t->name), second, 64);
		if (strcmp(s->name, t->name) != 0)
			snprintf(text, sizeof(text),
				 "section %s stands where the other has %s", name,
				 second);
		else if (s->type != t->type || s->flags != t->flags)
			snprintf(text, sizeof(text),
				 "section %s: its type or flags differ", name);
		else if (s->size != t->size)
			snprintf(text, sizeof(text),
				 "section %s: %" PRIu64 " bytes, and %" PRIu64, name,
				 s->size, t->size);
	}
	if (x.count != y.count && !*text)
		snprintf(text, sizeof(text), "%zu sections, and %zu", x.count, y.count);
	for (size_t i = 0; i < x.count && !*text; i++) {
		const struct kp_section *s = &x.items[i], *t = &y.items[i];
		uint64_t size = s->type == SHT_NOBITS ? 0 : s->size;

		for (uint64_t at = 0; at < size && !*text; at += PIECE) {
			size_t n = (size_t)(size - at < PIECE ? size - at : PIECE), k = 0;

			KP_TRY(read_blanked(a, s->offset + at, bytes, n, why));
			KP_TRY(read_blanked(b, t->offset + at, bytes + PIECE, n, why));
			while (k < n && bytes[k] == bytes[PIECE + k])
				k++;
			if (k < n)
				snprintf(text, sizeof(text),
					 "section %s: byte %" PRIu64 " differs", s->name,
					 at + k);
		}
	}
	if (*text) {
		out->relation = relation;
		out->other = other;
		memcpy(out->text, text, sizeof(text));
	}
	return KPACK_SUCCESS;
}

/* --- joining ----------------------------------------------------------------------- */

kpack_error_t join_look(char *const *paths, size_t n, size_t chosen, struct join *out,
			struct kpackx_error *why)
{
	struct binary *list = xcalloc(n, sizeof(*list));
	struct kp_marker *marker = &out->marker;
	kpack_error_t err = KPACK_SUCCESS;
	size_t converted = 0;

	*out = (struct join){.relation = JOIN_SAME};
	for (size_t i = 0; i < n; i++)
		list[i].fd = -1;
	for (size_t i = 0; i < n; i++) {
		err = binary_open(paths[i], &list[i], why);
		converted += !err && list[i].fat.kind == KP_FATBIN_CONVERTED;
		if (!err && list[i].fat.kind == KP_FATBIN_CONVERTED)
			err = binary_read_marker(&list[i], why);
		if (err) {
			kp_fail_prefix(why, err, "%s", paths[i]);
			goto out;
		}
	}
	if (converted < n) {
		const char *kind = binary_kind(&list[chosen]);
		bool is = list[chosen].fat.kind == KP_FATBIN_CONVERTED;

		out->relation = converted ? JOIN_KINDS : JOIN_NOTHING;
		while (converted && out->other < n &&
		       (list[out->other].fat.kind == KP_FATBIN_CONVERTED) == is)
			out->other++;
		if (converted)
			snprintf(out->text, sizeof(out->text), "one is %s, the other %s",
				 kind, binary_kind(&list[out->other]));
		goto out;
	}
	for (size_t i = 0; i < n && !err && out->relation != JOIN_WRAPPERS; i++)
		if (i != chosen)
			err = compare_hosts(&list[chosen], &list[i], i, out, why);
	if (err)
		goto out;
	/* the search paths of all, each once: the loader tries them in this order */
	marker_set_name(marker, list[chosen].marker.kernel_name);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < list[i].marker.n_search_paths; k++) {
			const char *path = list[i].marker.search_paths[k];
			size_t j = 0;

			while (j < marker->n_search_paths &&
			       strcmp(marker->search_paths[j], path) != 0)
				j++;
			if (j == marker->n_search_paths)
				marker_add_path(marker, path);
		}
	out->same_marker = kp_marker_same(marker, &list[chosen].marker);
out:
	for (size_t i = 0; i < n; i++)
		binary_close(&list[i]);
	free(list);
	return err;
}

void join_fini(struct join *join)
{
	kp_marker_fini(&join->marker);
	*join = (struct join){0};
}

kpack_error_t join_write(const char *from, const char *to, const struct join *join,
			 struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct rewrite r = {0};
	struct binary b;
	size_t size;
	kpack_error_t err = binary_open(from, &b, why);

	b.drop_signature = join->drop_signature;
	if (!err)
		err = kp_marker_write(&join->marker, &bytes, &size, why);
	if (!err)
		err = rewrite_open(&r, &b, to, why);
	if (!err)
		err = binary_set_marker(&b, (struct kp_span){bytes, size}, &r.out, why);
	if (!err)
		err = rewrite_publish(&r, why);
	rewrite_close(&r);
	binary_close(&b);
	return err;
}

/* --- archives ---------------------------------------------------------------------- */

kpack_error_t join_to_archive(char *const *paths, const unsigned *prefer, size_t n,
			      const char *dir, const char *name, merge_clash_fn *clash,
			      void *clash_arg, struct kpackx_error *why)
{
	struct kpack_archive **archives = xcalloc(n, sizeof(*archives));
	struct merge_source *sources = xcalloc(n, sizeof(*sources));
	struct merge_options options = {.lazy = true,
					.clash = clash,
					.clash_arg = clash_arg,
					.has_prefer = prefer != NULL,
					.family_of_first = true};
	struct merge_plan *plan = NULL;
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < n && !err; i++) {
		err = below_archive_open(paths[i], &archives[i], why);
		if (err)
			kp_fail_prefix(why, err, "%s", paths[i]);
		sources[i].archive = archives[i];
		sources[i].prefer = prefer ? prefer[i] : 0;
	}
	if (!err && dir)
		err = merge_write(sources, n, &options, dir, name, why);
	else if (!err)
		err = merge_plan_new(sources, n, &options, &plan, why);
	merge_plan_free(plan);
	for (size_t i = 0; i < n; i++)
		kp_archive_close(archives[i]);
	free(archives);
	free(sources);
	return err;
}
