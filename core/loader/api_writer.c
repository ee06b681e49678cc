/* SPDX-License-Identifier: MIT */
/* The public writer: checks each object, encodes it, and adds it to a store. */
#include <stdlib.h>
#include <sys/stat.h>
#include "core/writer/encode.h"
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "core/writer/writer.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/writer/store.h"
#include "core/target/target.h"
#include "core/base/text.h"
#include "core/archive/naming.h"

static const int LEVEL = 3, LEVEL_MAX = 22;

struct kpackx_writer {
	struct kp_store store;
	struct kp_encoder *encoder; /* only for scheme zstd-per-kernel */
	struct kpackx_error lost;   /* the failure after which nothing can be added */
};

#define INVALID(why, ...) kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static bool all_zero(const uint64_t *reserved, size_t n)
{
	while (n && !reserved[n - 1])
		n--;
	return n == 0;
}

/* Check TEXT, of at most KP_NAME_MAX bytes; a longer text is not read to its end. */
static kpack_error_t check_text(const char *what, const char *text,
				struct kpackx_error *why)
{
	size_t n = text ? strnlen(text, KP_NAME_MAX + 1) : 0;

	if (!text)
		return INVALID(why, "%s is NULL", what);
	if (n > KP_NAME_MAX)
		return INVALID(why, "%s is longer than %d bytes", what, KP_NAME_MAX);
	if (!kp_text_ok((struct kp_span){(const uint8_t *)text, n}))
		return INVALID(why, "%s is not UTF-8 without control bytes", what);
	return KPACK_SUCCESS;
}

static kpack_error_t check_name(const char *what, const char *text,
				struct kpackx_error *why)
{
	KP_TRY(check_text(what, text, why));
	return *text ? KPACK_SUCCESS : INVALID(why, "%s is empty", what);
}

/* --- opening ------------------------------------------------------------------------ */

/* The directory and the name of an archive. */
struct place {
	char *dir;
	const char *name; /* borrowed from the path */
};

static kpack_error_t split_path(const char *path, struct place *out,
				struct kpackx_error *why)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	out->name = slash ? slash + 1 : path;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "is %s",
			       S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	if (!*out->name)
		return INVALID(why, "names no file");
	/* the directory of "/name" is "/" */
	out->dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
			 : strdup(".");
	return out->dir ? KPACK_SUCCESS : kp_fail_memory(why, strlen(path), "a path");
}

/* Return the file's name without ".kpack", unless that would be empty. */
static char *default_group(const char *name)
{
	size_t stem = kp_archive_stem(kp_span_str(name));

	return strndup(name, stem ? stem : strlen(name));
}

static kpack_error_t check_options(const struct kpackx_writer_options *o,
				   struct kpackx_error *why)
{
	if (o->level < 0 || o->level > LEVEL_MAX)
		return INVALID(why, "level %d is outside 1..%d", o->level, LEVEL_MAX);
	if (o->shared > 1)
		return INVALID(why, "shared is neither 0 nor 1");
	if (!all_zero(o->reserved, KP_COUNT(o->reserved)))
		return INVALID(why, "reserved members are not zero");
	if (o->group)
		KP_TRY(check_text("group", o->group, why));
	return o->family ? check_text("family", o->family, why) : KPACK_SUCCESS;
}

static kpack_compression_t scheme_of(const struct kpackx_writer_options *o)
{
	return o->uncompressed ? KPACK_COMPRESSION_NOOP
	       : o->shared     ? KP_COMPRESSION_ZSTD_SHARED
			       : KPACK_COMPRESSION_ZSTD_PER_KERNEL;
}

static kpack_error_t begin_archive(struct kpackx_writer *w, const struct place *place,
				   const struct kpackx_writer_options *o,
				   struct kpackx_error *why)
{
	char *group = o->group ? strdup(o->group) : default_group(place->name);
	kpack_error_t err;

