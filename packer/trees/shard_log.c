/* SPDX-License-Identifier: MIT */
#include "shard_log.h"
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/scheme.h"
#include "core/base/strbuf.h"
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

#ifndef KP_VERSION
#define KP_VERSION "0.1"
#endif

struct shard_log {
	msgpack_sbuffer buf;
	msgpack_packer pk;
};

/* msgpack_sbuffer_write, which cannot fail any more; so no msgpack_pack_... can. */
static int append_record(void *buf, const char *data, size_t size)
{
	if (msgpack_sbuffer_write(buf, data, size))
		xalloc_fail(size);
	return 0;
}

struct shard_log *shard_log_new(void)
{
	struct shard_log *log = xcalloc(1, sizeof(*log));

	msgpack_sbuffer_init(&log->buf);
	msgpack_packer_init(&log->pk, &log->buf, append_record);
	return log;
}

void shard_log_free(struct shard_log *log)
{
	if (!log)
		return;
	msgpack_sbuffer_destroy(&log->buf);
	free(log);
}

/* --- values -------------------------------------------------------------------------- */

static void put_array(struct shard_log *log, size_t n)
{
	msgpack_pack_array(&log->pk, n);
}

static void put_number(struct shard_log *log, uint64_t n)
{
	msgpack_pack_uint64(&log->pk, n);
}

static void put_bytes(struct shard_log *log, const void *data, size_t size)
{
	msgpack_pack_bin(&log->pk, size);
	if (size)
		msgpack_pack_bin_body(&log->pk, data, size);
}

static void put_text(struct shard_log *log, const char *text)
{
	put_bytes(log, text, strlen(text));
}

static void put_kind(struct shard_log *log, const char *kind, size_t n)
{
	put_array(log, n);
	msgpack_pack_str(&log->pk, strlen(kind));
	msgpack_pack_str_body(&log->pk, kind, strlen(kind));
}

/* --- events -------------------------------------------------------------------------- */

void shard_log_binary(struct shard_log *log, uint32_t number,
		      const struct plan_binary *binary)
{
	put_kind(log, "b", 5);
	put_number(log, number);
	put_text(log, binary->input->key);
	put_number(log, binary->volume);
	put_array(log, binary->n_needs);
	for (size_t i = 0; i < binary->n_needs; i++) {
		put_array(log, 3);
		put_text(log, binary->needs[i].place);
		put_number(log, binary->needs[i].bytes);
		put_number(log, binary->needs[i].frames);
	}
}

void shard_log_object(struct shard_log *log, const struct archive_object *object)
{
	put_kind(log, "o", 6);
	put_text(log, object->place);
	put_bytes(log, object->content.hash, sizeof(object->content.hash));
	put_number(log, object->content.size);
	put_number(log, object->content.chunk);
	put_number(log, object->ordinal);
}

void shard_log_entry(struct shard_log *log, const char *arch, struct kp_span key,
		     const struct kp_writer_entry *entry)
{
	put_kind(log, "e", 5);
	put_text(log, arch);
	put_bytes(log, key.data, key.size);
	put_bytes(log, entry->type.data, entry->type.size);
	put_bytes(log, entry->metadata.data, entry->metadata.size);
}

void shard_log_item(struct shard_log *log, const struct shard_item *item)
{
	put_kind(log, "i", 10);
	put_number(log, item->kind);
	put_text(log, item->path);
	put_number(log, item->size);
	put_number(log, item->mode);
	put_number(log, item->seconds);
	put_number(log, item->nanoseconds);
	put_bytes(log, item->hash, sizeof(item->hash));
	put_bytes(log, item->attributes, sizeof(item->attributes));
	put_text(log, item->first ? item->first : "");
}

void shard_log_converted(struct shard_log *log, uint32_t number, const char *path)
{
	put_kind(log, "c", 3);
	put_number(log, number);
	put_text(log, path);
}

/* --- the head ------------------------------------------------------------------------ */

/* Returns what was written to TEXT, on the heap. */
static char *take_text(struct kp_compose *text)
{
	char *out;

	if (kp_compose_take(text, &out, NULL))
		xalloc_fail(0);
	return out;
}

static void print_family(struct kp_compose *text, const struct family *family)
{
	kp_compose_print(text, "%s=", family->name);
	for (size_t i = 0; i < family->n_arches; i++)
		kp_compose_print(text, "%s%s", i ? "," : "", family->arches[i]);
}

