/* SPDX-License-Identifier: MIT */
#include "core/writer/writer.h"
#include "tests/unit/archive_builder.h"
#include "core/codec/codec.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"
#include "tests/unit/count_names.h"

static char dir[] = "/tmp/kp-writer-XXXXXX";
static struct kpackx_error why;

static int make_dir(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

static struct kp_writer *writer(kpack_compression_t scheme)
{
	struct kp_writer_options options = {
		.scheme = scheme,
		.group = "group",
		.family = "family",
	};
	struct kp_writer *w = NULL;

	if (kp_writer_open(dir, "a.kpack", &options, &w, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	return w;
}

static uint32_t add_stored(struct kp_writer *w, const void *data, size_t size)
{
	uint32_t ordinal = UINT32_MAX;

	if (kp_writer_add_stored(w, (struct kp_span){data, size}, &ordinal, &why))
		fail_msg("%s", why.text);
	return ordinal;
}

static uint32_t add_frame(struct kp_writer *w, const void *data, size_t size)
{
	struct ab frame = {0};
	uint32_t ordinal;

	ab_put_frame(&frame, data, size);
	ordinal = add_stored(w, frame.bytes, frame.size);
	ab_free(&frame);
	return ordinal;
}

static kpack_error_t add(struct kp_writer *w, const char *key, const char *arch,
			 uint32_t ordinal, uint64_t size)
{
	struct kp_writer_entry e = {kp_span_str("hsaco"), ordinal, size, {NULL, 0}, {0}};

	return kp_writer_add_entry(w, kp_span_str(key), kp_span_str(arch), &e, &why);
}

/* Finish and publish; returns the bytes and removes the file. */
static struct ab published(struct kp_writer *w)
{
	struct ab a = {0};
	char path[64];
	struct stat st;
	int fd;

	if (kp_writer_finish(w, &why) || kp_writer_publish(w, &why))
		fail_msg("%s", why.text);
	kp_writer_close(w);
	assert_int_equal(count_names(dir), 1);
	snprintf(path, sizeof(path), "%s/a.kpack", dir);
	assert_int_equal(kp_file_open(path, &fd, &st, &why), KPACK_SUCCESS);
	a.size = (size_t)st.st_size;
	a.bytes = malloc(a.size + 1);
	assert_non_null(a.bytes);
	assert_int_equal(kp_file_pread(fd, 0, a.bytes, a.size, &why), KPACK_SUCCESS);
	close(fd);
	unlink(path);
	return a;
}

static struct kpack_archive *opened(const struct ab *a)
{
	struct kpack_archive *archive = NULL;
	size_t kept, counted;

	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	(void)kp_archive_faults(archive, &kept, &counted);
	assert_int_equal(counted, 0);
	return archive;
}

static void assert_read(const struct kpack_archive *a, size_t entry, const char *key,
			const char *arch, const void *want, size_t size)
{
	struct kp_entry_info info;
	uint8_t *data = malloc(size + 1);

	assert_non_null(data);
	kp_archive_entry(a, entry, &info);
	assert_true(kp_span_is(info.key, key) && kp_span_is(info.arch, arch));
	assert_int_equal(info.size, size);
	assert_int_equal(kp_archive_read(a, entry, data, &why), KPACK_SUCCESS);
	assert_memory_equal(data, want, size);
	free(data);
}

/* --- an archive as the other readers see it ------------------------------------------ */

/* The value of KEY in a msgpack-c map. */
static const msgpack_object *get(const msgpack_object *map, const char *key)
{
	assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *k = &map->via.map.ptr[i].key;

		if (k->via.str.size == strlen(key) &&
		    memcmp(k->via.str.ptr, key, k->via.str.size) == 0)
			return &map->via.map.ptr[i].val;
	}
	return NULL;
}

/* Unpack the TOC, which must end at the end of the file. */
static void unpack(const struct ab *a, msgpack_unpacked *toc)
{
	size_t at = (size_t)kp_le64(a->bytes + 8);

	assert_memory_equal(a->bytes, "KPAK\1\0\0\0", 8);
	for (size_t i = 16; i < 64; i++)
		assert_int_equal(a->bytes[i], 0);
	msgpack_unpacked_init(toc);
	assert_int_equal(msgpack_unpack_next(toc, (char *)a->bytes, a->size, &at),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, a->size);
}

static bool text_is(const msgpack_object *o, const char *text)
{
	return o && o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
	       memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

TEST(other_readers_find_what_they_need)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	const msgpack_object *o;
	msgpack_unpacked toc;
	struct ab a;

	add_frame(w, "first", 5);
	add_frame(w, "second", 6);
	assert_int_equal(add(w, "b#0", "gfx906", 0, 5), KPACK_SUCCESS);
	assert_int_equal(add(w, "b#0", "gfx1100", 1, 6), KPACK_SUCCESS);
	assert_int_equal(add(w, "a#0", "gfx906", 1, 6), KPACK_SUCCESS);
	assert_int_equal(kp_writer_frame_count(w), 2);
	assert_int_equal(kp_writer_entry_count(w), 3);
	a = published(w);
	unpack(&a, &toc);
	assert_int_equal(get(&toc.data, "format_version")->via.u64, 1);
	assert_true(text_is(get(&toc.data, "group_name"), "group"));
	assert_true(text_is(get(&toc.data, "gfx_arch_family"), "family"));
	assert_true(text_is(get(&toc.data, "compression_scheme"), "zstd-per-kernel"));
	assert_int_equal(get(&toc.data, "zstd_offset")->via.u64, 64);
	assert_int_equal(get(&toc.data, "zstd_size")->via.u64, kp_le64(a.bytes + 8) - 64);
	assert_null(get(&toc.data, "blobs"));
	o = get(&toc.data, "gfx_arches");
	assert_int_equal(o->via.array.size, 2);
	assert_true(text_is(&o->via.array.ptr[0], "gfx1100"));
	assert_true(text_is(&o->via.array.ptr[1], "gfx906"));
	o = get(&toc.data, "toc");
	assert_int_equal(o->via.map.size, 2);
	assert_true(text_is(&o->via.map.ptr[0].key, "a#0"));
	assert_true(text_is(&o->via.map.ptr[1].key, "b#0"));
	o = get(get(o, "b#0"), "gfx1100");
	assert_true(text_is(get(o, "type"), "hsaco"));
	assert_int_equal(get(o, "ordinal")->via.u64, 1);
	assert_int_equal(get(o, "original_size")->via.u64, 6);
	assert_null(get(o, "metadata"));
	msgpack_unpacked_destroy(&toc);
	ab_free(&a);
}

/* Walk the length words here, without core's code. */
TEST(the_frame_index_is_right)
{
	static const unsigned counts[] = {0, 1, 2, 255, 256, 257, 3000};

	for (size_t c = 0; c < COUNT(counts); c++) {
		struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
		const msgpack_object *index;
		msgpack_unpacked toc;
		size_t at = 68;
		struct ab a;

		for (unsigned i = 0; i < counts[c]; i++) {
			size_t size = i % 97 == 5   ? 1 << 20
				      : i % 97 == 6 ? (1 << 20) - 4
						    : i % 50;
			uint8_t *data = ab_data(size, i);

			assert_int_equal(add_stored(w, data, size), i);
			assert_int_equal(kp_writer_stored_size(w, i), size);
			free(data);
			if (i == 300)
				break;
		}
		assert_int_equal(add(w, "a", "x", 0, 0),
				 counts[c] ? KPACK_SUCCESS
					   : KPACK_ERROR_INVALID_ARGUMENT);
		a = published(w);
		unpack(&a, &toc);
		index = get(&toc.data, "frame_index");
		assert_int_equal(index->type, MSGPACK_OBJECT_BIN);
		assert_int_equal(index->via.bin.size,
				 8 * ((size_t)kp_le32(a.bytes + 64) + 1));
		for (uint32_t i = 0; i < kp_le32(a.bytes + 64); i++) {
			assert_int_equal(
				kp_le64((const uint8_t *)index->via.bin.ptr + 8 * i),
				at - 64);
			at += 4 + kp_le32(a.bytes + at);
		}
		assert_int_equal(kp_le64((const uint8_t *)index->via.bin.ptr +
					 index->via.bin.size - 8),
				 at - 64);
		assert_int_equal(at, kp_le64(a.bytes + 8));
		msgpack_unpacked_destroy(&toc);
		ab_free(&a);
	}
}

/* --- our own reader ----------------------------------------------------------------- */

TEST(what_is_written_is_read)
{
	uint8_t *large = ab_data(3 << 20, 1);
	msgpack_sbuffer meta;
	msgpack_packer pk;

	msgpack_sbuffer_init(&meta);
	msgpack_packer_init(&pk, &meta, msgpack_sbuffer_write);
	mp_pack_value(&pk, "{'path': 'p/q', 'mode': 420}");
	for (int scheme = 0; scheme < 2; scheme++) {
		struct kp_writer *w = writer(scheme ? KPACK_COMPRESSION_ZSTD_PER_KERNEL
						    : KPACK_COMPRESSION_NOOP);
		struct kp_writer_entry e = {kp_span_str("dat"),
					    1,
					    3 << 20,
					    {(uint8_t *)meta.data, meta.size},
					    {0}};
		struct kpack_archive *archive;
		struct kp_meta got;
		struct ab a;

		if (scheme) {
			add_frame(w, "small", 5);
			add_frame(w, large, 3 << 20);
			add_frame(w, "", 0);
		} else {
			add_stored(w, "small", 5);
			add_stored(w, large, 3 << 20);
			add_stored(w, "", 0);
		}
		assert_int_equal(add(w, "z", "gfx900", 0, 5), KPACK_SUCCESS);
		assert_int_equal(add(w, "z", "gfx1100:xnack+", 2, 0), KPACK_SUCCESS);
		assert_int_equal(kp_writer_add_entry(w, kp_span_str("a"),
						     kp_span_str("generic"), &e, &why),
				 KPACK_SUCCESS);
		a = published(w);
		archive = opened(&a);
		assert_int_equal(kp_archive_entry_count(archive), 3);
		assert_read(archive, 0, "a", "generic", large, 3 << 20);
		assert_read(archive, 1, "z", "gfx1100:xnack+", "", 0);
		assert_read(archive, 2, "z", "gfx900", "small", 5);
		kp_archive_meta(archive, 0, &got);
		assert_true(kp_span_is(got.path, "p/q") && got.mode == 0644);
		assert_int_equal(kp_archive_has_frame_index(archive), scheme);
		assert_int_equal(kp_archive_arch_count(archive), 3);
		kp_archive_close(archive);
		ab_free(&a);
	}
	msgpack_sbuffer_destroy(&meta);
	free(large);
}

TEST(an_empty_archive_is_read)
{
	for (int scheme = 0; scheme < 2; scheme++) {
		struct ab a = published(writer(scheme ? KPACK_COMPRESSION_ZSTD_PER_KERNEL
						      : KPACK_COMPRESSION_NOOP));
		struct kpack_archive *archive = opened(&a);

		assert_int_equal(kp_archive_entry_count(archive), 0);
		assert_int_equal(kp_archive_ordinal_count(archive), 0);
		kp_archive_close(archive);
		ab_free(&a);
	}
}

TEST(stored_bytes_are_read_back)
{
	uint8_t *data = ab_data(3 << 20, 1), *back = malloc(3 << 20);
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	struct ab a;

	assert_non_null(back);
	add_stored(w, "abc", 3);
	assert_int_equal(kp_writer_read_stored(w, 0, back, &why), KPACK_SUCCESS);
	assert_memory_equal(back, "abc", 3);
	add_stored(w, data, 3 << 20);
	add_stored(w, "def", 3);
	assert_int_equal(kp_writer_read_stored(w, 2, back, &why), KPACK_SUCCESS);
	assert_memory_equal(back, "def", 3);
	assert_int_equal(kp_writer_read_stored(w, 1, back, &why), KPACK_SUCCESS);
	assert_memory_equal(back, data, 3 << 20);
	assert_int_equal(add(w, "a", "x", 1, 3 << 20), KPACK_SUCCESS);
	a = published(w);
	assert_memory_equal(a.bytes + 64 + 4 + 4 + 3 + 4, data, 3 << 20);
	ab_free(&a);
	free(data);
	free(back);
}

/* --- copying runs of another archive -------------------------------------------------- */

/* Small and large objects: buffered and unbuffered. */
static struct ab of_three(kpack_compression_t scheme)
{
	uint8_t *data = ab_data(3 << 20, 1);
	struct kp_writer *w = writer(scheme);
	struct ab a;

	if (scheme == KPACK_COMPRESSION_NOOP) {
		add_stored(w, "abc", 3);
		add_stored(w, data, 3 << 20);
		add_stored(w, "defg", 4);
	} else {
		add_frame(w, "abc", 3);
		add_frame(w, data, 3 << 20);
		add_frame(w, "defg", 4);
	}
	assert_int_equal(add(w, "a", "x", 0, 3), KPACK_SUCCESS);
	assert_int_equal(add(w, "b", "x", 1, 3 << 20), KPACK_SUCCESS);
	assert_int_equal(add(w, "c", "x", 2, 4), KPACK_SUCCESS);
	a = published(w);
	free(data);
	return a;
}

static void add_run(struct kp_writer *w, const struct kpack_archive *from, uint32_t first,
		    uint32_t count, uint32_t want)
{
	uint32_t ordinal = UINT32_MAX;

	if (kp_writer_add_run(w, from, first, count, &ordinal, &why))
		fail_msg("%s", why.text);
	assert_int_equal(ordinal, want);
}

static void check_runs(kpack_compression_t scheme)
{
	struct ab a = of_three(scheme), b;
	struct kpack_archive *from = opened(&a), *to;
	struct kp_writer *w = writer(scheme);

	add_run(w, from, 0, 3, 0); /* all objects: gives the same file again */
	assert_int_equal(add(w, "a", "x", 0, 3), KPACK_SUCCESS);
	assert_int_equal(add(w, "b", "x", 1, 3 << 20), KPACK_SUCCESS);
	assert_int_equal(add(w, "c", "x", 2, 4), KPACK_SUCCESS);
	b = published(w);
	assert_int_equal(b.size, a.size);
	assert_memory_equal(b.bytes, a.bytes, a.size);
	ab_free(&b);

	w = writer(scheme);
	add_run(w, from, 2, 1, 0);
	add_run(w, from, 0, 0, 1);
	add_run(w, from, 0, 1, 1);
	assert_int_equal(add(w, "c", "x", 0, 4), KPACK_SUCCESS);
	assert_int_equal(add(w, "a", "x", 1, 3), KPACK_SUCCESS);
	b = published(w);
	to = opened(&b);
	assert_read(to, 0, "a", "x", "abc", 3);
	assert_read(to, 1, "c", "x", "defg", 4);
	kp_archive_close(to);
	kp_archive_close(from);
	ab_free(&b);
	ab_free(&a);
}

TEST(runs_are_copied_as_they_are)
{
	check_runs(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	check_runs(KPACK_COMPRESSION_NOOP);
}

TEST(improper_runs_are_refused)
{
	struct ab a = of_three(KPACK_COMPRESSION_NOOP);
	struct kpack_archive *from = opened(&a);
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	uint32_t ordinal;

	assert_int_equal(kp_writer_add_run(w, from, 0, 1, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kp_writer_close(w);
	w = writer(KPACK_COMPRESSION_NOOP);
	assert_int_equal(kp_writer_add_run(w, from, 1, 3, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_writer_add_run(w, from, 4, 0, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_writer_add_run(w, from, 1, UINT32_MAX, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kp_writer_close(w);
	assert_int_equal(count_names(dir), 0);
	kp_archive_close(from);
	ab_free(&a);
}

/* --- order and equal names ------------------------------------------------------------ */

static struct ab shuffled(unsigned step)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);

	for (unsigned i = 0; i < 10; i++)
		add_frame(w, "0123456789", i);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned k = i * step % 1000;
		char key[32], arch[16];

		snprintf(key, sizeof(key), "lib%u.so#%u", k / 30, k / 3 % 10);
		snprintf(arch, sizeof(arch), "gfx%u", 900 + k % 3);
		assert_int_equal(add(w, key, arch, k % 10, k % 10), KPACK_SUCCESS);
	}
	return published(w);
}

TEST(equal_calls_give_equal_bytes_in_any_order_of_names)
{
	struct ab a = shuffled(1), b = shuffled(1), c = shuffled(7), d = shuffled(999);

	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.bytes, b.bytes, a.size);
	assert_int_equal(a.size, c.size);
	assert_memory_equal(a.bytes, c.bytes, a.size);
	assert_memory_equal(a.bytes, d.bytes, a.size);
	ab_free(&a);
	ab_free(&b);
	ab_free(&c);
	ab_free(&d);
}

/*
 * With equal ordinals the later entry counts; with other ordinals it is refused at once.
 */
TEST(a_name_is_there_once)
{
	static const kpack_error_t want[] = {KPACK_ERROR_INVALID_ARGUMENT, KPACK_SUCCESS,
					     KPACK_ERROR_INVALID_ARGUMENT};
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kp_writer_entry again = {kp_span_str("co"), 1, 1, {NULL, 0}, {0}};
	struct kpack_archive *archive;
	struct kp_entry_info info;
	struct ab a;

	for (int i = 0; i < 3; i++)
		add_stored(w, &"012"[i], 1);
	assert_int_equal(add(w, "z", "gfx900", 0, 1), KPACK_SUCCESS);
	assert_int_equal(add(w, "a", "gfx900", 1, 1), KPACK_SUCCESS);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(add(w, "a", "gfx900", i, 1), want[i]);
	assert_has(why.text, "a gfx900");
	assert_int_equal(kp_writer_add_entry(w, kp_span_str("a"), kp_span_str("gfx900"),
					     &again, &why),
			 KPACK_SUCCESS);
	assert_int_equal(add(w, "a", "gfx90", 0, 1), KPACK_SUCCESS);
	assert_int_equal(add(w, "agfx90", "0", 2, 1), KPACK_SUCCESS);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 4);
	kp_archive_entry(archive, 1, &info);
	assert_true(kp_span_is(info.arch, "gfx900") && kp_span_is(info.type, "co"));
	assert_int_equal(info.ordinal, 1);
	kp_archive_close(archive);
	ab_free(&a);
}

/* So many names that the table of names grows and has long chains. */
TEST(every_name_added_is_known)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kp_writer_entry e = {kp_span_str("hsaco"), 0, 1, {NULL, 0}, {0}};
	char key[32];

	add_stored(w, "0", 1);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "lib%u.so", i);
		assert_int_equal(kp_writer_check_entry(w, kp_span_str(key),
						       kp_span_str("gfx90a"), &e, &why),
				 KPACK_SUCCESS);
		assert_int_equal(add(w, key, "gfx90a", 0, 1), KPACK_SUCCESS);
	}
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "lib%u.so", i);
		assert_int_equal(kp_writer_check_entry(w, kp_span_str(key),
						       kp_span_str("gfx90a"), &e, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	}
	assert_int_equal(kp_writer_entry_count(w), 20000);
	kp_writer_close(w);
}

static void assert_checked(const struct kp_writer *w, const char *key, const char *arch,
			   const char *type, kpack_error_t want)
{
	struct kp_writer_entry e = {kp_span_str(type), 0, 1, {NULL, 0}, {0}};

	assert_int_equal(
		kp_writer_check_entry(w, kp_span_str(key), kp_span_str(arch), &e, &why),
		want);
}

/*
 * As many different names as an archive can have, which then opens; one more is refused.
 */
TEST(architectures_and_types_have_a_limit)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kpack_archive *archive;
	char arch[32];
	struct ab a;

	add_stored(w, "0", 1);
	for (unsigned i = 0; i < KP_STRINGS_MAX; i++) {
		kpack_error_t want = i < KP_STRINGS_MAX - 1
					     ? KPACK_SUCCESS
					     : KPACK_ERROR_INVALID_ARGUMENT;

		snprintf(arch, sizeof(arch), "gfx%u", i);
		assert_checked(w, "a", arch, "hsaco", want);
		if (i == KP_STRINGS_MAX - 2) { /* room for one name, not for two */
			assert_checked(w, "a", arch, arch, KPACK_SUCCESS);
			assert_checked(w, "a", arch, "co", KPACK_ERROR_INVALID_ARGUMENT);
		}
		assert_int_equal(add(w, "a", arch, 0, 1), want);
	}
	/* needs no new name */
	assert_checked(w, "b", "gfx0", "hsaco", KPACK_SUCCESS);
	assert_checked(w, "b", "gfx0", "gfx1", KPACK_SUCCESS);
	assert_checked(w, "b", "gfx0", "co", KPACK_ERROR_INVALID_ARGUMENT);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), KP_STRINGS_MAX - 1);
	kp_archive_close(archive);
	ab_free(&a);
}

