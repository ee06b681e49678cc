/* SPDX-License-Identifier: MIT */
#include "packer/library/tensile/index.h"
#include <stdio.h>
#include "tests/unit/unit.h"
#include <msgpack.h> /* msgpack-c writes the test's input */
#include "core/base/bounds.h"

/* --- writing ------------------------------------------------------------------------- */

static msgpack_sbuffer buffer;
static msgpack_packer packer;

static void begin(void)
{
	msgpack_sbuffer_init(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
}

static void map(size_t pairs)
{
	msgpack_pack_map(&packer, pairs);
}

static void array(size_t items)
{
	msgpack_pack_array(&packer, items);
}

static void text(const char *s)
{
	msgpack_pack_str_with_body(&packer, s, strlen(s));
}

static void pair(const char *key, const char *value)
{
	text(key);
	text(value);
}

static void typed(const char *type, const char *value)
{
	map(2);
	pair("type", type);
	pair("value", value);
}

/* {"type": "AMDGPU", "value": {"type": "Processor", "value": GPU}} */
static void gpu_predicate(const char *gpu)
{
	map(2);
	pair("type", "AMDGPU");
	text("value");
	typed("Processor", gpu);
}

/* SOURCE: 0, 1, or -1: not stated. */
static void solution(const char *name, const char *gpu, int source, unsigned split)
{
	map(3);
	pair("name", name);
	text("hardwarePredicate");
	if (gpu) {
		gpu_predicate(gpu);
	} else {
		map(1);
		pair("type", "TruePred");
	}
	text("sizeMapping");
	map(source < 0 ? 2 : 3);
	text("workGroup");
	array(2);
	msgpack_pack_uint8(&packer, 16);
	msgpack_pack_uint8(&packer, 16);
	text("globalSplitU");
	msgpack_pack_uint32(&packer, split);
	if (source < 0)
		return;
	text("sourceKernel");
	if (source)
		msgpack_pack_true(&packer);
	else
		msgpack_pack_false(&packer);
}

/* --- reading ------------------------------------------------------------------------- */

static struct tensile_index x;
static struct kpackx_error why;

static kpack_error_t read_size(size_t size)
{
	why = (struct kpackx_error){0};
	return tensile_index_read((struct kp_span){(uint8_t *)buffer.data, size}, &x,
				  &why);
}

static void read_good(void)
{
	assert_int_equal(read_size(buffer.size), KPACK_SUCCESS);
}

static void end(void)
{
	tensile_index_fini(&x);
	msgpack_sbuffer_destroy(&buffer);
}

static void refused(const char *words)
{
	assert_int_equal(read_size(buffer.size), KPACK_ERROR_MSGPACK_PARSE_FAILED);
	assert_has(why.text, words);
	end();
}

#define assert_span(span, wanted) assert_true(kp_span_is(span, wanted))

/* --- the tests ----------------------------------------------------------------------- */

static void placeholder_row(const char *gpu, bool library_first, const char *value)
{
	map(2);
	for (int i = 0; i < 2; i++) {
		if ((i == 0) == library_first) {
			text("library");
			map(2);
			pair("type", "ProblemMap");
			text("map");
			map(1);
			msgpack_pack_uint8(&packer, 7); /* keys may be numbers */
			typed("Placeholder", value);
			continue;
		}
		text("predicate");
		if (gpu)
			gpu_predicate(gpu);
		else
			map(0);
	}
}

TEST(test_placeholders)
{
	begin();
	map(2);
	text("library");
	map(2);
	text("rows");
	array(3);
	placeholder_row("gfx1100", false, "a");
	placeholder_row("gfx90a", true, "b");
	placeholder_row(NULL, false, "c");
	pair("type", "Hardware");
	text("solutions");
	array(0);
	msgpack_pack_nil(&packer); /* loaders stop after the first value */
	read_good();
	assert_true(x.has_library);
	assert_int_equal(x.n_solutions, 0);
	assert_int_equal(x.n_placeholders, 3);
	assert_int_equal(x.n_gpus, 2);
	assert_span(x.placeholders[0].value, "a");
	assert_int_equal(x.placeholders[0].n_gpus, 1);
	assert_span(x.gpus[x.placeholders[0].gpu], "gfx1100");
	assert_span(x.placeholders[1].value, "b");
	assert_int_equal(x.placeholders[1].n_gpus, 1);
	assert_span(x.gpus[x.placeholders[1].gpu], "gfx90a");
	assert_span(x.placeholders[2].value, "c");
	assert_int_equal(x.placeholders[2].n_gpus, 0);
	end();
}

static const struct tensile_kernels *kernels(const char *gpu)
{
	for (size_t i = 0; i < x.n_kernels; i++)
		if (kp_span_is(x.kernels[i].gpu, gpu))
			return &x.kernels[i];
	fail_msg("no kernels of '%s'", gpu);
	return NULL;
}

static void check_kernels(void)
{
	const struct tensile_kernels *any = kernels(""), *own = kernels("gfx900");

	assert_int_equal(x.n_kernels, 2);
	assert_int_equal(x.n_gpus, 0);
	assert_int_equal(x.n_solutions, 4);
	assert_int_equal(any->kinds, TENSILE_SOURCE | TENSILE_UNSTATED | TENSILE_HELPER);
	assert_span(any->source, "k2");
	assert_int_equal(any->assembly.size, 0);
	assert_int_equal(own->kinds, TENSILE_ASSEMBLY);
	assert_span(own->assembly, "k1");
}

static void four_solutions(void)
{
	solution("k1", "gfx900", 0, 1);
	solution("k2", NULL, 1, 1);
	solution("k3", "gfx900", 0, 1);
	solution("k4", NULL, -1, 4);
}

TEST(test_solutions)
{
	begin();
	map(1);
	text("solutions");
	array(4);
	four_solutions();
	read_good();
	check_kernels();
	assert_false(x.has_library);
	end();
}

TEST(test_blob)
{
	msgpack_sbuffer blob;

	begin();
	four_solutions();
	blob = buffer;
	begin();
	map(2);
	text("solutions_blob");
	msgpack_pack_bin_with_body(&packer, blob.data, blob.size);
	text("library");
	typed("Placeholder", "behind");
	read_good();
	check_kernels();
	assert_int_equal(x.n_placeholders, 1);
	/* a fault inside the blob is reported at its offset in the file */
	buffer.data[19] = (char)0xc1;
	tensile_index_fini(&x);
	refused("solutions_blob");
	msgpack_sbuffer_destroy(&blob);
}

TEST(test_not_a_map)
{
	static const char *const bytes[] = {"", "\x90", "\xc0", "text", "\x80"};

	for (size_t i = 0; i < COUNT(bytes); i++) {
		struct kp_span s = kp_span_str(bytes[i]);
		bool good = i == 4;

		assert_int_equal(tensile_index_read(s, &x, &why),
				 good ? KPACK_SUCCESS : KPACK_ERROR_MSGPACK_PARSE_FAILED);
		tensile_index_fini(&x);
	}
}

TEST(test_cut)
{
	size_t whole;

	begin();
	map(2);
	text("solutions");
	array(4);
	four_solutions();
	text("library");
	typed("Placeholder", "a");
	whole = buffer.size;
	for (size_t n = 0; n < whole; n++) {
		assert_int_equal(read_size(n), KPACK_ERROR_MSGPACK_PARSE_FAILED);
		tensile_index_fini(&x);
	}
	read_good();
	end();
}

TEST(test_depth)
{
	for (int deep = 40; deep < 200000; deep = 5 * deep) {
		begin();
		map(1);
		text("library");
		for (int i = 0; i < deep; i++) {
			map(1);
			text("library");
		}
		typed("Placeholder", "a");
		if (deep > 64) {
			refused("nested too deeply");
			continue;
		}
		read_good();
		assert_int_equal(x.n_placeholders, 1);
		end();
	}
}

TEST(test_counts)
{
	static const char *const bytes[] = {
		"\xdf\xff\xff\xff\xff",                         /* map of 2^32-1 pairs */
		"\x81\xa9solutions\xdd\xff\xff\xff\xff",        /* array */
		"\x81\xa7library\x81\xa5value\xdb\xff\xff\xff", /* string */
	};

	for (size_t i = 0; i < COUNT(bytes); i++) {
		assert_int_equal(tensile_index_read(kp_span_str(bytes[i]), &x, &why),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
		tensile_index_fini(&x);
	}
}

TEST(test_placeholder_values)
{
	char longer[KP_NAME_MAX + 2];

	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	for (int i = 0; i < 3; i++) {
		begin();
		map(1);
		text("library");
		if (i == 2) {
			map(1);
			pair("type", "Placeholder");
			refused("without a value");
			continue;
		}
		typed("Placeholder", i ? longer : "");
		refused("no file name");
	}
}

TEST(test_many_processors)
{
	begin();
	map(1);
	text("solutions");
	array(300);
	for (int i = 0; i < 300; i++) {
		char gpu[16];

		snprintf(gpu, sizeof(gpu), "gfx%d", 1000 + i);
		solution("k", gpu, 0, 1);
	}
	refused("too many processors");
}
