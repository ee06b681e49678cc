/* SPDX-License-Identifier: MIT */
/* What a policy's file may say, and what the message about a wrong one names. */
#include "packer/policy/policy.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

static kpack_error_t parse(const char *text, struct policy *p, struct kpackx_error *why)
{
	*p = (struct policy){0};
	*why = (struct kpackx_error){0};
	return policy_parse(kp_span_str(text), p, why);
}

TEST(test_good)
{
	struct kpackx_error why;
	struct policy p;

	assert_int_equal(parse("# all\n\n tree = /opt/my rocm// \narch=gfx1100;gfx90a\n"
			       "do=pack\nmount=in-place\nstrip_debug=yes",
			       &p, &why),
			 KPACK_SUCCESS);
	assert_string_equal(p.tree, "/opt/my rocm");
	assert_string_equal(p.arch, "gfx1100;gfx90a");
	assert_int_equal(p.action, POLICY_PACK);
	assert_int_equal(p.mount, POLICY_IN_PLACE);
	assert_true(p.strip_debug);
	policy_fini(&p);
	assert_int_equal(parse("tree=/\narch=auto\ndo=thin\n", &p, &why), KPACK_SUCCESS);
	assert_string_equal(p.tree, "/");
	assert_int_equal(p.mount, POLICY_NO_MOUNT);
	policy_fini(&p);
}

TEST(test_wrong)
{
	static const struct {
		const char *text, *said;
	} wrong[] = {
		{"tree=/usr\narch=gfx1100\ndo=thick\n",
		 "line 3: do=thick: not thin or pack"},
		{"tree=/usr\nstrip=yes\n", "line 2: strip=yes: an unknown key"},
		{"strip_debug=1\n", "line 1: strip_debug=1: not yes or no"},
		{"tree=usr\n", "line 1: tree=usr: not an absolute path"},
		{"tree=/usr/../etc\n", "line 1: tree=/usr/../etc: not an absolute path"},
		{"tree=\n", "line 1: tree=: not an absolute path"},
		{"\n# x\ntree\n", "line 3: tree: not KEY=VALUE"},
		{"tree=/a\ntree=/b\n", "line 2: tree=/b: the key is given twice"},
		{"arch=gfx1100,gfx\n", "line 1: arch=gfx1100,gfx: "},
		{"arch=all\n", "line 1: arch=all: "},
		{"arch=gfx9999\n", "line 1: arch=gfx9999: unknown GPU gfx9999"},
		{"mount=over\n", "line 1: mount=over: not none, in-place or overlay"},
		{"tree=/a\narch=auto\n", "there is no line do="},
		{"tree=/a\ndo=thin\n", "there is no line arch="},
		{"", "there is no line tree="},
		{"tree=/a\narch=auto\ndo=thin\nmount=overlay\n",
		 "mount=overlay: do=thin"},
		{"tree=/a\033[m\n", "line 1: tree=/a\\033[m: not an absolute path"},
	};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct kpackx_error why;
		struct policy p;

		assert_int_equal(parse(wrong[i].text, &p, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		if (strncmp(why.text, wrong[i].said, strlen(wrong[i].said)) != 0)
			fail_msg("'%s', not '%s'", why.text, wrong[i].said);
		policy_fini(&p);
	}
}

TEST(test_nul)
{
	struct kpackx_error why = {0};
	struct policy p = {0};

	assert_int_equal(
		policy_parse((struct kp_span){(const uint8_t *)"tree=/a\0b\n", 10}, &p,
			     &why),
		KPACK_ERROR_INVALID_FORMAT);
	policy_fini(&p);
}
