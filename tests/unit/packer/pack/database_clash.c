/* SPDX-License-Identifier: MIT */
#include "packer/pack/database_clash.h"
#include "tests/unit/unit.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/writer/metadata.h"
#include "core/writer/store.h"
#include "core/writer/writer.h"
#include "packer/files/below.h"

#define LIB "lib/rocblas/library/"
static const char fallback[] = LIB "TensileLibrary_Type_DD_fallback.dat";
static const char parent[] = LIB "TensileLibrary_lazy_gfx1100.dat";

static char dir[] = "/tmp/kp-clash-XXXXXX";

static void put(const char *path, const char *text)
{
	char *copy = strdup(path), *slash = strrchr(copy, '/');
	FILE *f;

	if (slash) {
		*slash = 0;
		assert_int_equal(below_mkdirs(copy, 0755, NULL), 0);
	}
	free(copy);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* A run over a tree with one file for all GPUs and one for gfx1100. */
struct run {
	struct pack_args args;
	struct scan scan;
	struct plan plan;
	struct dispositions dispositions;
	struct clash_run clash;
};

static int begin(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	const struct plan_chunks chunks = {0};

	if (!r || !mkdtemp(dir) || chdir(dir))
		return -1;
	put("in/lib/rocblas/library/TensileLibrary_Type_DD_fallback.dat", "ours");
	put("in/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "parent");
	assert_int_equal(below_mkdirs("a", 0755, NULL), 0);
	r->args = (struct pack_args){.input = "in",
				     .output = "out",
				     .group = strdup("g"),
				     .prefix = strdup(""),
				     .quiet = true};
	assert_int_equal(library_set_open(NULL, NULL, &r->args.libraries, NULL), 0);
	assert_int_equal(scan_open("in", "", SCAN_CONVERTIBLE, &r->args.libraries,
				   SCAN_PACK, &r->scan, NULL),
			 0);
	assert_int_equal(plan_open(&r->scan, &r->args.filter, &chunks, &r->plan, NULL),
			 0);
	assert_int_equal(r->plan.n_objects, 2);
	dispositions_open(&r->scan, false, &r->dispositions);
	r->clash =
		(struct clash_run){&r->args, &r->scan, &r->plan, &r->dispositions, "a"};
	*state = r;
	return 0;
}

static int end(void **state)
{
	struct run *r = *state;

	dispositions_close(&r->dispositions);
	plan_close(&r->plan);
	scan_close(&r->scan);
	pack_args_fini(&r->args);
	free(r);
	assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	return chdir("/");
}

/* Write an archive of GROUP with DATA at PATH for ARCH; HASHED: with the data's hash. */
static void archive(const char *group, const char *path, const char *arch,
		    const char *data, bool hashed)
{
	struct kp_writer_options options = {
		.scheme = KPACK_COMPRESSION_NOOP,
		.group = group,
		.family = arch,
	};
	struct kp_span bytes = kp_span_str(data);
	struct kp_content content = kp_content_of(bytes, 0);
	struct kp_meta meta = {.path = kp_span_str(path), .has_xxh3 = hashed};
	struct kp_writer_entry entry = {.type = kp_span_str("dat"), .size = bytes.size};
	uint8_t *map = NULL;
	struct kp_writer *w;
	char name[64];
	size_t size;

	memcpy(meta.xxh3, content.hash, sizeof(meta.xxh3));
	assert_int_equal(kp_metadata_write(&meta, NULL, &map, &size, NULL), 0);
	entry.metadata = (struct kp_span){map, size};
	snprintf(name, sizeof(name), "%s_%s.kpack", group, arch);
	assert_int_equal(kp_writer_open("a", name, &options, &w, NULL), 0);
	assert_int_equal(kp_writer_add_stored(w, bytes, &entry.ordinal, NULL), 0);
	assert_int_equal(kp_writer_add_entry(w, kp_span_str(path), kp_span_str(arch),
					     &entry, NULL),
			 0);
	assert_int_equal(kp_writer_finish(w, NULL), 0);
	assert_int_equal(kp_writer_publish(w, NULL), 0);
	kp_writer_close(w);
	free(map);
}

static kpack_error_t check(struct run *r, clash_side *side)
{
	struct kpackx_error why = {0};

	return clash_check(&r->clash, side, &why);
}

/* Discards the messages, to keep them out of the test's output. */
static void refused(struct run *r, clash_side *side)
{
	int saved = dup(STDERR_FILENO);

	assert_non_null(freopen("/dev/null", "w", stderr));
	assert_int_equal(check(r, side), KPACK_ERROR_INVALID_ARGUMENT);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(r->plan.n_objects, 2);
}

static bool stores(const struct run *r, const char *key, const char *arch)
{
	const char *place;
	uint32_t binary;

	return plan_stores(&r->plan, kp_span_str(key), kp_span_str(arch), &binary,
			   &place) &&
	       strcmp(r->plan.binaries[binary].input->key, key) == 0;
}

TEST(test_same_bytes, begin, end)
{
	archive("g", fallback, "generic", "ours", true);
	archive("h", fallback, "gfx942", "ours", false);
	archive("i", "something/else", "generic", "theirs", true);
	assert_int_equal(check(*state, clash_archives), 0);
}

TEST(test_other_bytes, begin, end)
{
	archive("g", fallback, "generic", "othr", true);
	refused(*state, clash_archives);
}

TEST(test_other_bytes_without_hash, begin, end)
{
	archive("h", fallback, "generic", "othr", false);
	refused(*state, clash_archives);
}

TEST(test_other_size, begin, end)
{
	archive("h", fallback, "generic", "other", true);
	refused(*state, clash_archives);
}

/* A rebuilt archive replaces the one of its own group, but not of another group. */
TEST(test_one_gpu, begin, end)
{
	archive("g", parent, "gfx1100", "older", true);
	assert_int_equal(check(*state, clash_archives), 0);
	archive("g", parent, "gfx942", "older", true);
	refused(*state, clash_archives);
}

TEST(test_one_gpu_of_another_group, begin, end)
{
	archive("h", parent, "gfx1100", "older", true);
	refused(*state, clash_archives);
}

TEST(test_force, begin, end)
{
	struct run *r = *state;

	r->args.force = true;
	archive("g", fallback, "generic", "other", true);
	assert_int_equal(check(r, clash_archives), 0);
	archive("g", fallback, "gfx942", "other", true); /* this archive stays */
	refused(r, clash_archives);
}

TEST(test_prefer_input, begin, end)
{
	struct run *r = *state;

	r->args.prefer = PREFER_INPUT;
	archive("g", fallback, "generic", "other", true);
	assert_int_equal(check(r, clash_archives), 0);
	assert_int_equal(r->plan.n_objects, 2);
	archive("h", fallback, "generic", "other", true);
	refused(r, clash_archives);
}

TEST(test_prefer_output, begin, end)
{
	struct run *r = *state;

	r->args.prefer = PREFER_OUTPUT;
	archive("h", fallback, "generic", "other", true);
	assert_true(stores(r, fallback, "generic"));
	assert_int_equal(check(r, clash_archives), 0);
	assert_int_equal(r->plan.n_objects, 1);
	assert_int_equal(r->plan.bytes, strlen("parent"));
	assert_false(stores(r, fallback, "generic"));
	assert_true(stores(r, parent, "gfx1100"));
	assert_string_equal(r->plan.keys[r->plan.objects[0].first_key].key, parent);
}

TEST(test_tree, begin, end)
{
	struct run *r = *state;

	assert_int_equal(check(r, clash_tree), 0);
	put("out/lib/rocblas/library/TensileLibrary_Type_DD_fallback.dat", "ours");
	put("out/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "older");
	assert_int_equal(check(r, clash_tree), 0);
	put("out/lib/rocblas/library/TensileLibrary_Type_DD_fallback.dat", "othr");
	refused(r, clash_tree);
	r->args.databases = DATABASES_PLAIN;
	refused(r, clash_tree);
	r->args.prefer = PREFER_INPUT;
	assert_int_equal(check(r, clash_tree), 0);
	assert_int_equal(r->plan.n_objects, 2);
	r->args.databases = DATABASES_PACKED;
	r->args.prefer = PREFER_OUTPUT;
	assert_int_equal(check(r, clash_tree), 0);
	assert_int_equal(r->plan.n_objects, 1);
}
