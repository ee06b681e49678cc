/* SPDX-License-Identifier: MIT */
/*
 * Calls that no command makes.  Tables, spellings and what GPUs load are in the golden cases
 * target-* and detect-*.
 */
#include "core/target/target.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/rocm_kpack/kpackx.h"
#include "core/target/choice.h"

/* All nine feature states of one processor against each other: LLVM's rule. */
TEST(code_is_compatible_if_it_states_no_more)
{
	struct kp_target a, b, other;

	assert_int_equal(kp_target_parse(kp_span_str("gfx90a"), &a, NULL), KPACK_SUCCESS);
	assert_int_equal(kp_target_parse(kp_span_str("gfx942"), &other, NULL),
			 KPACK_SUCCESS);
	assert_false(kp_target_compatible(&a, &other) || kp_target_eq(&a, &other));
	b = a;
	for (unsigned i = 0; i < 9; i++) {
		for (unsigned j = 0; j < 9; j++) {
			a.sramecc = (enum kp_feature)(i / 3);
			a.xnack = (enum kp_feature)(i % 3);
			b.sramecc = (enum kp_feature)(j / 3);
			b.xnack = (enum kp_feature)(j % 3);
			assert_int_equal(kp_target_compatible(&a, &b),
					 (i / 3 == 0 || i / 3 == j / 3) &&
						 (i % 3 == 0 || i % 3 == j % 3));
			assert_int_equal(kp_target_eq(&a, &b), i == j);
		}
	}
}

TEST(the_generic_target_of_a_target)
{
	enum { NONE = KPACK_ERROR_ARCH_NOT_FOUND, WRONG = KPACK_ERROR_INVALID_ARGUMENT };
	static const struct {
		const char *target, *generic;
		int err;
	} rows[] = {
		{"gfx1100", "gfx11-generic", 0},
		{"gfx942:xnack-:sramecc+", "gfx9-4-generic:sramecc+:xnack-", 0},
		{"gfx906:sramecc+:xnack-", "gfx9-generic:xnack-", 0},
		{"amdgcn-amd-amdhsa--gfx90c:xnack+", "gfx9-generic:xnack+", 0},
		{"gfx90a:xnack+", "-", NONE},
		{"gfx9999", "-", NONE},
		{"gfx11-generic", "-", NONE},
		{"generic", "-", NONE},
		{"", "-", WRONG},
		{"gfx942:xnack", "-", WRONG},
		{"gfx1100:xnack+", "-", WRONG},
		{"amdgcn-amd-amdhsa--", "-", WRONG},
		{NULL, "-", WRONG},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[64] = "-";

		assert_int_equal(kpackx_generic_target(rows[i].target, out, sizeof(out)),
				 rows[i].err);
		assert_string_equal(out, rows[i].generic);
		for (size_t n = 0; !rows[i].err && n <= strlen(out); n++)
			assert_int_equal(kpackx_generic_target(rows[i].target, out, n),
					 WRONG);
		assert_string_equal(out, rows[i].generic);
	}
	assert_int_equal(kpackx_generic_target("gfx942", NULL, 64), WRONG);
}

/* What is unknown of a list, as GPUs and as the architectures of files. */
TEST(unknown_gpus_are_found)
{
	static const struct {
		const char *list, *found, *gpus, *arches; /* NULL: nothing */
	} rows[] = {
		{"gfx942,gfx90a:xnack+,gfx11-generic,gfx1250-strict,all,fiji", NULL, NULL,
		 NULL},
		{"gfx9999:xnack+,all", NULL, "gfx9999", "gfx9999"},
		{"gfx942,sm_90a", NULL, "sm_90a", NULL},
		{"compute_80,generic,amdgcnspirv", NULL, "compute_80", NULL},
		{"generic,sm_x", NULL, "generic", "sm_x"},
		{"amdgcnspirv,compute_", NULL, "amdgcnspirv", "compute_"},
		{"gfx942,auto", "gfx1100", NULL, NULL},
		{"auto", "gfx9999", "gfx9999", NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *want[] = {rows[i].gpus, rows[i].arches};
		struct kp_gpu gpu = {.node = 1};
		struct kp_gpus gpus = {.list = &gpu, .count = 1};
		struct kp_choice s = {0};

		assert_int_equal(kp_choice_add(&s, rows[i].list, NULL), KPACK_SUCCESS);
		if (rows[i].found) {
			kp_target_parse(kp_span_str(rows[i].found), &gpu.target, NULL);
			assert_int_equal(kp_choice_add_found(&s, &gpus, NULL), 0);
			assert_int_equal(s.count, s.named + 1);
			assert_true(kp_choice_has(&s, kp_span_str(rows[i].found)));
		}
		for (int k = 0; k < 2; k++) {
			struct kpackx_error why = {0};

			assert_int_equal(kp_choice_check(&s, k, &why),
					 want[k] ? KPACK_ERROR_INVALID_ARGUMENT
						 : KPACK_SUCCESS);
			assert_has(why.text, want[k] ? want[k] : "");
		}
		kp_choice_fini(&s);
	}
}

/* A node that this user may not read is no GPU of theirs, and has no number. */
TEST(hidden_nodes_have_no_number)
{
	char root[] = "/tmp/kpack-gpus-XXXXXX", path[64];
	uid_t user = geteuid();
	struct kp_gpus gpus;

	assert_non_null(mkdtemp(root));
	assert_int_equal(chmod(root, 0755), 0);
	for (int i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%d", root, i);
		assert_int_equal(mkdir(path, 0755), 0);
		strcat(path, "/properties");
		f = fopen(path, "we");
		assert_non_null(f);
		fputs("gfx_target_version 90402\n", f);
		fclose(f);
		assert_int_equal(chmod(path, i ? 0644 : 0), 0);
	}
	if (user == 0) /* root can read them */
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(kp_gpus_read(root, &gpus, NULL), KPACK_SUCCESS);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(gpus.count, 1);
	assert_int_equal(gpus.list[0].node, 1);
	assert_int_equal(gpus.list[0].number, 0);
	assert_int_equal(gpus.faults.counted, 0);
	kp_gpus_fini(&gpus);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d/properties", root, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%d", root, i);
		rmdir(path);
	}
	assert_int_equal(rmdir(root), 0);
}
