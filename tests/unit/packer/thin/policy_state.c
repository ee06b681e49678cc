/* SPDX-License-Identifier: MIT */
/* States are read as they were written, and what is printed of them is checked. */
#include "packer/thin/policy_state.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "packer/cli/xalloc.h"

/* Write a state with these lists of GPUs, and read it into OUT. */
static kpack_error_t read_back(const char *arch, const char *lost, struct state *out)
{
	static const char *const paths[] = {"lib/a\33 b.so", "lib/d\377\\101", "lib/c"};
	struct state s = {.tree = xstrdup("/usr"),
			  .arch = xstrdup(arch),
			  .action = POLICY_PACK,
			  .packed = true};
	struct kp_hash seen[2] = {kp_hash_of("b", 1), kp_hash_of("a", 1)};
	struct kpackx_error why = {0};
	kpack_error_t err;
	uint8_t *data;
	size_t size;

	s.seen = seen;
	s.n_seen = 2;
	for (int i = 0; i < 3; i++) {
		const struct state_file f = {.kind = i ? STATE_PACKED : STATE_THINNED,
					     .path = xstrdup(paths[i]),
					     .has = i ? NULL : xstrdup("gfx1100"),
					     .lost = xstrdup(lost),
					     .owned = i == 1,
					     .before = 9,
					     .after = 7,
					     .mtime = UINT64_MAX};

		state_put_file(&s, &f);
	}
	state_add_place(&s, "/usr/x\n");
	data = state_format(&s, &size);
	*out = (struct state){0};
	err = state_parse((struct kp_span){data, size}, out, &why);
	/* any other byte is damage */
	for (size_t i = 0; i < size && !err; i += 7) {
		struct state other = {0};

		data[i] ^= 4;
		assert_int_equal(state_parse((struct kp_span){data, size}, &other, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		data[i] ^= 4;
		assert_int_equal(state_parse((struct kp_span){data, i}, &other, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		state_fini(&other);
	}
	free(data);
	s.seen = NULL;
	state_fini(&s);
	return err;
}

TEST(test_same)
{
	struct kp_hash a = kp_hash_of("a", 1), c = kp_hash_of("c", 1);
	struct state s;

	assert_int_equal(read_back("gfx1100,gfx90a:xnack+", "gfx942", &s), KPACK_SUCCESS);
	assert_string_equal(s.tree, "/usr");
	assert_string_equal(s.arch, "gfx1100,gfx90a:xnack+");
	assert_int_equal(s.action, POLICY_PACK);
	assert_true(s.packed);
	assert_int_equal(s.n_files, 3);
	assert_string_equal(s.files[0].path, "lib/a\33 b.so");
	assert_string_equal(s.files[0].has, "gfx1100");
	assert_string_equal(s.files[0].lost, "gfx942");
	assert_int_equal(s.files[0].mtime, UINT64_MAX);
	assert_int_equal(s.files[0].kind, STATE_THINNED);
	assert_string_equal(s.files[2].path, "lib/d\377\\101");
	assert_null(s.files[2].has);
	assert_true(s.files[2].owned && !s.files[1].owned);
	assert_int_equal(s.n_places, 1);
	assert_string_equal(s.places[0], "/usr/x\n");
	assert_int_equal(s.n_seen, 2);
	assert_non_null(state_find_hash(&a, s.seen, s.n_seen, sizeof(a)));
	assert_null(state_find_hash(&c, s.seen, s.n_seen, sizeof(c)));
	state_fini(&s);
}

TEST(test_no_gpus)
{
	static const char *const wrong[] = {"gfx1100\33[31m", "gfx1100;x", "gfx 1100"};
	struct state s;

	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(read_back(wrong[i], "gfx1100", &s),
				 KPACK_ERROR_INVALID_FORMAT);
		state_fini(&s);
		assert_int_equal(read_back("gfx1100", wrong[i], &s),
				 KPACK_ERROR_INVALID_FORMAT);
		state_fini(&s);
	}
}

TEST(test_lists)
{
	char *list = NULL;

	list_add(&list, "gfx90a");
	list_add(&list, "gfx1100");
	list_add(&list, "gfx90a");
	assert_string_equal(list, "gfx90a,gfx1100");
	assert_true(list_has(list, "gfx1100"));
	assert_false(list_has(list, "gfx110"));
	assert_false(list_has(list, "gfx90a:xnack+"));
	assert_false(list_has(NULL, "gfx90a"));
	free(list);
}
