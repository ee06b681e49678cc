/* SPDX-License-Identifier: MIT */
/* Input files with nested containers, including compressed ones. */
#include "packer/pack/scan/input.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "tests/unit/bundle_builder.h"

#define OPENMP "openmp-amdgcn-amd-amdhsa--gfx1100"
#define HOST "host-x86_64-unknown-linux-gnu-"

static struct kpackx_error why;
static char path[] = "/tmp/kpack-unit-input-XXXXXX";

/* A bundle with DATA as its only entry. */
static void put_around(struct bytes *b, const char *id, struct kp_span data)
{
	put(b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(b, 1, 8);
	put_number(b, 32 + 24 + strlen(id), 8);
	put_number(b, data.size, 8);
	put_number(b, strlen(id), 8);
	put(b, id, strlen(id));
	put(b, data.data, data.size);
}

static struct bytes packed(struct kp_span plain)
{
	struct bytes b = {0};

	put_ccob(&b, 3, 1, plain);
	return b;
}

/*
 * A compressed bundle of two bundles, the second compressed: three objects at two depths.
 */
static struct bytes nested(void)
{
	static const struct entry first[] = {{HOST, "host"},
					     {OPENMP, "one"},
					     {"openmp-amdgcn-amd-amdhsa--gfx942", "two"}};
	static const struct entry second[] = {{OPENMP, "three"}, {HOST, ""}};
	struct bytes inner = {0}, stream = {0}, outer = {0}, out;

	put_bundle(&inner, second, 2, 1);
	out = packed(bytes_span(&inner));
	put_bundle(&stream, first, 3, 1);
	put_zeros(&stream, 40);
	put(&stream, out.data, out.size);
	bytes_free(&out);
	put_around(&outer, OPENMP, bytes_span(&stream));
	out = packed(bytes_span(&outer));
	bytes_free(&inner);
	bytes_free(&stream);
	bytes_free(&outer);
	return out;
}

static void write_file(const struct bytes *b)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	if (b->size)
		assert_int_equal(fwrite(b->data, 1, b->size, f), b->size);
	assert_int_equal(fclose(f), 0);
}

static void open_nested(struct input *in)
{
	const struct input_look look = {0};
	struct bytes b = nested();

	write_file(&b);
	bytes_free(&b);
	if (input_open(path, "x", &look, in, &why))
		fail_msg("%s", why.text);
	assert_int_equal(in->fat.kind, KP_FATBIN_BARE);
	assert_int_equal(in->fat.containers.count, 3);
}

/* Expect all packed images to be read; returns their number. */
static size_t expect_all(struct input *in)
{
	const struct kp_containers *list = &in->fat.containers;
	size_t all = 0;

	for (size_t c = 0; c < list->count; c++) {
		unsigned n = 0;

		for (size_t i = 0; i < list->items[c].n_images; i++)
			n += in->packed[list->items[c].first_image + i];
		input_expect(in, c, n);
		all += n;
	}
	return all;
}

static void read_and_compare(struct input *in, size_t image, const char *want)
{
	char buf[16] = "";

	assert_true(in->packed[image]);
	assert_int_equal(in->fat.containers.images[image].size, strlen(want));
	assert_int_equal(input_read(in, image, buf, &why), KPACK_SUCCESS);
	assert_string_equal(buf, want);
}

static void note_place(uint32_t index, size_t container, void *arg)
{
	size_t *containers = arg;

	containers[index] = container;
}

TEST(what_holds_code_is_numbered_and_read)
{
	/*
	 * images: 0 the outer entry; 1 host and 2, 3 of the first bundle; 4, 5 of the
	 * second
	 */
	static const size_t orders[][3] = {{2, 3, 4}, {4, 3, 2}, {3, 4, 2}};
	static const char *const words[] = {[2] = "one", [3] = "two", [4] = "three"};
	size_t places[3] = {9, 9, 9};

	for (size_t o = 0; o < 3; o++) {
		struct input in;

		open_nested(&in);
		kp_fatbin_places(&in.fat, note_place, places);
		assert_int_equal(places[0], 1);
		assert_int_equal(places[1], 2);
		assert_int_equal(places[2], 9);
		assert_int_equal(expect_all(&in), 3);
		for (size_t i = 0; i < 3; i++)
			read_and_compare(&in, orders[o][i], words[orders[o][i]]);
		assert_int_equal(in.fd, -1); /* closed once no image needs it */
		input_fini(&in);
	}
}

