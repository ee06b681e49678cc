/* SPDX-License-Identifier: MIT */
/* Shard records: a written record can be read back, and nothing else is accepted. */
#include "packer/shard/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static uint8_t bytes[65536];
static size_t size;

static void log_binary(struct shard_log *log)
{
	struct archive_need needs[] = {{"gfx942", 5000, 2}, {"gfx1100", 70, 1}};
	struct input input = {.key = (char *)"lib/a.so"};
	struct plan_binary binary = {&input, needs, 2, 3};
	struct archive_object object = {
		.place = "gfx942", .content = {{1, 2, 3}, 4000, 0}, .ordinal = 9};
	struct kp_writer_entry entry = {.type = kp_span_str("hsaco"),
					.metadata = {(const uint8_t *)"\x80", 1}};

	shard_log_binary(log, 17, &binary);
	shard_log_object(log, &object);
	shard_log_entry(log, "gfx942", kp_span_str("lib/a.so#0"), &entry);
	shard_log_entry(log, "gfx942", kp_span_str("lib/a.so#1"), &entry);
	object.ordinal = 10;
	shard_log_object(log, &object);
}

/* Write a record with one item of each kind, and read its bytes. */
static int write_record(void **state)
{
	static const uint8_t plan[16] = "0123456789abcdef";
	struct pack_args args = {.group = (char *)"g",
				 .prefix = (char *)"",
				 .shard = {2, 3},
				 .volume_size = 12345,
				 .how.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL};
	struct shard_item file = {.kind = SHARD_FILE,
				  .path = "lib/a.so",
				  .size = 7,
				  .mode = 0100644,
				  .seconds = (uint64_t)-5};
	struct shard_item link = {.kind = SHARD_LINK, .path = "b", .first = "lib/a.so"};
	char dir[] = "/tmp/kpack-test-XXXXXX", path[64];
	struct shard_log *log;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(families_add(&args.families, kp_span_str("rdna"),
				      "gfx1100,gfx1030", NULL),
			 KPACK_SUCCESS);
	log = shard_log_new();
	log_binary(log);
	shard_log_item(log, &file);
	shard_log_item(log, &link);
	shard_log_converted(log, 17, "lib/a.so");
	assert_int_equal(shard_log_write(log, &args, plan, dir, NULL), KPACK_SUCCESS);
	shard_log_free(log);
	families_fini(&args.families);
	snprintf(path, sizeof(path), "%s/" SHARD_RECORD, dir);
	f = fopen(path, "rb");
	size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	unlink(path);
	return rmdir(dir);
}

static void check_events(const struct shard_binary *b)
{
	struct kp_mp events = kp_mp_over(b->events);
	struct shard_event e;

	assert_true(shard_event_next(&events, &e));
	assert_false(e.is_entry);
	assert_string_equal(e.place, "gfx942");
	assert_int_equal(e.content.size, 4000);
	assert_int_equal(e.content.hash[2], 3);
	assert_int_equal(e.ordinal, 9);
	assert_true(shard_event_next(&events, &e));
	assert_true(e.is_entry && kp_span_is(e.key, "lib/a.so#0"));
	assert_true(kp_span_is(e.type, "hsaco") && e.metadata.size == 1);
	assert_true(shard_event_next(&events, &e));
	assert_true(e.is_entry && kp_span_is(e.key, "lib/a.so#1"));
	assert_true(shard_event_next(&events, &e));
	assert_int_equal(e.ordinal, 10);
	assert_false(shard_event_next(&events, &e));
}

TEST(everything_comes_back)
{
	struct shard_record r;

	assert_int_equal(shard_record_parse((struct kp_span){bytes, size}, &r, NULL),
			 KPACK_SUCCESS);
	assert_int_equal(r.shard.index, 2);
	assert_int_equal(r.shard.count, 3);
	assert_int_equal(r.volume_size, 12345);
	assert_string_equal(r.group, "g");
	assert_memory_equal(r.plan, "0123456789abcdef", 16);
	assert_has(r.options, "--family rdna=gfx1100,gfx1030");
	assert_string_equal(families_find(&r.families, "gfx1030")->name, "rdna");
	assert_int_equal(r.n_binaries, 1);
	assert_int_equal(r.binaries[0].number, 17);
	assert_int_equal(r.binaries[0].volume, 3);
	assert_int_equal(r.binaries[0].n_needs, 2);
	assert_string_equal(r.binaries[0].needs[1].place, "gfx1100");
	assert_int_equal(r.binaries[0].needs[0].bytes, 5000);
	check_events(&r.binaries[0]);
	assert_int_equal(r.n_items, 2);
	assert_int_equal((int64_t)r.items[0].seconds, -5);
	assert_string_equal(r.items[1].first, "lib/a.so");
	assert_int_equal(r.n_converted, 1);
	assert_int_equal(r.converted[0].number, 17);
	shard_record_fini(&r);
}

TEST(what_is_cut_or_changed_is_refused)
{
	for (size_t i = 0; i <= size; i++) {
		struct kpackx_error why = {0};
		uint8_t *copy = malloc(size);
		struct shard_record r;

		assert_non_null(copy);
		memcpy(copy, bytes, size);
		if (i < size) {
			assert_int_not_equal(
				shard_record_parse((struct kp_span){copy, i}, &r, &why),
				KPACK_SUCCESS);
			assert_int_not_equal(why.text[0], 0);
			shard_record_fini(&r);
			copy[i] ^= 1;
			assert_int_not_equal(
				shard_record_parse((struct kp_span){copy, size}, &r,
						   NULL),
				KPACK_SUCCESS);
			shard_record_fini(&r);
		}
		free(copy);
	}
}

SUITE(write_record, NULL);