	if (!group)
		return kp_fail_memory(why, strlen(place->name), "a group");
	w->store.scheme = scheme_of(o);
	err = check_text("group (the file's name, as none is given)", group, why);
	if (!err)
		err = kp_writer_open(
			place->dir, place->name,
			&(struct kp_writer_options){.scheme = w->store.scheme,
						    .group = group,
						    .family = o->family,
						    .level = o->level ? o->level
								      : KP_SHARED_LEVEL,
						    .jobs = 1},
			&w->store.writer, why);
	free(group);
	if (!err && w->store.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		err = kp_encoder_new(o->level ? o->level : LEVEL, &w->encoder, why);
	return err;
}

static kpack_error_t open_writer(const char *path, const struct kpackx_writer_options *o,
				 struct kpackx_writer **out, struct kpackx_error *why)
{
	struct kpackx_writer *w = calloc(1, sizeof(*w));
	struct place place = {0};
	kpack_error_t err;

	if (!w)
		return kp_fail_memory(why, sizeof(*w), "an archive");
	err = split_path(path, &place, why);
	if (!err)
		err = begin_archive(w, &place, o, why);
	free(place.dir);
	if (err)
		kpackx_writer_abort(w);
	else
		*out = w;
	return err;
}

kpack_error_t kpackx_writer_open(const char *path,
				 const struct kpackx_writer_options *options,
				 kpackx_writer_t *writer, struct kpackx_error *why)
{
	static const struct kpackx_writer_options none;
	kpack_error_t err;
	char shown[112]; /* leaves room for a directory and a reason */

	if (!path || !writer)
		return INVALID(why, "path or writer is NULL");
	options = options ? options : &none;
	err = check_options(options, why);
	if (!err)
		err = open_writer(path, options, writer, why);
	if (err)
		kp_fail_prefix(why, err, "%s",
			       kp_text_escape(kp_span_str(path), shown, sizeof(shown)));
	return err;
}

/* --- checking an object ------------------------------------------------------------- */

/* A checked object that is being added. */
struct addition {
	const struct kpackx_object *object;
	struct kp_span key, data; /* borrowed from OBJECT */
	char canonical[KP_TARGET_TEXT_MAX];
	const char *arch;          /* canonical spelling; unchanged if not a target ID */
	struct kpackx_text *texts; /* sorted by name */
	struct kp_content content;
	struct kp_writer_entry entry;
};

static kpack_error_t check_path(const char *path, struct kpackx_error *why)
{
	char shown[64];

	return kp_path_ok(kp_span_str(path))
		       ? KPACK_SUCCESS
		       : INVALID(why, "path %s is not a path inside a mount",
				 kp_text_escape(kp_span_str(path), shown, sizeof(shown)));
}

static kpack_error_t check_names(const struct kpackx_object *o, struct kpackx_error *why)
{
	KP_TRY(check_name("binary", o->binary, why));
	KP_TRY(check_name("arch", o->arch, why));
	if (o->type)
		KP_TRY(check_name("type", o->type, why));
	if (strchr(o->arch, '/') || (o->type && strchr(o->type, '/')))
		return INVALID(why, "arch or type has a '/': a file is named after them");
	if (o->target)
		KP_TRY(check_name("target", o->target, why));
	return o->path ? check_path(o->path, why) : KPACK_SUCCESS;
}

static kpack_error_t check_numbers(const struct kpackx_object *o,
				   struct kpackx_error *why)
{
	if (o->size && !o->data)
		return INVALID(why, "data is NULL for %zu bytes", o->size);
	if (o->mode & ~07777u)
		return INVALID(why, "mode 0%o has more than permission bits", o->mode);
	if (o->chunk && (o->chunk < KP_CHUNK_MIN || o->chunk > KP_CHUNK_MAX))
		return INVALID(why, "chunk %u is outside %d..%d", o->chunk, KP_CHUNK_MIN,
			       KP_CHUNK_MAX);
	if (o->n_texts && !o->texts)
		return INVALID(why, "texts is NULL for %zu", o->n_texts);
	if (!all_zero(o->reserved, KP_COUNT(o->reserved)))
		return INVALID(why, "reserved members are not zero");
	return KPACK_SUCCESS;
}

static kpack_error_t check_object(const struct kpackx_object *o, struct kpackx_error *why)
{
	KP_TRY(check_names(o, why));
	return check_numbers(o, why);
}

static int cmp_text_name(const void *a, const void *b)
{
	const struct kpackx_text *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static kpack_error_t check_one_text(const struct kpackx_text *t, struct kpackx_error *why)
{
	char shown[64];

	KP_TRY(check_name("name of a text", t->name, why));
	kp_text_escape(kp_span_str(t->name), shown, sizeof(shown));
	KP_TRY(check_text(shown, t->text, why));
	if (kp_metadata_is_field(t->name))
		return INVALID(why, "%s: a field of the format has this name", shown);
	return KPACK_SUCCESS;
}

/* Sort the texts by name, so that the caller's order does not matter. */
static kpack_error_t sort_texts(struct addition *a, struct kpackx_error *why)
{
	size_t n = a->object->n_texts;
	char shown[64];

	if (n == 0)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < n; i++)
		KP_TRY(check_one_text(&a->object->texts[i], why));
	a->texts = calloc(n, sizeof(*a->texts));
	if (!a->texts)
		return kp_fail_memory(why, n * sizeof(*a->texts), "texts");
	memcpy(a->texts, a->object->texts, n * sizeof(*a->texts));
	qsort(a->texts, n, sizeof(*a->texts), cmp_text_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(a->texts[i - 1].name, a->texts[i].name) == 0)
			return INVALID(why, "%s was given twice",
				       kp_text_escape(kp_span_str(a->texts[i].name),
						      shown, sizeof(shown)));
	return KPACK_SUCCESS;
}

static const char *canonical_arch(const char *arch, char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target t;

	if (kp_target_parse(kp_span_str(arch), &t, NULL))
		return arch;
	kp_target_format(&t, out);
	return out;
}

/*
 * Return the bytes per frame; 0: not chunked, as for an object that fits into one frame.
 */
static uint64_t chunk_of(const struct kpackx_writer *w, const struct kpackx_object *o)
{
	return w->encoder && o->size > o->chunk ? o->chunk : 0;
}

static kpack_error_t make_metadata(struct addition *a, struct kpackx_error *why)
{
	const struct kpackx_object *o = a->object;
	struct kp_meta meta = {
		.has_xxh3 = true, .mode = o->mode, .chunk = a->content.chunk};
	uint8_t *map;
	size_t size;

	if (o->path)
		meta.path = kp_span_str(o->path);
	if (o->target)
		meta.target = kp_span_str(o->target);
	memcpy(meta.xxh3, a->content.hash, sizeof(meta.xxh3));
	KP_TRY(kp_metadata_write(
		&meta,
		&(struct kp_metadata_more){.texts = a->texts, .n_texts = o->n_texts},
		&map, &size, why));
	a->entry.metadata = (struct kp_span){map, size};
	return KPACK_SUCCESS;
}

/* Do all checks that may refuse the object, before anything is written. */
static kpack_error_t prepare_addition(struct kpackx_writer *w,
				      const struct kpackx_object *o, struct addition *a,
				      struct kpackx_error *why)
{
	uint64_t chunk;

