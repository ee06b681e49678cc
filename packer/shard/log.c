/* SPDX-License-Identifier: MIT */
#include "log.h"
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/strbuf.h"
#include "core/base/file.h"

#ifndef KP_VERSION
#define KP_VERSION "0.1"
#endif

struct shard_log {
	msgpack_sbuffer buf;
	msgpack_packer pk;
	int failed;
};

kpack_error_t shard_log_new(struct shard_log **out, struct kpackx_error *why)
{
	struct shard_log *log = calloc(1, sizeof(*log));

	if (!log)
		return kp_fail_memory(why, sizeof(*log), "a record");
	msgpack_sbuffer_init(&log->buf);
	msgpack_packer_init(&log->pk, &log->buf, msgpack_sbuffer_write);
	*out = log;
	return KPACK_SUCCESS;
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
	log->failed |= msgpack_pack_array(&log->pk, n);
}

static void put_number(struct shard_log *log, uint64_t n)
{
	log->failed |= msgpack_pack_uint64(&log->pk, n);
}

static void put_bytes(struct shard_log *log, const void *data, size_t size)
{
	log->failed |= msgpack_pack_bin(&log->pk, size);
	if (size)
		log->failed |= msgpack_pack_bin_body(&log->pk, data, size);
}

static void put_text(struct shard_log *log, const char *text)
{
	put_bytes(log, text, strlen(text));
}

static void put_kind(struct shard_log *log, const char *kind, size_t n)
{
	put_array(log, n);
	log->failed |= msgpack_pack_str(&log->pk, strlen(kind));
	log->failed |= msgpack_pack_str_body(&log->pk, kind, strlen(kind));
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

static void print_family(struct kp_compose *text, const struct family *family)
{
	kp_compose_print(text, "%s=", family->name);
	for (size_t i = 0; i < family->n_arches; i++)
		kp_compose_print(text, "%s%s", i ? "," : "", family->arches[i]);
}

static void print_choices(struct kp_compose *text, const struct pack_args *args)
{
	static const char *const databases[] = {"packed", "plain", "both"};
	static const char *const prefer[] = {"nothing", "input", "output"};

	kp_compose_print(text, " --databases %s --prefer %s", databases[args->databases],
			 prefer[args->prefer]);
	if (args->keep_device_code)
		kp_compose_str(text, " --keep-device-code");
	if (args->split_rocfft)
		kp_compose_str(text, " --split-rocfft");
	if (args->rows)
		kp_compose_str(text, " --rows");
}

kpack_error_t shard_log_options(const struct pack_args *args, char **out,
				struct kpackx_error *why)
{
	struct kp_compose text = {0};
	char arch[KP_TARGET_TEXT_MAX];

	kp_compose_print(&text, "%s--group %s --key-prefix '%s'",
			 args->mode == PACK_ARCHIVES ? "--archives-only " : "",
			 args->group, args->prefix);
	kp_compose_print(
		&text,
		" --scheme %s --level %d --chunk %" PRIu64 " --volume-size %" PRIu64,
		args->how.scheme == KPACK_COMPRESSION_NOOP ? "none" : "zstd-per-kernel",
		args->how.level, args->how.chunk, args->volume_size);
	print_choices(&text, args);
	for (size_t i = 0; i < args->filter.count; i++) {
		kp_target_format(&args->filter.targets[i], arch);
		kp_compose_print(&text, " --arch %s", arch);
	}
	for (size_t i = 0; i < args->families.count; i++) {
		kp_compose_str(&text, " --family ");
		print_family(&text, &args->families.items[i]);
	}
	return kp_compose_take(&text, out, why);
}

const char *shard_log_version(char out[SHARD_VERSION_SIZE])
{
	snprintf(out, SHARD_VERSION_SIZE, "%s with libzstd %s", KP_VERSION,
		 ZSTD_versionString());
	return out;
}

static kpack_error_t put_families(struct shard_log *log, const struct families *families,
				  struct kpackx_error *why)
{
	put_array(log, families->count);
	for (size_t i = 0; i < families->count; i++) {
		struct kp_compose text = {0};
		char *family;

		print_family(&text, &families->items[i]);
		KP_TRY(kp_compose_take(&text, &family, why));
		put_text(log, family);
		free(family);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t put_head(struct shard_log *log, const struct pack_args *args,
			      const uint8_t plan[16], struct kpackx_error *why)
{
	char version[SHARD_VERSION_SIZE], *options;

	KP_TRY(shard_log_options(args, &options, why));
	put_kind(log, "kpack shard", 12);
	put_number(log, SHARD_RECORD_VERSION);
	put_text(log, shard_log_version(version));
	put_number(log, args->shard.index);
	put_number(log, args->shard.count);
	put_number(log, args->mode == PACK_ARCHIVES);
	put_number(log, args->how.scheme);
	put_number(log, args->volume_size);
	put_text(log, args->group);
	put_text(log, options);
	put_bytes(log, plan, 16);
	free(options);
	return put_families(log, &args->families, why);
}

/* --- the file ------------------------------------------------------------------------ */

/* Put together the head, the events and the checksum of both. */
static kpack_error_t complete_record(struct shard_log *all, const struct shard_log *log,
				     const struct pack_args *args, const uint8_t plan[16],
				     struct kpackx_error *why)
{
	struct kp_hash sum;

	KP_TRY(put_head(all, args, plan, why));
	if (log->buf.size)
		all->failed |=
			msgpack_sbuffer_write(&all->buf, log->buf.data, log->buf.size);
	if (all->failed || log->failed)
		return kp_fail_memory(why, all->buf.size, "a record");
	sum = kp_hash_of(all->buf.data, all->buf.size);
	put_kind(all, "z", 2);
	put_bytes(all, sum.bytes, sizeof(sum.bytes));
	return all->failed ? kp_fail_memory(why, all->buf.size, "a record")
			   : KPACK_SUCCESS;
}

static kpack_error_t write_file(const struct shard_log *all, const char *dir,
				struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;

	KP_TRY(kp_outfile_open(&out, dir, SHARD_RECORD, 0666, why));
	err = kp_outfile_pwrite(&out, 0, all->buf.data, all->buf.size, why);
	if (!err)
		err = kp_outfile_publish(&out, why);
	kp_outfile_close(&out);
	return err;
}

kpack_error_t shard_log_write(struct shard_log *log, const struct pack_args *args,
			      const uint8_t plan[16], const char *dir,
			      struct kpackx_error *why)
{
	struct shard_log *all = NULL;
	kpack_error_t err;

	KP_TRY(shard_log_new(&all, why));
	err = complete_record(all, log, args, plan, why);
	if (!err)
		err = write_file(all, dir, why);
	shard_log_free(all);
	return err ? kp_fail_prefix(why, err, "%s/" SHARD_RECORD, dir) : err;
}
