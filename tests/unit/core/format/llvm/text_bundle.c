/* SPDX-License-Identifier: MIT */
#include "core/format/llvm/text_bundle.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>
#include "tests/unit/bundle_builder.h"
#include "core/base/bounds.h"

#define HOST "host-x86_64-unknown-linux-gnu-"
#define GFX(target) "hip-amdgcn-amd-amdhsa--" target
#define S(id) "\n// __CLANG_OFFLOAD_BUNDLE____START__ " id "\n"
#define E(id) "\n// __CLANG_OFFLOAD_BUNDLE____END__ " id "\n"

static struct kpackx_error why;

static kpack_error_t read_text(const char *comment, const void *data, size_t size,
			       struct kp_containers *out)
{
	struct kp_source src = exact_copy(data, size);
	kpack_error_t err = kp_text_bundle_read(&src, comment, out, &why);

	exact_copy_free(&src);
	return err;
}

/* TEXT has exactly these entries; each string is "ID=contents". */
static void assert_entries(const char *comment, const char *text,
			   const char *const *entries, size_t n)
{
	struct kp_containers list;
	char got[4096];

	if (read_text(comment, text, strlen(text), &list))
		fail_msg("%s", why.text);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].n_images, n);
	assert_int_equal(list.n_images, n);
	for (size_t i = 0; i < n; i++) {
		const struct kp_image *image = &list.images[i];

		assert_true(kp_range_ok(strlen(text), image->offset, image->size));
		snprintf(got, sizeof(got), "%s=%.*s", image->id, (int)image->size,
			 text + image->offset);
		assert_string_equal(got, entries[i]);
	}
	kp_containers_fini(&list);
}

#define ENTRIES(comment, text, ...)                                                      \
	assert_entries(comment, text, (const char *const[]){__VA_ARGS__},                \
		       COUNT(((const char *const[]){__VA_ARGS__})))

static void assert_refused(const char *text, const char *reason)
{
	struct kp_containers list;

	assert_int_equal(read_text("//", text, strlen(text), &list),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, reason);
	assert_null(list.items);
	assert_null(list.images);
}

TEST(entries_are_read_exactly)
{
	ENTRIES("//", S(HOST) "AAA\n" E(HOST) S("a") "BBB" E("a") S("b") E("b"),
		HOST "=AAA\n", "a=BBB", "b=");
	ENTRIES("#",
		"\n# __CLANG_OFFLOAD_BUNDLE____START__ x\n\n\n"
		"\n# __CLANG_OFFLOAD_BUNDLE____END__ x\n",
		"x=\n\n");
	ENTRIES(";",
		"\n; __CLANG_OFFLOAD_BUNDLE____START__ x\n; __CLANG\n"
		"\n; __CLANG_OFFLOAD_BUNDLE____END__ x",
		"x=; __CLANG\n");
}

TEST(ids_are_interpreted)
{
	const char *text = S(HOST) "h" E(HOST) S(GFX("gfx90a:xnack+")) "d" E("");
	struct kp_containers list;

	assert_int_equal(read_text("//", text, strlen(text), &list), KPACK_SUCCESS);
	assert_true(list.images[0].host);
	assert_string_equal(list.images[1].kind, "hip");
	assert_string_equal(list.images[1].arch, "gfx90a:xnack+");
	assert_int_equal(list.items[0].payload_size, strlen(text));
	kp_containers_fini(&list);
}

TEST(what_stands_between_entries_is_passed_over)
{
	assert_entries("//", "", NULL, 0);
	assert_entries("//", "plain source\n", NULL, 0);
	assert_entries(";", S("a") "A" E("a"), NULL, 0);
	assert_entries("//", E("a") E("b"), NULL, 0);
	ENTRIES("//", "junk" S("a") "A" E("b") "more\njunk" S("c") "C" E("c") "tail",
		"a=A", "c=C");
	/* IDs may repeat; the ID of an end marker is not compared */
	ENTRIES("//", S("a") "1" E("a") S("a") "2" E("z"), "a=1", "a=2");
	/* a start marker without a blank line before it */
	ENTRIES("//", "// __CLANG_OFFLOAD_BUNDLE____START__ a\nA" E("a"), "a=A");
	/*
	 * not markers: not at the start of a line, another comment prefix, another word
	 */
	ENTRIES("//",
		S("a") "x // __CLANG_OFFLOAD_BUNDLE____END__ a\n"
		       "# __CLANG_OFFLOAD_BUNDLE____END__ a\n"
		       "// __CLANG_OFFLOAD_BUNDLE____STOP__ a\n" E("a"),
		"a=x // __CLANG_OFFLOAD_BUNDLE____END__ a\n"
		"# __CLANG_OFFLOAD_BUNDLE____END__ a\n"
		"// __CLANG_OFFLOAD_BUNDLE____STOP__ a\n");
}

