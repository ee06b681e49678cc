/* SPDX-License-Identifier: MIT */
/* Truncated archives. */
#include "tests/unit/unit.h"
#include "tests/unit/cuda_vectors.h"
#include "core/format/ar_archive.h"

static void add_member(struct bytes *ar, const char *name, const char *content)
{
	char header[80];

	snprintf(header, sizeof(header), "%-16s%-12s%-6s%-6s%-8s%-10zu`\n", name, "0",
		 "0", "0", "644", strlen(content));
	put(ar, header, 60);
	put(ar, content, strlen(content));
}

static struct bytes two_members(void)
{
	struct bytes ar = {0};

	put(&ar, "!<arch>\n", 8);
	add_member(&ar, "good.o/", "1234");
	add_member(&ar, "cut.o/", "567890");
	return ar;
}

static void note_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *fault)
{
	assert_int_equal(image, KP_NOWHERE);
	++*(size_t *)arg;
	why = *fault;
}

/*
 * The number of members found in the first SIZE bytes of AR; *FAULTS gets the number of
 * faults.
 */
static size_t salvaged(const struct bytes *ar, size_t size, size_t *faults)
{
	struct kp_source src = exact_copy(ar->data, size);
	struct kp_containers list;
	size_t n;

	*faults = 0;
	assert_int_equal(kp_nest_salvage(&src, note_fault, faults, &list, &why),
			 KPACK_SUCCESS);
	n = list.n_images;
	assert_int_equal(list.count, *faults && !n ? 0 : 1);
	if (n) {
		assert_string_equal(list.images[0].id, "good.o");
		assert_int_equal(list.images[0].size, 4);
		assert_int_equal(list.items[0].size, size);
	}
	kp_containers_fini(&list);
	free((void *)(uintptr_t)src.mem);
	return n;
}

TEST(members_before_the_cut_are_kept)
{
	struct bytes ar = two_members();
	size_t faults;

	for (size_t size = 9; size < 72; size++) {
		assert_int_equal(salvaged(&ar, size, &faults), 0);
		assert_int_equal(faults, 1);
	}
	assert_int_equal(salvaged(&ar, 72, &faults), 1);
	assert_int_equal(faults, 0);
	for (size_t size = 73; size < ar.size; size++) {
		assert_int_equal(salvaged(&ar, size, &faults), 1);
		assert_int_equal(faults, 1);
		assert_why("archive at offset 0: ");
	}
	assert_int_equal(salvaged(&ar, ar.size, &faults), 2);
	assert_int_equal(faults, 0);
	bytes_free(&ar);
}

/* Callers that must not lose a member get none. */
TEST(others_get_nothing)
{
	struct bytes ar = two_members();
	struct kp_source src = exact_copy(ar.data, ar.size - 1);
	struct kp_containers list;
	struct kp_ar members;
	size_t faults = 0;

	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_nest_scan(&src, note_fault, &faults, &list, &why),
			 KPACK_SUCCESS);
	assert_int_equal(faults, 1);
	assert_int_equal(list.count, 0);
	assert_int_equal(kp_ar_read(&src, &members, &why), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(members.count, 0);
	kp_containers_fini(&list);
	free((void *)(uintptr_t)src.mem);
	bytes_free(&ar);
}
