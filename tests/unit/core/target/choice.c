/* SPDX-License-Identifier: MIT */
#include "core/target/choice.h"
#include "tests/unit/unit.h"
#include <stdio.h>

/* What a library was built for, in the order of what LIST chooses. */
static const char *const built[] = {
	"gfx90a",  "gfx90a:xnack+", "gfx90a:sramecc+:xnack-",
	"gfx1100", "gfx11-generic", "gfx9-generic",
	"gfx906",  "amdgcnspirv",   "generic",
	"sm_90",   "compute_90",    "no target",
};

static const struct {
	const char *list;
	bool exact;
	const char *chosen;
} choices[] = {
	{"gfx1100", false, "gfx1100 gfx11-generic amdgcnspirv generic "},
	{"gfx1100", true, "gfx1100 generic "},
	{"gfx1103", false, "gfx11-generic amdgcnspirv generic "},
	{"gfx1103", true, "generic "},
	{"gfx11-generic", false, "gfx11-generic amdgcnspirv generic "},
	{"gfx906:xnack-", false, "gfx9-generic gfx906 amdgcnspirv generic "},
	{"gfx90a", false,
	 "gfx90a gfx90a:xnack+ gfx90a:sramecc+:xnack- amdgcnspirv generic "},
	{"gfx90a", true, "gfx90a generic "},
	{"gfx90a:xnack+", false, "gfx90a gfx90a:xnack+ amdgcnspirv generic "},
	{"gfx90a-xnack+", true, "gfx90a:xnack+ generic "},
	{"gfx90a:sramecc-:xnack-", false, "gfx90a amdgcnspirv generic "},
	{"amdgcnspirv", false, "amdgcnspirv generic "},
	{"generic", false, "generic "},
	{"sm_90", false, "generic sm_90 "},
	{"compute_90;sm_90", false, "generic sm_90 compute_90 "},
	{"gfx110X", false, "amdgcnspirv generic "},
	{"gfx803,gfx1100", true, "gfx1100 generic "},
	{"auto", false, "generic "},
	{"gfx803,all", true,
	 "gfx90a gfx90a:xnack+ gfx90a:sramecc+:xnack- gfx1100 gfx11-generic "
	 "gfx9-generic gfx906 amdgcnspirv generic sm_90 compute_90 no target "},
};

TEST(a_gpu_chooses_what_it_can_load)
{
	for (size_t i = 0; i < COUNT(choices); i++) {
		struct kp_choice s = {.exact = choices[i].exact};
		char chosen[256] = "";

		assert_int_equal(kp_choice_add(&s, choices[i].list, NULL), KPACK_SUCCESS);
		for (size_t k = 0; k < COUNT(built); k++)
			if (kp_choice_has(&s, kp_span_str(built[k])))
				snprintf(chosen + strlen(chosen),
					 sizeof(chosen) - strlen(chosen), "%s ",
					 built[k]);
		if (strcmp(chosen, choices[i].chosen) != 0)
			fail_msg("%s: %s", choices[i].list, chosen);
		kp_choice_fini(&s);
	}
}

TEST(nothing_added_chooses_everything)
{
	struct kp_choice s = {.exact = true};

	assert_true(kp_choice_is_all(&s));
	assert_true(kp_choice_has(&s, kp_span_str("gfx942")));
	assert_true(kp_choice_has(&s, kp_span_str("no target")));
}

TEST(lists_are_added_to_each_other)
{
	struct kp_choice s = {0};

	assert_int_equal(kp_choice_add(&s, "auto,gfx1100", NULL), KPACK_SUCCESS);
	assert_int_equal(kp_choice_add(&s, "gfx1100;fiji", NULL), KPACK_SUCCESS);
	assert_int_equal(s.count, 2);
	assert_string_equal(s.gpus[1].processor, "gfx803");
	assert_true(s.find && !s.all && !kp_choice_is_all(&s));
	assert_int_equal(kp_choice_add(&s, "all", NULL), KPACK_SUCCESS);
	assert_true(kp_choice_is_all(&s));
	kp_choice_fini(&s);
}

/* GPUs that were found do not count as named. */
TEST(found_gpus_are_added)
{
	struct kp_gpu list[2] = {{.node = 1}, {.node = 2}};
	struct kp_gpus gpus = {.list = list, .count = 2};
	struct kp_choice s = {0};

	kp_target_parse(kp_span_str("gfx1100"), &list[0].target, NULL);
	kp_target_parse(kp_span_str("gfx942"), &list[1].target, NULL);
	assert_int_equal(kp_choice_add(&s, "gfx942,auto", NULL), KPACK_SUCCESS);
	assert_int_equal(kp_choice_add_found(&s, &gpus, NULL), KPACK_SUCCESS);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.named, 1);
	assert_true(kp_choice_has(&s, kp_span_str("gfx11-generic")));
	kp_choice_fini(&s);
}

TEST(wrong_lists_are_refused)
{
	static const char *const wrong[] = {
		"", ",", "gfx942,", "gfx942,,all", "gfx90a:x+", "GFX942", "gfx 942"};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct kp_choice s = {0};
		struct kpackx_error why = {0};

		if (kp_choice_add(&s, wrong[i], &why) != KPACK_ERROR_INVALID_ARGUMENT)
			fail_msg("\"%s\" is accepted", wrong[i]);
		assert_true(why.text[0]);
		kp_choice_fini(&s);
	}
}

TEST(unknown_gpus_are_found)
{
	static const struct {
		const char *list, *gpus, *arches; /* what is unknown; NULL: nothing */
	} cases[] = {
		{"gfx942,gfx90a:xnack+,gfx11-generic,gfx1250-strict,all,fiji", NULL,
		 NULL},
		{"gfx942,gfx9999:xnack+", "gfx9999", "gfx9999"},
		{"gfx9999,all", "gfx9999", "gfx9999"},
		{"sm_90a", "sm_90a", NULL},
		{"compute_80,generic,amdgcnspirv", "compute_80", NULL},
		{"generic,sm_x", "generic", "sm_x"},
		{"compute_", "compute_", "compute_"},
	};
	struct kp_gpu list[1] = {{.node = 1}};
	struct kp_gpus gpus = {.list = list, .count = 1};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *want[] = {cases[i].gpus, cases[i].arches};
		struct kp_choice s = {0};

		kp_choice_add(&s, cases[i].list, NULL);
		for (int k = 0; k < 2; k++) {
			struct kpackx_error why = {0};
			char text[64];

			snprintf(text, sizeof(text), "unknown GPU %s",
				 want[k] ? want[k] : "");
			assert_int_equal(kp_choice_check(&s, k, &why),
					 want[k] ? KPACK_ERROR_INVALID_ARGUMENT
						 : KPACK_SUCCESS);
			assert_string_equal(why.text, want[k] ? text : "");
		}
		kp_choice_fini(&s);
	}
	/* a GPU that was found exists */
	kp_target_parse(kp_span_str("gfx9999"), &list[0].target, NULL);
	for (int k = 0; k < 2; k++) {
		struct kp_choice s = {0};

		kp_choice_add(&s, "auto", NULL);
		kp_choice_add_found(&s, &gpus, NULL);
		assert_int_equal(kp_choice_check(&s, k, NULL) == KPACK_SUCCESS,
				 k == KP_CHOICE_ARCHES);
		kp_choice_fini(&s);
	}
}
