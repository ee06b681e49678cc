/* SPDX-License-Identifier: MIT */
/* Bundle entry IDs: all spellings, the normal form, and the compatibility rules. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/offload/bundler/entry_id.h"

static struct entry_id id_of(const char *text)
{
	struct entry_id id;

	assert_true(entry_id_parse(kp_span_str(text), &id));
	return id;
}

static void check_normal(const char *text, const char *want)
{
	struct entry_id id = id_of(text);
	char *got = entry_id_normal(&id);

	assert_string_equal(got, want);
	free(got);
}

TEST(test_spellings)
{
	static const char *const same[] = {
		"hip-amdgcn-amd-amdhsa--gfx900:xnack+",
		"hip-amdgcn-amd-amdhsa-gfx900:xnack+",
		"hip-amdgcn-amd-amdhsa-unknown-gfx900:xnack+",
		"hip-amdgcn-amdhsa-gfx900:xnack+",
	};

	for (size_t i = 0; i < COUNT(same); i++)
		check_normal(same[i], same[0]);
	check_normal("host-x86_64-unknown-linux-gnu", "host-x86_64-unknown-linux-gnu-");
	check_normal("host-x86_64-unknown-linux-gnu-", "host-x86_64-unknown-linux-gnu-");
	check_normal("host-x86_64-unknown-linux", "host-x86_64-unknown-linux-unknown-");
	check_normal("host-x86_64-linux-gnu-", "host-x86_64-unknown-linux-gnu-");
	check_normal("openmp-nvptx64-nvidia-cuda--sm_80",
		     "openmp-nvptx64-nvidia-cuda-unknown-sm_80");
	check_normal("hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+:sramecc-",
		     "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+:sramecc-");
	check_normal("hip-amdgcn-amd-amdhsa--gfx1310", "hip-amdgcn-amd-amdhsa--gfx1310");
	check_normal("host-x86_64-pc-win32-coff", "host-x86_64-pc-windows-msvc-");
	check_normal("host-arm-none-eabi-", "host-arm-unknown-none-eabi-");
}

TEST(test_no_ids)
{
	static const char *const bad[] = {
		"",         "-",   "hip",  "hip-", "-amdgcn-amd-amdhsa-",
		"nonsense", "x-y", "x-y-z"};
	struct entry_id id;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(entry_id_parse(kp_span_str(bad[i]), &id));
}

TEST(test_kinds)
{
	struct entry_id id = id_of("hcc-amdgcn-amd-amdhsa--gfx803");

	assert_false(entry_id_kind_known(&id));
	id = id_of("hipv4-amdgcn-amd-amdhsa--gfx906");
	assert_true(entry_id_kind_known(&id) && entry_id_is_hip(&id));
	id = id_of("host-x86_64-unknown-linux-gnu-");
	assert_true(entry_id_is_host(&id) && !entry_id_is_hip(&id));
}

/* Feature states of a target ID, for the property test below. */
enum { ANY, OFF, ON };

struct sample {
	const char *kind, *environment, *processor;
	int sramecc, xnack;
	char text[128];
};

static void spell(struct sample *s)
{
	static const char *const sramecc[] = {"", ":sramecc-", ":sramecc+"};
	static const char *const xnack[] = {"", ":xnack-", ":xnack+"};

	/* features may come in either order */
	snprintf(s->text, sizeof(s->text), "%s-amdgcn-amd-amdhsa-%s-%s%s%s", s->kind,
		 s->environment, s->processor,
		 s->xnack == ON ? xnack[ON] : sramecc[s->sramecc],
		 s->xnack == ON ? sramecc[s->sramecc] : xnack[s->xnack]);
}

/* The compatibility rules of LLVM's documentation. */
static bool rule(const struct sample *c, const struct sample *w, bool hip_openmp)
{
	bool hip_c = strncmp(c->kind, "hip", 3) == 0,
	     hip_w = strncmp(w->kind, "hip", 3) == 0;

	return (hip_c == hip_w || hip_openmp) &&
	       strcmp(c->processor, w->processor) == 0 &&
	       (c->sramecc == ANY || c->sramecc == w->sramecc) &&
	       (c->xnack == ANY || c->xnack == w->xnack);
}

