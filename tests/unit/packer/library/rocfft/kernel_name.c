/* SPDX-License-Identifier: MIT */
#include "packer/library/rocfft/kernel_name.h"
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

#define REAL                                                                             \
	"fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_"          \
	"unitstride_sbrr_dirReg_intrinsicReadWrite"

static struct kernel_name parsed(const char *name)
{
	struct kernel_name out;

	kernel_name_parse(kp_span_str(name), &out);
	return out;
}

/* ["length precision direction placement scheme batch factors x factors"] */
static char *described(const char *name, char out[256])
{
	struct kernel_name n = parsed(name);
	int at =
		snprintf(out, 256, "%s %s %s %s %s %llu", n.length, n.precision,
			 n.direction ? n.direction : "-", n.placement ? n.placement : "-",
			 n.scheme ? n.scheme : "-", (unsigned long long)n.batch);

	for (size_t row = 0; row < 2; row++)
		for (size_t i = 0; i < n.n_factors[row]; i++)
			at += snprintf(out + at, 256 - (size_t)at, "%s%llu",
				       row && i == 0 ? " x " : " ",
				       (unsigned long long)n.factors[row][i]);
	return out;
}

static const struct {
	const char *name, *description;
} names[] = {
	{REAL, "100 single fwd ip sbrr 0 10 10"},
	{"fft_rtc_back_len168_dp_op_CI_CI_sbcc_twdbase8_2step_dirReg",
	 "168 double back op sbcc 0"},
	{"fft_rtc_fwd_len_1024_factors_8_8_4_4_wgs_256_tpt_128_halfLds_dim_2_dp_op_CI_CI_"
	 "sbcc_twdbase8_3step_batchcount_dirReg",
	 "1024 double fwd op sbcc 0 8 8 4 4"},
	{"fft_rtc_fwd_len64x128_factors_8_8_x_8_16_wgs_64_tpt_8x16_half_ip_CI",
	 "64x128 half fwd ip - 0 8 8 x 8 16"},
	{"fft_rtc_fwd_partial_pass_parent_len_64_64_64_len_32_factors_4_8_sp_ip_CP_sbrr",
	 "32 single fwd ip sbrr 0 4 8"},
	{"fft_rtc_fwd_len256_sp_ip_CI_sbrc_erc_z_xy", "256 single fwd ip sbrc 0"},
	{"bluestein_single_fwd_len7_dim1_dp_ip_CI_CB_scale", "7 double fwd ip - 0"},
	{"transpose_rtc_tile64x16_dim2_sp_CI_CI_twd3step_back_diag",
	 "any single back - - 0"},
	{"r2c_copy_rtc_dim1_lensz8_half_R_HI", "any half - - - 0"},
	{"len8_batch16_sp", "8 single - - - 16"},
	{"len8_batch_16", "8 any - - - 16"},
	{"length8_lenx_len_len8x_len8", "8 any - - - 0"},
	{"", "any any - - - 0"},
	{"___", "any any - - - 0"},
	{"factors", "any any - - - 0"},
	{"factors_2_x_3_x_4", "any any - - - 0 2 x 3"},
	{"factors_x_4", "any any - - - 0"},
	{"len_", "any any - - - 0"},
	{"len99999999999999999999999999999999999999999999999999999", "any any - - - 0"},
	{"factors_99999999999999999999999_2", "any any - - - 0"},
};

TEST(names_are_taken_apart)
{
	char text[256];

	for (size_t i = 0; i < COUNT(names); i++)
		assert_string_equal(described(names[i].name, text), names[i].description);
}

TEST(more_factors_than_there_can_be_end_the_list)
{
	char name[512] = "factors";

	for (int i = 0; i < 100; i++)
		strcat(name, "_2");
	assert_int_equal(parsed(name).n_factors[0], KERNEL_NAME_FACTORS_MAX);
}

TEST(what_a_name_states_becomes_facts)
{
	static const char *const all[] = {"length", "precision", "factors",   "factors2",
					  "batch",  "placement", "direction", "scheme"};
	struct kernel_name n = parsed("fwd_len8x8_factors_8_x_8_sp_ip_sbrr_batch2");
	struct facts facts = {0};

	kernel_name_facts(&n, &facts);
	assert_int_equal(facts.count, COUNT(all));
	for (size_t i = 0; i < COUNT(all); i++)
		assert_true(facts_has(&facts, all[i]));
	facts_fini(&facts);

	n = parsed("nothing");
	kernel_name_facts(&n, &facts);
	assert_int_equal(facts.count, 0);
	facts_fini(&facts);
}

TEST(lengths_are_numbers_where_they_can_be)
{
	static const struct {
		const char *length;
		uint8_t first; /* byte after the name; a MessagePack head */
	} lengths[] = {
		{"7", 7},      {"1024", 0xcd},
		{"8x8", 0xa3}, {"18446744073709551615000", 0xb7},
		{"", 0xa0},
	};

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct facts facts = {0};

		kernel_name_length_fact(kp_span_str(lengths[i].length), &facts);
		assert_int_equal(facts.pairs[7], lengths[i].first);
		facts_fini(&facts);
	}
}

static const struct {
	const char *name, *component;
} components[] = {
	{REAL, REAL},
	{"a/b", "a%2Fb"},
	{"..", "%2E%2E"},
	{".", "%2E"},
	{"...", "..."},
	{"a@1%", "a%401%25"},
	{"a#0", "a%230"},
	{"\n\x7f\xc2\x85", "%0A%7F%C2%85"},
	{"\xff\xc3\xa4\xc3", "%FF\xc3\xa4%C3"},
	{"", ""},
};

TEST(names_become_parts_of_keys)
{
	for (size_t i = 0; i < COUNT(components); i++) {
		char *got = kernel_name_component(kp_span_str(components[i].name));

		assert_string_equal(got, components[i].component);
		free(got);
	}
}