static void peek_and_compare(struct input *in, size_t image, const char *want)
{
	char buf[16] = "";
	size_t n;

	assert_int_equal(input_peek(in, image, buf, 2, &n, &why), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_memory_equal(buf, want, 2);
}

/* A container is decoded once for all its images that are looked at one after another. */
TEST(peeks_keep_a_container_until_they_end)
{
	static const struct bytes nothing;
	struct input in;
	char buf[16];
	size_t n;

	open_nested(&in);
	assert_int_equal(expect_all(&in), 3);
	peek_and_compare(&in, 4, "hr");
	input_end_peek(&in, 4, KP_NOWHERE);
	assert_int_equal(in.fd, -1);
	peek_and_compare(&in, 2, "on");
	write_file(&nothing);
	input_end_peek(&in, 2, 3);
	peek_and_compare(&in, 3, "tw");
	/* of the inner container, only what is around it is decoded */
	input_end_peek(&in, 3, 4);
	peek_and_compare(&in, 4, "hr");
	input_end_peek(&in, 4, KP_NOWHERE);
	assert_int_equal(in.fd, -1);
	assert_int_equal(input_peek(&in, 2, buf, 2, &n, &why), KPACK_ERROR_IO_ERROR);
	input_end_peek(&in, 2, KP_NOWHERE);
	input_fini(&in);

	open_nested(&in);
	assert_int_equal(expect_all(&in), 3);
	peek_and_compare(&in, 2, "on");
	input_end_peek(&in, 2, KP_NOWHERE);
	read_and_compare(&in, 4, "three");
	read_and_compare(&in, 3, "two");
	read_and_compare(&in, 2, "one");
	assert_int_equal(in.fd, -1);
	input_fini(&in);
}

TEST(payloads_cost_what_their_images_share)
{
	struct input in;
	const struct kp_container *c;

	open_nested(&in);
	expect_all(&in);
	c = in.fat.containers.items;
	assert_int_equal(input_cost(&in, 2), c[0].payload_size / 3);
	assert_int_equal(input_cost(&in, 3), c[0].payload_size / 3);
	assert_int_equal(input_cost(&in, 4), c[0].payload_size / 3 + c[2].payload_size);
	input_fini(&in);
}

TEST(part_of_it_needs_less)
{
	struct input in;

	open_nested(&in);
	input_expect(&in, 2, 1);
	assert_int_equal(input_cost(&in, 4),
			 in.fat.containers.items[0].payload_size +
				 in.fat.containers.items[2].payload_size);
	read_and_compare(&in, 4, "three");
	assert_int_equal(in.fd, -1);
	input_fini(&in);
}

/* The file changes after the scan: each image fails, and everything is released. */
TEST(damage_is_reported_for_each_image)
{
	struct bytes b = nested();
	struct input in;
	char buf[16];

	open_nested(&in);
	expect_all(&in);
	/* same size and, by stat, same times, but other bytes */
	b.data[b.size - 1] ^= 0xff;
	b.data[b.size - 9] ^= 0xff;
	write_file(&b);
	bytes_free(&b);
	assert_int_equal(stat(path, &in.st), 0);
	for (size_t i = 2; i <= 4; i++)
		assert_int_not_equal(input_read(&in, i, buf, &why), KPACK_SUCCESS);
	assert_int_equal(in.fd, -1);
	input_fini(&in);
}

TEST(hip_entries_are_objects_whatever_they_are)
{
	static const struct entry entries[] = {{OPENMP, "one"}};
	const struct input_look look = {0};
	struct bytes inner = {0}, outer = {0}, out;
	struct input in;

	put_bundle(&inner, entries, 1, 1);
	put_around(&outer, "hipv4-amdgcn-amd-amdhsa--gfx942", bytes_span(&inner));
	out = packed(bytes_span(&outer));
	write_file(&out);
	assert_int_equal(input_open(path, "x", &look, &in, &why), KPACK_SUCCESS);
	assert_int_equal(in.fat.containers.count, 1);
	assert_true(in.packed[0]);
	assert_string_equal(in.fat.containers.images[0].arch, "gfx942");
	input_fini(&in);
	/* uncompressed entries are cheap to look into */
	write_file(&outer);
	assert_int_equal(input_open(path, "x", &look, &in, &why), KPACK_SUCCESS);
	assert_int_equal(in.fat.containers.count, 2);
	assert_false(in.packed[0]);
	assert_true(in.packed[1]);
	input_fini(&in);
	bytes_free(&inner);
	bytes_free(&outer);
	bytes_free(&out);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	return unlink(path);
}

SUITE(set_up, tear_down);