static struct sample sample(unsigned n)
{
	static const char *const kinds[] = {"hip", "hipv4", "openmp"};
	static const char *const processors[] = {"gfx906", "gfx90a", "gfx1999"};
	struct sample s = {.kind = kinds[n % 3],
			   .environment = n / 3 % 2 ? "unknown" : "",
			   .processor = processors[n / 6 % 3],
			   .sramecc = (int)(n / 18 % 3),
			   .xnack = (int)(n / 54 % 3)};

	spell(&s);
	return s;
}

TEST(test_rules)
{
	const unsigned n = 162;

	for (unsigned i = 0; i < n * n * 2; i++) {
		struct sample c = sample(i % n), w = sample(i / n % n);
		struct entry_id code = id_of(c.text), want = id_of(w.text);
		bool hip_openmp = i / n / n;

		if (entry_serves(entry_id_compare(&code, &want, hip_openmp)) !=
		    rule(&c, &w, hip_openmp))
			fail_msg("%s for %s", c.text, w.text);
	}
}

static enum entry_verdict compare(const char *code, const char *want)
{
	struct entry_id c = id_of(code), w = id_of(want);

	return entry_id_compare(&c, &w, false);
}

TEST(test_verdicts)
{
	const char *x = "hip-amdgcn-amd-amdhsa--gfx906:xnack+";

	assert_int_equal(compare(x, x), ENTRY_SAME);
	assert_int_equal(compare("hip-amdgcn-amd-amdhsa--gfx906", x), ENTRY_SERVES);
	assert_int_equal(compare(x, "openmp-amdgcn-amd-amdhsa--gfx906"),
			 ENTRY_OTHER_KIND);
	assert_int_equal(compare(x, "hip-amdgcn-amd-amdpal--gfx906"), ENTRY_OTHER_KIND);
	assert_int_equal(compare(x, "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"),
			 ENTRY_OTHER_PROCESSOR);
	assert_int_equal(compare(x, "hip-amdgcn-amd-amdhsa--gfx906"),
			 ENTRY_MORE_FEATURES);
	assert_int_equal(compare(x, "hip-amdgcn-amd-amdhsa--gfx906:sramecc+"),
			 ENTRY_FEATURE_ANY);
	assert_int_equal(compare(x, "hip-amdgcn-amd-amdhsa--gfx906:xnack-"),
			 ENTRY_FEATURE_VALUE);
	/* a generic target is another processor */
	assert_int_equal(compare("hip-amdgcn-amd-amdhsa--gfx11-generic",
				 "hip-amdgcn-amd-amdhsa--gfx1100"),
			 ENTRY_OTHER_PROCESSOR);
}

TEST(test_hosts)
{
	const char *gnu = "host-x86_64-unknown-linux-gnu-";

	assert_true(entry_serves(compare(gnu, "host-amd64-unknown-linux-gnu")));
	assert_true(entry_serves(compare(gnu, "host-x86_64-unknown-linux5-gnu4")));
	assert_false(entry_serves(compare(gnu, "host-x86_64-pc-linux-gnu")));
	assert_false(entry_serves(compare(gnu, "host-x86_64-unknown-linux-musl")));
	assert_false(entry_serves(compare(gnu, "host-i686-unknown-linux-gnu")));
	assert_false(entry_serves(compare(gnu, "host-x86_64-unknown-linux-")));
	/* clang 14 wrote no environment */
	assert_true(entry_serves(compare("host-x86_64-unknown-linux", gnu)));
	assert_true(entry_serves(
		compare("host-x86_64-w64-windows-gnu-", "host-x86_64-pc-windows-gnu-")));
}

static bool states_more(const char *a, const char *b)
{
	struct entry_id x = id_of(a), y = id_of(b);

	return entry_ids_akin(&x, &y) && entry_id_states_more(&x, &y);
}

TEST(test_conflicts)
{
	const char *x = "hip-amdgcn-amd-amdhsa--gfx906",
		   *xnack = "hip-amdgcn-amd-amdhsa--gfx906:xnack+",
		   *off = "hip-amdgcn-amd-amdhsa--gfx906:xnack-",
		   *both = "hip-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack-";

	assert_true(states_more(xnack, x));
	assert_false(states_more(x, xnack));
	assert_false(states_more(xnack, off));
	assert_true(states_more(both, xnack));
	assert_false(states_more(xnack, both));
	/* other kinds and processors are not affected */
	assert_false(states_more(xnack, "hipv4-amdgcn-amd-amdhsa--gfx906"));
	assert_false(states_more(xnack, "hip-amdgcn-amd-amdhsa--gfx90a"));
}
