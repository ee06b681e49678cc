/* SPDX-License-Identifier: MIT */
/*
 * The public writer.  An object goes through three steps, in this order: everything that may be
 * refused is checked, and nothing was written then, so that the caller may go on with other
 * objects; its content is stored, unless the archive has the same bytes already; its entry is
 * added.  After a failure of the last two steps the archive may have lost an object: then every
 * further call fails with the same reason, and the archive is never published.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include "core/writer/encode.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
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

/* Open the archive PATH of W.  Its group is by default its name without ".kpack". */
static kpack_error_t begin_archive(struct kpackx_writer *w, const char *path,
				   const struct kpackx_writer_options *o,
				   struct kpackx_error *why)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t stem = kp_archive_stem(kp_span_str(name));
	KP_AUTO_FREE char *dir = NULL;
	KP_AUTO_FREE char *group = NULL;
	struct stat st;

	if (o->level < 0 || o->level > LEVEL_MAX)
		return INVALID(why, "level %d is outside 1..%d", o->level, LEVEL_MAX);
	if (o->shared > 1)
		return INVALID(why, "shared is neither 0 nor 1");
	if (!all_zero(o->reserved, KP_COUNT(o->reserved)))
		return INVALID(why, "reserved members are not zero");
	if (o->group)
		KP_TRY(check_text("group", o->group, why));
	if (o->family)
		KP_TRY(check_text("family", o->family, why));
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "is %s",
			       S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	if (!*name)
		return INVALID(why, "names no file");
	/* the directory of "/name" is "/" */
	dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
		    : strdup(".");
	group = o->group ? strdup(o->group) : strndup(name, stem ? stem : strlen(name));
	if (!dir || !group)
		return kp_fail_memory(why, strlen(path), "a path");
	KP_TRY(check_text("group (the file's name, as none is given)", group, why));
	w->store.scheme = o->uncompressed ? KPACK_COMPRESSION_NOOP
			  : o->shared     ? KP_COMPRESSION_ZSTD_SHARED
					  : KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	KP_TRY(kp_writer_open(dir, name,
			      &(struct kp_writer_options){
				      .scheme = w->store.scheme,
				      .group = group,
				      .family = o->family,
				      .level = o->level ? o->level : KP_SHARED_LEVEL,
				      .jobs = 1},
			      &w->store.writer, why));
	return w->store.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL
		       ? kp_encoder_new(o->level ? o->level : LEVEL, &w->encoder, why)
		       : KPACK_SUCCESS;
}

kpack_error_t kpackx_writer_open(const char *path,
				 const struct kpackx_writer_options *options,
				 kpackx_writer_t *writer, struct kpackx_error *why)
{
	static const struct kpackx_writer_options none;
	struct kpackx_writer *w = NULL;
	kpack_error_t err;
	char shown[112]; /* leaves room for a directory and a reason */

	if (!path || !writer)
		return INVALID(why, "path or writer is NULL");
	options = options ? options : &none;
	err = kp_new(&w, 1, "an archive", why);
	if (!err)
		err = begin_archive(w, path, options, why);
	if (!err) {
		*writer = w;
		return KPACK_SUCCESS;
	}
	kpackx_writer_abort(w);
	return kp_fail_prefix(why, err, "%s",
			      kp_text_escape(kp_span_str(path), shown, sizeof(shown)));
}

/* --- checking an object ------------------------------------------------------------- */

/* A checked object that is being added. */
struct addition {
	struct kp_span key, data; /* borrowed from the object */
	char canonical[KP_TARGET_TEXT_MAX];
	const char *arch;          /* canonical spelling; unchanged if not a target ID */
	struct kpackx_text *texts; /* sorted by name */
	struct kp_content content;
	struct kp_writer_entry entry;
};

static void addition_fini(struct addition *a)
{
	free(a->texts);
	free((void *)a->entry.metadata.data);
}

/* Do all checks that may refuse the object, before anything is written. */
static kpack_error_t prepare_addition(struct kpackx_writer *w,
				      const struct kpackx_object *o, struct addition *a,
				      struct kpackx_error *why)
{
	/* an object that fits into one frame is not chunked */
	uint64_t chunk = w->encoder && o->size > o->chunk ? o->chunk : 0;
	struct kp_meta meta = {.has_xxh3 = true, .mode = o->mode};
	struct kp_target target;
	char shown[64];
	uint8_t *map;
	size_t size;