static void print_choices(struct kp_compose *text, const struct pack_args *args)
{
	static const char *const databases[] = {"packed", "plain", "both", "identified"};
	static const char *const prefer[] = {"nothing", "input", "output"};

	kp_compose_print(text, " --databases %s --prefer %s", databases[args->databases],
			 prefer[args->prefer]);
	if (args->keep_device_code)
		kp_compose_str(text, " --keep-device-code");
	if (args->keep_containers)
		kp_compose_str(text, " --keep-containers");
	if (args->split_rocfft)
		kp_compose_str(text, " --split-rocfft");
	if (args->rows)
		kp_compose_str(text, " --rows");
}

char *shard_log_options(const struct pack_args *args)
{
	const struct kp_choice *chosen = &args->filter.chosen;
	struct kp_compose text = {0};
	char arch[KP_TARGET_TEXT_MAX];

	kp_compose_print(&text, "%s--group %s --key-prefix '%s'",
			 args->mode == PACK_ARCHIVES ? "--archives-only " : "",
			 args->group, args->prefix);
	kp_compose_print(&text,
			 " --scheme %s --level %d --chunk %" PRIu64
			 " --volume-size %" PRIu64,
			 kp_scheme_name(args->how.scheme), args->how.level,
			 args->how.chunk, args->volume_size);
	print_choices(&text, args);
	for (size_t i = 0; arch_filter_given(&args->filter) && i < chosen->count; i++) {
		kp_target_format(&chosen->gpus[i], arch);
		kp_compose_print(&text, " --arch %s", arch);
	}
	if (chosen->exact)
		kp_compose_str(&text, " --arch-exact");
	for (size_t i = 0; i < args->families.count; i++) {
		kp_compose_str(&text, " --family ");
		print_family(&text, &args->families.items[i]);
	}
	return take_text(&text);
}

const char *shard_log_version(char out[SHARD_VERSION_SIZE])
{
	snprintf(out, SHARD_VERSION_SIZE, "%s with libzstd %s", KP_VERSION,
		 ZSTD_versionString());
	return out;
}

static void put_families(struct shard_log *log, const struct families *families)
{
	put_array(log, families->count);
	for (size_t i = 0; i < families->count; i++) {
		struct kp_compose text = {0};
		char *family;

		print_family(&text, &families->items[i]);
		family = take_text(&text);
		put_text(log, family);
		free(family);
	}
}

static void put_head(struct shard_log *log, const struct pack_args *args,
		     const uint8_t plan[16])
{
	char version[SHARD_VERSION_SIZE], *options = shard_log_options(args);

	put_kind(log, "kpack shard", 13);
	put_number(log, SHARD_RECORD_VERSION);
	put_text(log, shard_log_version(version));
	put_number(log, args->shard.index);
	put_number(log, args->shard.count);
	put_number(log, args->mode == PACK_ARCHIVES);
	put_number(log, args->how.scheme);
	put_number(log, (uint64_t)args->how.level);
	put_number(log, args->volume_size);
	put_text(log, args->group);
	put_text(log, options);
	put_bytes(log, plan, 16);
	free(options);
	put_families(log, &args->families);
}

/* --- the file ------------------------------------------------------------------------ */

/* Put together the head, the events and the checksum of both. */
static void complete_record(struct shard_log *all, const struct shard_log *log,
			    const struct pack_args *args, const uint8_t plan[16])
{
	struct kp_hash sum;

	put_head(all, args, plan);
	if (log->buf.size)
		append_record(&all->buf, log->buf.data, log->buf.size);
	sum = kp_hash_of(all->buf.data, all->buf.size);
	put_kind(all, "z", 2);
	put_bytes(all, sum.bytes, sizeof(sum.bytes));
}

kpack_error_t shard_log_write(struct shard_log *log, const struct pack_args *args,
			      const uint8_t plan[16], const char *dir,
			      struct kpackx_error *why)
{
	struct shard_log *all = shard_log_new();
	char *path = xasprintf("%s/" SHARD_RECORD, dir);
	struct kp_span bytes;
	kpack_error_t err;

	complete_record(all, log, args, plan);
	bytes = (struct kp_span){(const uint8_t *)all->buf.data, all->buf.size};
	err = below_file_write(path, 0666, bytes, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	shard_log_free(all);
	free(path);
	return err;
}