	a->object = o;
	KP_TRY(check_object(o, why));
	KP_TRY(sort_texts(a, why));
	chunk = chunk_of(w, o);
	if (!chunk && o->size > KP_OBJECT_MAX)
		return INVALID(why, "%zu bytes, limit %llu", o->size,
			       (unsigned long long)KP_OBJECT_MAX);
	a->arch = canonical_arch(o->arch, a->canonical);
	a->key = kp_span_str(o->binary);
	a->data = (struct kp_span){o->data, o->size};
	a->content = kp_content_of(a->data, chunk);
	a->entry.type = kp_span_str(o->type ? o->type : "hsaco");
	a->entry.size = o->size;
	KP_TRY(make_metadata(a, why));
	return kp_writer_check_entry(w->store.writer, a->key, kp_span_str(a->arch),
				     &a->entry, why);
}

static void addition_fini(struct addition *a)
{
	free(a->texts);
	free((void *)a->entry.metadata.data);
}

/* --- adding ------------------------------------------------------------------------- */

/*
 * *FOUND becomes true if the bytes are stored already, so that they need not be encoded.
 */
static kpack_error_t find_stored(struct kpackx_writer *w, struct addition *a, bool *found,
				 struct kpackx_error *why)
{
	struct kp_scratch scratch = {0};
	struct kp_span stored;
	kpack_error_t err;