TEST(lines_that_end_in_cr_lf_are_understood)
{
	ENTRIES("//",
		"\r\n// __CLANG_OFFLOAD_BUNDLE____START__ a\r\nA\r\nB\r\n"
		"// __CLANG_OFFLOAD_BUNDLE____END__ a\r\n"
		"\r\n// __CLANG_OFFLOAD_BUNDLE____START__ b\r\n\r\n"
		"// __CLANG_OFFLOAD_BUNDLE____END__ b\r\n",
		"a=A\r\nB", "b=");
	/* contents that end in CR, in a bundle with LF line ends */
	ENTRIES("//", S("a") "A\r" E("a"), "a=A\r");
}

TEST(damage_is_named)
{
	char text[KP_ENTRY_ID_MAX + 100];

	assert_refused(S("a") "A", "entry a at offset 1: it has no end marker");
	assert_refused(S("a"), "no end marker");
	/* an end marker must follow a line feed other than the start marker's */
	assert_refused(S("a") "// __CLANG_OFFLOAD_BUNDLE____END__ a\n", "no end marker");
	assert_refused("\n// __CLANG_OFFLOAD_BUNDLE____START__ a", "no line feed");
	assert_refused(S("a") "A" S("b") "B" E("b") E("a"), "another entry begins in it");
	assert_refused(S("a") "A" S("b") "B" E("b"), "another entry begins in it");
	memset(text, 'i', sizeof(text));
	memcpy(text, S(""), strlen(S("")) - 1);
	strcpy(text + sizeof(text) - 4, "\n"
					"x\n");
	assert_refused(text, "too long");
}

TEST(start_markers_among_contents_are_contents)
{
	char text[2048], expected[2048], id[KP_ENTRY_ID_MAX + 100] = "";

	ENTRIES("//", S("a") "A" S("b") "B" E("a") S("b") "2" E("b"), "a=A" S("b") "B",
		"b=2");
	/* even a start marker with an ID that is too long */
	memset(id, 'x', sizeof(id) - 1);
	snprintf(text, sizeof(text),
		 S("a") "\n// __CLANG_OFFLOAD_BUNDLE____START__ %s" E("a"), id);
	snprintf(expected, sizeof(expected),
		 "a=\n// __CLANG_OFFLOAD_BUNDLE____START__ %s", id);
	ENTRIES("//", text, expected);
}

