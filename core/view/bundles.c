/* SPDX-License-Identifier: MIT */
/*
 * Bundles: the code objects of a binary and wrapper index, as clang's offload bundler
 * writes them.  Only the header is made here; the objects stay files of the view.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/format/bundle.h"
#include "builder.h"

/*
 * Objects begin at pages, as in HIP's fat binaries.  Behind the header and behind each
 * object are this many zeros more than clang writes, because the kernel reads ahead: by
 * default up to 64 KiB before and 256 KiB after what a program reads.  So a program that
 * reads the header and one object has only that object decoded.
 */
#define OBJECT_ALIGN 4096
#define OBJECT_GAP (256 << 10)

/* The host's entry, which is empty, but must exist. */
#define HOST_ID "host-x86_64-unknown-linux-gnu-"
#define DEVICE_PREFIX "hipv4-amdgcn-amd-amdhsa--"

/* An object of a bundle. */
struct object {
	struct kp_span id; /* data NULL: it is in MADE */
	char made[sizeof(DEVICE_PREFIX) + KP_TARGET_TEXT_MAX];
	uint64_t size;
	uint32_t file;
	size_t position; /* in the order of archives */
};

/* --- entries with code -------------------------------------------------------------- */

/*
 * Whether ID, from the metadata, is that of a bundle's entry for ARCH.  It may be of any
 * kind: HIP's runtimes pass over those that they do not know.
 */
static bool is_entry_id(struct kp_span id, const struct kp_target *arch)
{
	struct kp_entry_id parts;
	struct kp_target target;

	for (size_t i = 0; i < id.size; i++)
		if (id.data[i] <= ' ' || id.data[i] > '~')
			return false;
	return id.size <= KP_ENTRY_ID_MAX && kp_entry_id_parse(id, &parts) &&
	       !kp_span_is(parts.kind, "host") && parts.triple.size &&
	       !kp_target_parse(parts.target, &target, NULL) &&
	       kp_target_eq(&target, arch);
}

/* Set O's ID; false: the entry is no code that a bundle can have. */
static bool name_object(const struct kp_entry_info *info, const struct kp_meta *meta,
			struct object *o)
{
	char text[KP_TARGET_TEXT_MAX];
	struct kp_target arch;
	bool is_gpu;

	/* bitcode is no code object: it has to be linked first */
	if (!info->size || kp_span_is(info->type, "bc") ||
	    kp_target_parse(info->arch, &arch, NULL))
		return false;
	is_gpu = arch.known || strncmp(arch.processor, "gfx", 3) == 0;
	if (!is_gpu && strcmp(arch.processor, "amdgcnspirv") != 0)
		return false;
	o->id = meta->target;
	if (meta->target.data && is_entry_id(meta->target, &arch))
		return true;
	o->id = (struct kp_span){0};
	if (!is_gpu || !(kp_span_is(info->type, "hsaco") || kp_span_is(info->type, "co")))
		return false;
	kp_target_format(&arch, text);
	snprintf(o->made, sizeof(o->made), DEVICE_PREFIX "%s", text);
	return true;
}

static struct kp_span id_of(const struct object *o)
{
	return o->id.data ? o->id : kp_span_str(o->made);
}

bool kp_view_note_code(struct kp_view_builder *b, const struct kp_entry_info *info,
		       const struct kp_meta *meta, uint32_t entry, uint32_t file)
{
	struct object o;

	if (!b->options || !b->options->bundles || b->key_dir == KP_VIEW_ROOT ||
	    !name_object(info, meta, &o))
		return true;
	if (!kp_grow(&b->code, b->n_code, &b->code_cap, sizeof(*b->code)))
		return kp_view_no_memory(b);
	b->code[b->n_code++] = (struct kp_view_code){.archive = (uint32_t)b->archive,
						     .index = b->split.index,
						     .entry = entry,
						     .file = file};
	return true;
}

/* --- one bundle --------------------------------------------------------------------- */

static int compare_objects(const void *a, const void *b)
{
	const struct object *x = a, *y = b;
	int c = kp_span_cmp(id_of(x), id_of(y));

	return c ? c : KP_ORDER(x->position, y->position);
}

/*
 * Add the bundle of COUNT entries, which have the same directory and number, to the view, and a
 * file for it.
 */
