/* SPDX-License-Identifier: MIT */
/*
 * Bundles: the code objects of a binary and wrapper index, as clang's offload bundler
 * writes them.  Only the header is made here; the objects stay files of the view.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/base/hash.h"
#include "core/base/text.h"
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

/* A bundle that is being made; arrays have room for each entry of the group. */
struct draft {
	struct object *objects;
	struct kp_bundle_row *rows; /* one more than objects, for the host */
	size_t n;
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
 * Take the objects of COUNT entries, sorted by ID, which is the order in which clang writes them;
 * the first of equal IDs stays: the archive that comes first wins here, as it does in toc.
 */
static void take_objects(const struct kp_view_builder *b, const struct kp_view_code *code,
			 size_t count, struct draft *d)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct kpack_archive *a = b->v->archives[code[i].archive];
		struct object *o = &d->objects[n];
		struct kp_entry_info info;
		struct kp_meta meta;

		kp_archive_entry(a, code[i].entry, &info);
		kp_archive_meta(a, code[i].entry, &meta);
		*o = (struct object){
			.size = info.size, .file = code[i].file, .position = i};
		n += name_object(&info, &meta, o);
	}
	qsort(d->objects, n, sizeof(*d->objects), compare_objects);
	d->n = 0;
	for (size_t i = 0; i < n; i++)
		if (!d->n ||
		    !kp_span_eq(id_of(&d->objects[d->n - 1]), id_of(&d->objects[i])))
			d->objects[d->n++] = d->objects[i];
}

/* Add the bundle of D, whose first entry is GLOBAL, to the view, and a file for it. */
static bool store_bundle(struct kp_view_builder *b, const struct draft *d,
			 uint32_t global, uint64_t size, uint32_t *file)
{
	size_t header_size = (size_t)kp_bundle_header_size(d->rows, d->n + 1);
	struct kp_view *v = b->v;
	struct kp_view_composed *c;
	uint64_t hash; /* of everything that decides the bytes */

	if (v->n_parts + d->n > UINT32_MAX ||
	    !kp_grow(&v->headers, v->headers_size + header_size, &b->headers_cap, 1) ||
	    !kp_grow(&v->parts, v->n_parts + d->n, &b->parts_cap, sizeof(*v->parts)) ||
	    !kp_grow(&v->bundles, v->n_bundles, &b->bundles_cap, sizeof(*v->bundles)))
		return kp_view_no_memory(b);
	c = &v->bundles[v->n_bundles];
	*c = (struct kp_view_composed){
		.size = size,
		.header = v->headers_size,
		.header_size = (uint32_t)header_size,
		.first = (uint32_t)v->n_parts,
		.count = (uint32_t)d->n,
		.global = global,
	};
	kp_bundle_header_write(d->rows, d->n + 1, v->headers + v->headers_size);
	hash = kp_hash64(v->headers + v->headers_size, header_size, 0);
	v->headers_size += header_size;
	for (size_t i = 0; i < d->n; i++) {
		uint64_t id = v->files[d->objects[i].file].id;

		hash = kp_hash64(&id, sizeof(id), hash);
		v->parts[v->n_parts++] = (struct kp_view_part){
			.offset = d->rows[i + 1].offset, .file = d->objects[i].file};
	}
	return kp_view_new_file(b, hash, v->bases[v->n_archives] + v->n_bundles++, file);
}

/* Report that the bundle NUMBER.hipfb in the directory of CODE cannot be made. */
static void refuse_bundle(struct kp_view_builder *b, const struct kp_view_code *code,
			  const char *name)
{
	struct kp_entry_info info;
	struct kp_key key;
	char *path = NULL;

	kp_archive_entry(b->v->archives[code->archive], code->entry, &info);
	key = kp_key_split(info.key);
	if (asprintf(&path, KP_BUNDLES_NAME "/%.*s/%s", (int)key.binary.size,
		     (const char *)key.binary.data, name) < 0)
		path = NULL;
	kp_view_conflict(b, kp_span_str(path ? path : KP_BUNDLES_NAME),
			 "has too many code objects, or would be too large");
	free(path);
}

/* Add the bundle of COUNT entries, which have the same directory and number. */
static bool add_bundle(struct kp_view_builder *b, const struct kp_view_code *code,
		       size_t count)
{
	uint32_t text, file, global = b->v->bases[code->archive] + code->entry;
	struct draft d = {.objects = malloc(count * sizeof(*d.objects)),
			  .rows = malloc((count + 1) * sizeof(*d.rows))};
	bool ok = (d.objects && d.rows) || kp_view_no_memory(b);
	uint64_t size;
	char name[32];

	if (!ok)
		goto out;
	take_objects(b, code, count, &d);
	snprintf(name, sizeof(name), "%u.hipfb", code->index);
	d.rows[0] = (struct kp_bundle_row){.id = kp_span_str(HOST_ID)};
	for (size_t i = 0; i < d.n; i++)
		d.rows[i + 1] = (struct kp_bundle_row){.id = id_of(&d.objects[i]),
						       .size = d.objects[i].size};
	if (d.n < KP_BUNDLE_ENTRIES_MAX &&
	    kp_bundle_place(d.rows, d.n + 1, OBJECT_ALIGN, OBJECT_GAP, &size))
		ok = store_bundle(b, &d, global, size, &file) &&
		     kp_view_intern(b, kp_span_str(name), &text) &&
		     kp_view_add_pending(b, code->dir, text, KP_VIEW_BUNDLE, file);
	else
		refuse_bundle(b, code, name);
out:
	free(d.objects);
	free(d.rows);
	return ok;
}

/* --- all bundles -------------------------------------------------------------------- */

/* By bundle; else in the order of noting, which is that of archives. */
static int compare_code(const void *a, const void *b)
{
	const struct kp_view_code *x = a, *y = b;

	if (x->dir != y->dir)
		return KP_ORDER(x->dir, y->dir);
	if (x->index != y->index)
		return KP_ORDER(x->index, y->index);
	if (x->archive != y->archive)
		return KP_ORDER(x->archive, y->archive);
	return KP_ORDER(x->entry, y->entry);
}

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
	qsort(b->code, b->n_code, sizeof(*b->code), compare_code);
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