	*found = false;
	if (!kp_store_find(&w->store, &a->content, &a->entry.ordinal))
		return KPACK_SUCCESS;
	err = kp_store_read(&w->store, a->entry.ordinal, &scratch, &stored, why);
	if (!err)
		err = kp_store_equals(w->store.scheme, stored, a->data, &scratch, found,
				      why);
	kp_scratch_fini(&scratch);
	return err;
}

static kpack_error_t store_encoded(struct kpackx_writer *w, struct addition *a,
				   struct kpackx_error *why)
{
	size_t cap = kp_encode_bound(a->data.size, a->content.chunk), size = 0;
	uint8_t *frames = malloc(cap + 1);
	kpack_error_t err;
	bool shared;

	if (!frames)
		return kp_fail_memory(why, cap, "a frame");
	err = kp_encode(w->encoder, a->data, a->content.chunk, frames, cap, &size, why);
	if (!err)
		err = kp_store_add(&w->store, &a->content, (struct kp_span){frames, size},
				   &a->entry.ordinal, &shared, why);
	free(frames);
	return err;
}

static kpack_error_t store_content(struct kpackx_writer *w, struct addition *a,
				   struct kpackx_error *why)
{
	bool found;

	KP_TRY(find_stored(w, a, &found, why));
	if (found)
		return KPACK_SUCCESS;
	if (w->encoder)
		return store_encoded(w, a, why);
	return kp_store_add(&w->store, &a->content, a->data, &a->entry.ordinal, &found,
			    why);
}

static kpack_error_t add_object(struct kpackx_writer *w, const struct kpackx_object *o,
				struct kpackx_error *why)
{
	struct addition a = {0};
	kpack_error_t err = prepare_addition(w, o, &a, why);

	if (!err)
		err = store_content(w, &a, why);
	if (!err)
		err = kp_writer_add_entry(w->store.writer, a.key, kp_span_str(a.arch),
					  &a.entry, why);
	addition_fini(&a);
	return err;
}

/* Put the object's name before the message, because a build adds thousands of objects. */
static void name_object(const struct kpackx_object *o, struct kpackx_error *why)
{
	char binary[112], arch[48];

	kp_fail_prefix(
		why, why->code, "%s %s",
		kp_text_escape(kp_span_str(o->binary ? o->binary : "?"), binary,
			       sizeof(binary)),
		kp_text_escape(kp_span_str(o->arch ? o->arch : "?"), arch, sizeof(arch)));
}

static kpack_error_t copy_error(const struct kpackx_error *what, struct kpackx_error *why)
{
	if (why)
		*why = *what;
	return what->code;
}

kpack_error_t kpackx_writer_add(kpackx_writer_t writer,
				const struct kpackx_object *object,
				struct kpackx_error *why)
{
	struct kpackx_error failure = {0};

	if (!writer || !object)
		return INVALID(why, "writer or object is NULL");
	if (writer->lost.code)
		return copy_error(&writer->lost, why);
	if (add_object(writer, object, &failure) == KPACK_SUCCESS)
		return KPACK_SUCCESS;
	name_object(object, &failure);
	if (failure.code != KPACK_ERROR_INVALID_ARGUMENT)
		writer->lost = failure;
	return copy_error(&failure, why);
}

/* --- the end ------------------------------------------------------------------------ */

kpack_error_t kpackx_writer_finish(kpackx_writer_t writer, struct kpackx_error *why)
{
	kpack_error_t err;

	if (!writer)
		return INVALID(why, "writer is NULL");
	err = writer->lost.code ? copy_error(&writer->lost, why)
				: kp_writer_finish(writer->store.writer, why);
	if (!err)
		err = kp_writer_publish(writer->store.writer, why);
	kpackx_writer_abort(writer);
	return err;
}

void kpackx_writer_abort(kpackx_writer_t writer)
{
	if (!writer)
		return;
	kp_store_fini(&writer->store);
	kp_encoder_free(writer->encoder);
	free(writer);
}