TEST(nul_bytes)
{
	static const char in_id[] = S("a\0b") "A" E("a");
	static const char in_contents[] = S("a") "A\0A" E("a");
	struct kp_containers list;

	assert_int_equal(read_text("//", in_id, sizeof(in_id) - 1, &list),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(read_text("//", in_contents, sizeof(in_contents) - 1, &list),
			 KPACK_SUCCESS);
	assert_int_equal(list.images[0].size, 3);
	kp_containers_fini(&list);
}

/* Markers are found wherever a read window ends. */
TEST(markers_at_every_offset)
{
	struct bytes b = {0};
	struct kp_containers list;
	size_t size = 2 * sizeof(((struct kp_window *)0)->buf);

	for (size_t i = 0; i < 120; i++) {
		b.size = 0;
		put(&b, S("a"), strlen(S("a")));
		for (size_t n = 0; n < size / 2 - 140 + i; n++)
			put(&b, "/", 1);
		put(&b, E("a") S("b"), strlen(E("a") S("b")));
		for (size_t n = 0; n < size; n++)
			put(&b, "\n", 1);
		put(&b, E("b"), strlen(E("b")));
		assert_int_equal(read_text("//", b.data, b.size, &list), KPACK_SUCCESS);
		assert_int_equal(list.n_images, 2);
		assert_int_equal(list.images[0].size, size / 2 - 140 + i);
		assert_int_equal(list.images[1].size, size);
		kp_containers_fini(&list);
	}
	bytes_free(&b);
}

/* ---- the format ---- */

static bool known(const char *head)
{
	return kp_format_probe(kp_span_str(head)) == &kp_format_text_bundle;
}

TEST(bundles_are_known_by_their_first_marker)
{
	const char *text = "\n# __CLANG_OFFLOAD_BUNDLE____START__ a\nA"
			   "\n# __CLANG_OFFLOAD_BUNDLE____END__ a\n";
	struct kp_source src = kp_source_memory(text, strlen(text));
	struct kp_containers list = {0};

	assert_true(known(S("a")));
	assert_true(known(text));
	assert_true(known(text + 1));
	assert_true(known("\r\n; __CLANG_OFFLOAD_BUNDLE____START__ a\r\n"));
	assert_false(known("x" S("a")));
	assert_false(known(E("a")));
	assert_false(known("\n//"));
	assert_false(known(""));
	assert_int_equal(kp_containers_add(&src, 0, &kp_format_text_bundle, KP_NOWHERE,
					   &list, &why),
			 KPACK_SUCCESS);
	assert_int_equal(list.items[0].size, strlen(text));
	assert_string_equal(list.images[0].id, "a");
	kp_containers_fini(&list);
}

TEST(types_have_comments)
{
	assert_string_equal(kp_text_bundle_comment("hipi"), "//");
	assert_string_equal(kp_text_bundle_comment("ll"), ";");
	assert_string_equal(kp_text_bundle_comment("d"), "#");
	assert_null(kp_text_bundle_comment("bc"));
	assert_null(kp_text_bundle_comment("o"));
}

/* ---- writing ---- */

static kpack_error_t to_bytes(void *arg, const void *data, size_t size,
			      struct kpackx_error *error)
{
	put(arg, data, size);
	return KPACK_SUCCESS;
}

static kpack_error_t write_one(const char *id, const char *contents, struct bytes *b)
{
	struct kp_sink sink = {.write = to_bytes, .arg = b};
	struct kp_text_entry entry = {kp_span_str(id),
				      kp_source_memory(contents, strlen(contents))};

	return kp_text_bundle_write(&entry, 1, "//", &sink, &why);
}

TEST(entries_are_written)
{
	const char *expected = S(HOST) "AAA\n" E(HOST) S("b") E("b");
	struct kp_text_entry entries[] = {
		{kp_span_str(HOST), kp_source_memory("AAA\n", 4)},
		{kp_span_str("b"), kp_source_memory(NULL, 0)},
	};
	struct bytes b = {0};
	struct kp_sink sink = {.write = to_bytes, .arg = &b};

	assert_int_equal(kp_text_bundle_write(entries, 2, "//", &sink, &why),
			 KPACK_SUCCESS);
	assert_int_equal(sink.size, strlen(expected));
	assert_int_equal(b.size, strlen(expected));
	assert_memory_equal(b.data, expected, b.size);
	bytes_free(&b);
}

/* Reading a written bundle gives the same entries. */
TEST(what_is_written_is_read)
{
	static const char *const contents[] = {
		"",
		"\n",
		"x",
		"x\n",
		"\r\n",
		"\n\n\n",
		"// __CLANG_OFFLOAD_BUNDLE____",
		"// __CLANG_OFFLOAD_BUNDLE____END__ x\n", /* not at a line's start */
		S("other") "x",
		S(HOST),
		"\n// __CLANG_OFFLOAD_BUNDLE____START__ ",
	};

	for (size_t i = 0; i < COUNT(contents); i++) {
		struct bytes b = {0};
		char expected[256];

		assert_int_equal(write_one(HOST, contents[i], &b), KPACK_SUCCESS);
		put(&b, "", 1);
		snprintf(expected, sizeof(expected), HOST "=%s", contents[i]);
		ENTRIES("//", (const char *)b.data, expected);
		bytes_free(&b);
	}
}

TEST(what_could_not_be_read_is_not_written)
{
	char id[KP_ENTRY_ID_MAX + 2] = "";
	struct bytes b = {0};

	memset(id, 'i', sizeof(id) - 1);
	assert_int_equal(write_one("a\nb", "", &b), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(write_one("a\r", "", &b), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(write_one(id, "", &b), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(write_one("a", "x" E("q"), &b), KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, "an end marker is among its contents");
	assert_int_equal(write_one("a", "\n// __CLANG_OFFLOAD_BUNDLE____END__ ", &b),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(b.size, 0);
	bytes_free(&b);
}

/* Contents are also copied from file to file. */
TEST(files_are_bundled)
{
	char dir[] = "/tmp/kpack-unit-XXXXXX", got[512];
	const char *expected = S("a") "from a file" E("a");
	struct kp_outfile in, out;
	struct kp_sink sink = {.out = &out};
	struct kp_text_entry entry = {.id = kp_span_str("a")};

	assert_non_null(mkdtemp(dir));
	assert_int_equal(kp_outfile_open(&in, dir, "in", 0600, &why), KPACK_SUCCESS);
	assert_int_equal(kp_outfile_pwrite(&in, 0, "from a file", 11, &why),
			 KPACK_SUCCESS);
	assert_int_equal(kp_outfile_open(&out, dir, "out", 0600, &why), KPACK_SUCCESS);
	entry.contents = kp_source_fd(in.fd, 0, 11);
	assert_int_equal(kp_text_bundle_write(&entry, 1, "//", &sink, &why),
			 KPACK_SUCCESS);
	assert_int_equal(pread(out.fd, got, sizeof(got), 0), strlen(expected));
	assert_memory_equal(got, expected, strlen(expected));
	kp_outfile_close(&in);
	kp_outfile_close(&out);
	assert_int_equal(rmdir(dir), 0);
}