	KP_TRY(check_name("binary", o->binary, why));
	KP_TRY(check_name("arch", o->arch, why));
	if (o->type)
		KP_TRY(check_name("type", o->type, why));
	if (strchr(o->arch, '/') || (o->type && strchr(o->type, '/')))
		return INVALID(why, "arch or type has a '/': a file is named after them");
	if (o->target)
		KP_TRY(check_name("target", o->target, why));
	if (o->path && !kp_path_ok(kp_span_str(o->path)))
		return INVALID(
			why, "path %s is not a path inside a mount",
			kp_text_escape(kp_span_str(o->path), shown, sizeof(shown)));
	if (o->size && !o->data)
		return INVALID(why, "data is NULL for %zu bytes", o->size);
	if (o->mode & ~07777u)
		return INVALID(why, "mode 0%o has more than permission bits", o->mode);
	if (o->chunk && (o->chunk < KP_CHUNK_MIN || o->chunk > KP_CHUNK_MAX))
		return INVALID(why, "chunk %u is outside %d..%d", o->chunk, KP_CHUNK_MIN,
			       KP_CHUNK_MAX);
	if (o->n_texts && !o->texts)
		return INVALID(why, "texts is NULL for %zu", o->n_texts);
	/* members that a later version gives a meaning: a caller that sets them expects it */
	if (!all_zero(o->reserved, KP_COUNT(o->reserved)))
		return INVALID(why, "reserved members are not zero");
	for (size_t i = 0; i < o->n_texts; i++) {
		const struct kpackx_text *t = &o->texts[i];

		KP_TRY(check_name("name of a text", t->name, why));
		kp_text_escape(kp_span_str(t->name), shown, sizeof(shown));
		KP_TRY(check_text(shown, t->text, why));
		if (kp_metadata_is_field(t->name))
			return INVALID(why, "%s: a field of the format has this name",
				       shown);
	}
	if (o->n_texts) { /* sorted, so that the caller's order does not matter */
		KP_TRY(kp_new(&a->texts, o->n_texts, "texts", why));
		memcpy(a->texts, o->texts, o->n_texts * sizeof(*a->texts));
		kp_sort(a->texts, o->n_texts, KP_BY_TEXT(struct kpackx_text, name));
	}
	for (size_t i = 1; i < o->n_texts; i++)
		if (strcmp(a->texts[i - 1].name, a->texts[i].name) == 0)
			return INVALID(why, "%s was given twice",
				       kp_text_escape(kp_span_str(a->texts[i].name),
						      shown, sizeof(shown)));
	if (!chunk && o->size > KP_OBJECT_MAX)
		return INVALID(why, "%zu bytes, limit %llu", o->size,
			       (unsigned long long)KP_OBJECT_MAX);
	a->arch = o->arch;
	if (!kp_target_parse(kp_span_str(o->arch), &target, NULL)) {
		kp_target_format(&target, a->canonical);
		a->arch = a->canonical;
	}
	a->key = kp_span_str(o->binary);
	a->data = (struct kp_span){o->data, o->size};
	a->content = kp_content_of(a->data, chunk);
	a->entry.type = kp_span_str(o->type ? o->type : "hsaco");
	a->entry.size = o->size;
	meta.chunk = a->content.chunk;
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
	return kp_writer_check_entry(w->store.writer, a->key, kp_span_str(a->arch),
				     &a->entry, why);
}

/* --- adding ------------------------------------------------------------------------- */

/*
 * Store the object's bytes, and add its entry; bytes that the archive has are not encoded again.  A
 * hash only says that they may be the same: they are compared, so that no two contents ever share
 * an ordinal.
 */
static kpack_error_t add_object(struct kpackx_writer *w, const struct kpackx_object *o,
				struct kpackx_error *why)
{
	KP_AUTO(addition) all = {0};
	struct addition *a = &all;
	KP_AUTO_FREE uint8_t *frames = NULL;
	struct kp_scratch scratch = {0};
	struct kp_span stored;
	size_t cap, size = 0;
	bool found = false;
	kpack_error_t err;

	KP_TRY(prepare_addition(w, o, a, why));
	stored = a->data;
	if (kp_store_find(&w->store, &a->content, &a->entry.ordinal)) {
		err = kp_store_read(&w->store, a->entry.ordinal, &scratch, &stored, why);
		if (!err)
			err = kp_store_equals(w->store.scheme, stored, a->data, &scratch,
					      &found, why);
		kp_scratch_fini(&scratch);
		KP_TRY(err);
		stored = a->data;
	}
	if (w->encoder && !found) {
		cap = kp_encode_bound(a->data.size, a->content.chunk);
		frames = malloc(cap + 1);
		if (!frames)
			return kp_fail_memory(why, cap, "a frame");
		KP_TRY(kp_encode(w->encoder, a->data, a->content.chunk, frames, cap,
				 &size, why));
		stored = (struct kp_span){frames, size};
	}
	if (!found)
		KP_TRY(kp_store_add(&w->store, &a->content, stored, &a->entry.ordinal,
				    &found, why));
	return kp_writer_add_entry(w->store.writer, a->key, kp_span_str(a->arch),
				   &a->entry, why);
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
	char binary[112], arch[48];

	if (!writer || !object)
		return INVALID(why, "writer or object is NULL");
	if (writer->lost.code)
		return copy_error(&writer->lost, why);
	if (add_object(writer, object, &failure) == KPACK_SUCCESS)
		return KPACK_SUCCESS;
	/* a build adds thousands of objects */
	kp_fail_prefix(&failure, failure.code, "%s %s",
		       kp_text_escape(kp_span_str(object->binary ? object->binary : "?"),
				      binary, sizeof(binary)),
		       kp_text_escape(kp_span_str(object->arch ? object->arch : "?"),
				      arch, sizeof(arch)));
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