static void assert_family(const char *given, const char *const *arches, size_t n,
			  const char *want)
{
	struct kp_writer_options options = {
		.scheme = KPACK_COMPRESSION_NOOP,
		.group = "group",
		.family = given,
	};
	struct kp_writer *w = NULL;
	msgpack_unpacked toc;
	struct ab a;

	assert_int_equal(kp_writer_open(dir, "a.kpack", &options, &w, &why),
			 KPACK_SUCCESS);
	add_stored(w, "0", 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(add(w, i % 2 ? "b" : "a", arches[i], 0, 1),
				 KPACK_SUCCESS);
	a = published(w);
	unpack(&a, &toc);
	assert_true(text_is(get(&toc.data, "gfx_arch_family"), want));
	msgpack_unpacked_destroy(&toc);
	ab_free(&a);
}

TEST(the_family_is_known_at_the_end)
{
	static const char *const arches[] = {"gfx942", "gfx942", "gfx90a"};

	assert_family("given", arches, 3, "given");
	assert_family(NULL, arches, 0, "group");
	assert_family(NULL, arches, 2, "gfx942");
	assert_family(NULL, arches, 3, "group");
}

/* --- refusals ------------------------------------------------------------------------- */

TEST(improper_names_are_refused)
{
	static const struct kp_span names[] = {
		{(const uint8_t *)"", 0},         {(const uint8_t *)"a\0b", 3},
		{(const uint8_t *)"a\n", 2},      {(const uint8_t *)"\x1b[2J", 4},
		{(const uint8_t *)"\x7f", 1},     {(const uint8_t *)"\xff", 1},
		{(const uint8_t *)"\xc2\x80", 2}, {(const uint8_t *)"\xed\xa0\x80", 3},
		{(const uint8_t *)"a\xc3", 2},
	};
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kp_span good = kp_span_str("good");
	char longest[KP_NAME_MAX + 1];

	memset(longest, 'a', sizeof(longest));
	for (size_t i = 0; i <= COUNT(names); i++) {
		struct kp_span bad =
			i < COUNT(names)
				? names[i]
				: (struct kp_span){(uint8_t *)longest, KP_NAME_MAX + 1};
		struct kp_writer_entry e = {good, 0, 0, {NULL, 0}, {0}},
				       bad_type = {bad, 0, 0, {NULL, 0}, {0}};

		assert_int_equal(kp_writer_add_entry(w, bad, good, &e, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kp_writer_add_entry(w, good, bad, &e, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kp_writer_add_entry(w, good, good, &bad_type, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		for (const char *p = why.text; *p; p++)
			assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
	}
	assert_int_equal(kp_writer_entry_count(w), 0);
	kp_writer_close(w);
}

TEST(improper_places_are_refused)
{
	static const char *const names[] = {"", ".", "..", "a/b", "/a"};
	struct kp_writer_options options = {
		.scheme = KPACK_COMPRESSION_NOOP,
		.group = "g",
		.family = "f",
	};
	struct kp_writer *w = NULL;

	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(kp_writer_open(dir, names[i], &options, &w, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_writer_open("/nonexistent", "a", &options, &w, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_null(w);
	kp_writer_close(NULL);
}

TEST(nothing_remains_of_what_was_not_published)
{
	for (int stage = 0; stage < 3; stage++) {
		struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);

		if (stage > 0) {
			add_frame(w, "data", 4);
			assert_int_equal(add(w, "a", "x", 0, 4), KPACK_SUCCESS);
		}
		if (stage > 1)
			assert_int_equal(kp_writer_finish(w, &why), KPACK_SUCCESS);
		assert_true(count_names(dir) <= 1);
		kp_writer_close(w);
		assert_int_equal(count_names(dir), 0);
	}
}

/* --- a full disk ---------------------------------------------------------------------- */

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Add up to LAST objects until one is refused, then finish; returns the first error. */
static kpack_error_t write_some(struct kp_writer *w, const uint8_t *data, size_t size,
				unsigned last)
{
	kpack_error_t err = KPACK_SUCCESS;
	uint32_t ordinal;

	for (unsigned i = 0; i < last && !err; i++) {
		err = kp_writer_add_stored(w, (struct kp_span){data, size}, &ordinal,
					   &why);
		if (!err)
			err = add(w, "a", "x", 0, size);
	}
	return err ? err : kp_writer_finish(w, &why);
}

TEST(a_full_disk_is_an_error_and_leaves_nothing)
{
	static const rlim_t limits[] = {0,      1, 15, 64, 1000, 1 << 20, (1 << 20) + 5,
					3 << 20};
	uint8_t *data = ab_data(2 << 20, 1);

	for (size_t i = 0; i < COUNT(limits); i++) {
		for (size_t size = 100; size <= 2 << 20; size *= 144) {
			struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
			kpack_error_t err;

			limit_files(limits[i]);
			why = (struct kpackx_error){0};
			err = write_some(w, data, size, (4 << 20) / (unsigned)size + 2);
			limit_files(RLIM_INFINITY);
			assert_int_equal(err, KPACK_ERROR_IO_ERROR);
			assert_int_equal(why.sys_errno, EFBIG);
			/* there is room again, but the writer stays failed */
			assert_int_not_equal(kp_writer_finish(w, &why), KPACK_SUCCESS);
			assert_int_not_equal(kp_writer_publish(w, &why), KPACK_SUCCESS);
			kp_writer_close(w);
			assert_int_equal(count_names(dir), 0);
		}
	}
	free(data);
}

TEST(an_unfinished_archive_is_not_published)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);

	add_frame(w, "data", 4);
	assert_int_equal(kp_writer_publish(w, &why), KPACK_ERROR_INVALID_ARGUMENT);
	kp_writer_close(w);
	assert_int_equal(count_names(dir), 0);
}

/* --- limits of the blob --------------------------------------------------------------- */

TEST(a_blob_has_at_most_so_many_frames)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	struct kp_span none = {(const uint8_t *)"", 0};
	struct kpack_archive *archive;
	uint32_t ordinal;
	struct ab a;

	for (uint32_t i = 0; i < KP_FRAMES_MAX; i++)
		assert_int_equal(kp_writer_add_stored(w, none, &ordinal, &why),
				 KPACK_SUCCESS);
	assert_int_equal(kp_writer_add_stored(w, none, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_writer_frame_count(w), KP_FRAMES_MAX);
	assert_int_equal(kp_writer_blob_size(w), 4 + 4 * (uint64_t)KP_FRAMES_MAX);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_ordinal_count(archive), KP_FRAMES_MAX);
	kp_archive_close(archive);
	ab_free(&a);
}

SUITE(make_dir, remove_dir);