static bool add_bundle(struct kp_view_builder *b, const struct kp_view_code *code,
		       size_t count)
{
	KP_AUTO_FREE struct object *objects = malloc(count * sizeof(*objects));
	KP_AUTO_FREE struct kp_bundle_row *rows = malloc((count + 1) * sizeof(*rows));
	KP_AUTO_FREE char *path = NULL;
	uint64_t size, hash; /* hash: of everything that decides the bytes */
	struct kp_view *v = b->v;
	struct kp_entry_info info;
	uint32_t text, file;
	size_t n = 0, header;
	char name[32];

	if (!objects || !rows)
		return kp_view_no_memory(b);
	snprintf(name, sizeof(name), "%u.hipfb", code->index);
	for (size_t i = 0; i < count; i++) {
		struct kpack_archive *a = v->archives[code[i].archive];
		struct kp_meta meta;

		kp_archive_entry(a, code[i].entry, &info);
		kp_archive_meta(a, code[i].entry, &meta);
		objects[n] = (struct object){
			.size = info.size, .file = code[i].file, .position = i};
		n += name_object(&info, &meta, &objects[n]);
	}

	/*
	 * Sorted by ID, as clang writes them; the first of equal IDs stays: the archive that comes
	 * first wins here, as it does in toc.
	 */
	qsort(objects, n, sizeof(*objects), compare_objects);
	count = n;
	rows[0] = (struct kp_bundle_row){.id = kp_span_str(HOST_ID)};
	n = 0;
	for (size_t i = 0; i < count; i++) {
		if (n && kp_span_eq(id_of(&objects[n - 1]), id_of(&objects[i])))
			continue;
		objects[n] = objects[i];
		rows[n + 1] = (struct kp_bundle_row){.id = id_of(&objects[n]),
						     .size = objects[n].size};
		n++;
	}
	if (n >= KP_BUNDLE_ENTRIES_MAX ||
	    !kp_bundle_place(rows, n + 1, OBJECT_ALIGN, OBJECT_GAP, &size)) {
		struct kp_span key;

		kp_archive_entry(v->archives[code->archive], code->entry, &info);
		key = kp_key_split(info.key).binary;
		if (asprintf(&path, KP_BUNDLES_NAME "/%.*s/%s", (int)key.size,
			     (const char *)key.data, name) < 0)
			path = NULL;
		kp_view_conflict(b, kp_span_str(path ? path : KP_BUNDLES_NAME),
				 "has too many code objects, or would be too large");
		return true;
	}

	header = (size_t)kp_bundle_header_size(rows, n + 1);
	if (v->n_parts + n > UINT32_MAX ||
	    !kp_grow(&v->headers, v->headers_size + header, &b->headers_cap, 1) ||
	    !kp_grow(&v->parts, v->n_parts + n, &b->parts_cap, sizeof(*v->parts)) ||
	    !kp_grow(&v->bundles, v->n_bundles, &b->bundles_cap, sizeof(*v->bundles)))
		return kp_view_no_memory(b);
	v->bundles[v->n_bundles] = (struct kp_view_composed){
		.size = size,
		.header = v->headers_size,
		.header_size = (uint32_t)header,
		.first = (uint32_t)v->n_parts,
		.count = (uint32_t)n,
		.global = v->bases[code->archive] + code->entry,
	};
	kp_bundle_header_write(rows, n + 1, v->headers + v->headers_size);
	hash = kp_hash64(v->headers + v->headers_size, header, 0);
	v->headers_size += header;
	for (size_t i = 0; i < n; i++) {
		uint64_t id = v->files[objects[i].file].id;

		hash = kp_hash64(&id, sizeof(id), hash);
		v->parts[v->n_parts++] = (struct kp_view_part){
			.offset = rows[i + 1].offset, .file = objects[i].file};
	}
	return kp_view_new_file(b, hash, v->bases[v->n_archives] + v->n_bundles++,
				&file) &&
	       kp_view_intern(b, kp_span_str(name), &text) &&
	       kp_view_add_pending(b, code->dir, text, KP_VIEW_BUNDLE, file);
}

/* --- all bundles -------------------------------------------------------------------- */

bool kp_view_add_bundles(struct kp_view_builder *b)
{
	uint32_t root;
	size_t end;

	if (!b->n_code)
		return true;
	b->dirs_left = UINT64_MAX; /* they are no more than below toc */
	if (!kp_view_resolve(b, KP_VIEW_ROOT, kp_span_str(KP_BUNDLES_NAME), &root))
		return false;
	for (size_t i = 0; i < b->n_code; i++) {
		struct kp_view_code *code = &b->code[i];
		struct kp_entry_info info;

		kp_archive_entry(b->v->archives[code->archive], code->entry, &info);
		if (!kp_view_resolve(b, root, kp_key_split(info.key).binary, &code->dir))
			return false;
	}
	/* by bundle; else in the order of noting, which is that of archives */
	kp_sort(b->code, b->n_code, KP_BY_NUMBER(struct kp_view_code, dir),
		KP_BY_NUMBER(struct kp_view_code, index),
		KP_BY_NUMBER(struct kp_view_code, archive),
		KP_BY_NUMBER(struct kp_view_code, entry));
	for (size_t i = 0; i < b->n_code; i = end) {
		const struct kp_view_code *first = &b->code[i];

		for (end = i + 1; end < b->n_code && b->code[end].dir == first->dir &&
				  b->code[end].index == first->index;
		     end++)
			;
		if (!add_bundle(b, first, end - i))
			return false;
	}
	return true;
}
