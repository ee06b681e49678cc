/* SPDX-License-Identifier: MIT */
/*
 * Archives that were made so that the hashes of many contents or names are equal: the
 * tables of a view must not be searched from end to end; or so that they have many directories.
 */
#include "tests/unit/counted_slots.h"
#include "core/view/entries.c"
#include "core/view/paths.c"

#include "tests/unit/archive_builder.h"
#include "tests/unit/unit.h"

enum { N = 20000 };

static struct kpackx_error why;

/* Open an archive of N blobs of one byte, whose table has N keys, each packed by PACK. */
static struct kpack_archive *archive_of(void (*pack)(msgpack_packer *pk, unsigned i))
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new(64);
	msgpack_sbuffer out;
	msgpack_packer pk;

	ab_put(&a, "x", 1);
	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 2);
	mp_pack_value(&pk, "'blobs'");
	msgpack_pack_array(&pk, N);
	for (unsigned i = 0; i < N; i++)
		mp_pack_value(&pk, "{'offset': 64, 'size': 1}");
	mp_pack_value(&pk, "'toc'");
	msgpack_pack_map(&pk, N);
	for (unsigned i = 0; i < N; i++)
		pack(&pk, i);
	kp_put_le64(a.bytes + 8, a.size);
	ab_put(&a, out.data, out.size);
	msgpack_sbuffer_destroy(&out);
	if (ab_open(&a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	ab_free(&a);
	return archive;
}

/* A view of A and, unless NULL, B, in which few steps were needed. */
static struct kp_view *quick_view(struct kpack_archive *a, struct kpack_archive *b)
{
	struct kpack_archive *archives[] = {a, b};
	struct kp_view *v = NULL;

	steps = 0;
	assert_int_equal(kp_view_new(archives, b ? 2 : 1, NULL, &v, &why), KPACK_SUCCESS);
	/* tables are at most half full; of equal hashes there would be N * N / 2 */
	assert_true(steps < 8 * N);
	return v;
}

static void pack_hashed(msgpack_packer *pk, unsigned i)
{
	char text[160];

	snprintf(text, sizeof(text), "'k%u'", i);
	mp_pack_value(pk, text);
	snprintf(text, sizeof(text),
		 "{'gfx90a': {'ordinal': %u, 'metadata': {'xxh3': "
		 "x'ded46de9839097db%016x'}}}",
		 i, i);
	mp_pack_value(pk, text);
}

TEST(contents_with_equal_ids_are_found)
{
	struct identity first = {.size = 1, .stored = 1}, other;
	struct kpack_archive *a, *b;
	struct kp_view *v;

	kp_put_le64(first.content, XXH3_WORD_16);
	other = first;
	other.content[15] ^= 1;
	/* or the test tests nothing */
	assert_int_equal(kp_hash64(&first, sizeof(first), 0),
			 kp_hash64(&other, sizeof(other), 0));
	a = archive_of(pack_hashed);
	b = archive_of(pack_hashed);
	v = quick_view(a, b);
	assert_int_equal(kp_view_file_count(v), N);
	kp_view_free(v);
	kp_archive_close(a);
	kp_archive_close(b);
}

/*
 * Find the NAME of a directory in toc whose children's hashes can be made equal, and how
 * their names START.
 */
static void find_parent(char name[16], uint8_t start[8])
{
	uint64_t toc = kp_view_child_id(1, kp_span_str("toc"));

	for (unsigned i = 0;; i++) {
		bool is_text = true;

		snprintf(name, 16, "p%u", i);
		kp_put_le64(start,
			    XXH3_WORD_0 + kp_view_child_id(toc, kp_span_str(name)));
		for (unsigned k = 0; k < 8; k++)
			is_text &= start[k] > ' ' && start[k] <= '~' &&
				   !strchr("#'/\\", start[k]);
		if (is_text)
			return;
	}
}

/* The path below toc of directory I of those with one id. */
static void path_alike(unsigned i, char path[80])
{
	static char parent[16];
	static uint8_t start[8];

	if (!*parent)
		find_parent(parent, start);
	snprintf(path, 80, "%s/%.8s%08u%016u", parent, (const char *)start, i, 0);
}

static void pack_alike(msgpack_packer *pk, unsigned i)
{
	char path[80], text[100];

	path_alike(i * 7919 % N, path);
	snprintf(text, sizeof(text), "'%s'", path);
	mp_pack_value(pk, text);
	snprintf(text, sizeof(text), "{'gfx90a': {'ordinal': %u}}", i);
	mp_pack_value(pk, text);
}

TEST(directories_with_equal_ids_are_found)
{
	struct kpack_archive *a = archive_of(pack_alike), *b = archive_of(pack_alike);
	struct kp_view *v = quick_view(a, b);
	char path[80], full[100];
	uint64_t id = 0;

	for (unsigned i = 0; i < N; i++) {
		uint32_t dir;

		path_alike(i, path);
		snprintf(full, sizeof(full), "toc/%s", path);
		assert_true(kp_view_find_dir(v, kp_span_str(full), &dir));
		if (i) /* or the test tests nothing */
			assert_int_equal(kp_view_dir(v, dir)->id, id);
		id = kp_view_dir(v, dir)->id;
	}
	kp_view_free(v);
	kp_archive_close(a);
	kp_archive_close(b);
}

/* --- directories ------------------------------------------------------------------- */

/* Key and path have as many directories as they may have, of one letter. */
static void pack_deep(msgpack_packer *pk, unsigned i)
{
	char deep[2 * (KP_PATH_DEPTH_MAX - 3) + 1] = "", text[2 * sizeof(deep) + 200];

	for (size_t k = 0; k + 2 < sizeof(deep); k += 2)
		memcpy(deep + k, "/a", 3);
	snprintf(text, sizeof(text), "'%x%s'", i, deep);
	mp_pack_value(pk, text);
	snprintf(text, sizeof(text),
		 "{'gfx90a': {'type': 'hsaco', 'ordinal': %u, 'metadata': {'path': "
		 "'p%x%s/f', 'target': 'hipv4-amdgcn-amd-amdhsa--gfx90a'}}, "
		 "'gfx942': {'type': 'hsaco', 'ordinal': %u, 'metadata': {'target': "
		 "'hipv4-amdgcn-amd-amdhsa--gfx942'}}}",
		 i, i, deep, i);
	mp_pack_value(pk, text);
}

static void pack_flat(msgpack_packer *pk, unsigned i)
{
	char text[100];

	snprintf(text, sizeof(text), "'lib/k%u'", i);
	mp_pack_value(pk, text);
	snprintf(text, sizeof(text),
		 "{'gfx90a': {'ordinal': %u, 'metadata': {'path': 'd%u/f'}}}", i, i);
	mp_pack_value(pk, text);
}

/*
 * A hostile archive has its share of directories, and no path is shown in part; what is
 * refused is listed.  Another archive is shown whole, on either side of it.
 */
TEST(paths_make_few_directories)
{
	struct kpack_archive *deep = archive_of(pack_deep), *flat = archive_of(pack_flat);
	size_t share = KP_DIRS_SPARE + kp_archive_toc(deep)->in_file / KP_DIRS_RATIO;
	const struct kp_view_options options = {.bundles = true};

	for (int i = 0; i < 4; i++) {
		struct kpack_archive *both[] = {i & 1 ? flat : deep, i & 1 ? deep : flat};
		struct kp_view *v;
		size_t kept, counted;
		uint32_t name, dirs, own = 2 + 2 * N + 1; /* roots; those of FLAT */

		assert_int_equal(kp_view_new(both, 2, i & 2 ? &options : NULL, &v, &why),
				 0);
		dirs = kp_view_dir_count(v);
		/* the bundles' directories are those below toc again */
		assert_in_range(dirs - own, share / 2, i & 2 ? 2 * share : share);
		for (uint32_t d = 1; d < dirs; d++)
			assert_true(kp_view_dir(v, d)->count > 0);
		assert_true(kp_view_find_dir(v, kp_span_str("d19999"), &dirs));
		assert_true(kp_view_lookup(v, dirs, kp_span_str("f"), &name));
		assert_true(kp_view_find_dir(v, kp_span_str("toc/lib/k19999"), &dirs));
		assert_non_null(strstr(kp_view_conflicts(v, &kept, &counted)[0],
				       "as many directories"));
		assert_true(counted > 2 * N);
		/* the same whether the table is compacted or not, as a mount does */
		kp_archive_compact(deep);
		kp_view_free(v);
	}
	kp_archive_close(deep);
	kp_archive_close(flat);
}
