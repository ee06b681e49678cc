/* SPDX-License-Identifier: MIT */
#include "packer/library/tensile/tensile.h"
#include <inttypes.h>
#include <stdio.h>
#include "tests/unit/unit.h"
#include "tests/unit/bundle_builder.h"
#include "core/base/msgpack_read.h"

#define HH "TensileLibrary_Type_HH_HPA_Contraction_l_Ailk_Bljk_Cijk_Dijk"
#define DD "TensileLibrary_Type_DD_Contraction_l_Ailk_Bjlk_Cijk_Dijk"
#define LT                                                                               \
	"TensileLibrary_BB_BB_HA_Bias_SAV_UA_Type_BB_HPA_Contraction_l_Alik_Bljk_Cijk_"  \
	"Dijk"

/* The expected results for a file. */
struct row {
	const char *path;
	const char *library; /* NULL: no library takes it; the other fields are unused */
	const char *role, *arch;
	const char *facts; /* all facts but stem and container; NULL: not checked */
};

static const struct library *const libraries[] = {
	&library_rocblas,
	&library_hipblaslt,
	&library_hipsparselt,
};

/* --- asking ------------------------------------------------------------------------------- */

struct answer {
	bool mine;
	struct library_object object;
};

static struct answer ask(const struct file_tree *tree, const char *path,
			 struct kp_span bytes)
{
	struct kp_source source = kp_source_memory(bytes.data, bytes.size);
	struct library_question q = {.tree = tree, .path = path};
	struct answer answer = {0};

	q.head_size = bytes.size < sizeof(q.head) ? bytes.size : sizeof(q.head);
	if (q.head_size)
		memcpy(q.head, bytes.data, q.head_size);
	for (size_t i = 0; i < COUNT(libraries) && !answer.mine; i++) {
		const struct library *l = libraries[i];
		struct kpackx_error why;

		if (!l->probe(l, &q))
			continue;
		q.source = &source;
		answer.object.library = l->name;
		assert_int_equal(l->check(l, &q, &answer.mine, &answer.object, &why), 0);
	}
	return answer;
}

static int print_value(struct kp_mp *c, char *out, size_t cap)
{
	struct kp_mp_value v;

	assert_true(kp_mp_next(c, &v));
	if (v.type == KP_MP_STR)
		return snprintf(out, cap, "%.*s", (int)v.span.size,
				(const char *)v.span.data);
	if (v.type == KP_MP_BOOL)
		return snprintf(out, cap, "%s", v.num ? "true" : "false");
	assert_int_equal(v.type, KP_MP_UINT);
	return snprintf(out, cap, "%" PRIu64, v.num);
}

/* Print facts as "M=64 N=32", without stem and container. */
static void print_facts(const struct facts *facts, char *out, size_t cap)
{
	struct kp_mp c = kp_mp_over((struct kp_span){facts->pairs, facts->size});
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < facts->count; i++) {
		char value[512];
		struct kp_span name;

		assert_true(kp_mp_str(&c, &name));
		print_value(&c, value, sizeof(value));
		if (kp_span_is(name, "stem") || kp_span_is(name, "container"))
			continue;
		used += (size_t)snprintf(out + used, cap - used, "%s%.*s=%s",
					 used ? " " : "", (int)name.size,
					 (const char *)name.data, value);
	}
	assert_true(c.pos == c.end);
}

/* The text of the fact WANTED; "" if it is missing. */
static void find_fact(const struct facts *facts, const char *wanted, char *out,
		      size_t cap)
{
	struct kp_mp c = kp_mp_over((struct kp_span){facts->pairs, facts->size});

	*out = '\0';
	for (size_t i = 0; i < facts->count; i++) {
		struct kp_span name;

		assert_true(kp_mp_str(&c, &name));
		if (!kp_span_is(name, wanted)) {
			assert_true(kp_mp_skip(&c));
			continue;
		}
		print_value(&c, out, cap);
		return;
	}
}

static void check_row(const struct row *row, struct kp_span bytes)
{
	struct file_tree none = {0};
	struct answer a = ask(&none, row->path, bytes);
	char facts[2048];

	if (a.mine != !!row->library)
		fail_msg("%s: %s", row->path, a.mine ? "is a library's" : "is nobody's");
	if (!a.mine)
		return;
	print_facts(&a.object.facts, facts, sizeof(facts));
	if (strcmp(a.object.library, row->library) != 0 ||
	    strcmp(a.object.role, row->role) != 0 || a.object.n_arches != 1 ||
	    strcmp(a.object.arches[0], row->arch) != 0 ||
	    (row->facts && strcmp(facts, row->facts) != 0))
		fail_msg("%s: %s %s %s\n%s", row->path, a.object.library, a.object.role,
			 a.object.arches[0], facts);
	assert_null(a.object.warning);
	assert_false(a.object.at_random);
	library_object_fini(&a.object);
}

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_row(&rows[i], (struct kp_span){NULL, 0});
}

/* --- names -------------------------------------------------------------------------------- */

TEST(rocblas_of_each_generation)
{
	static const struct row rows[] = {
		/* merged */
		{"lib/rocblas/library/TensileLibrary.dat", "rocblas", "parent", "generic",
		 ""},
		{"lib/rocblas/library/TensileLibrary.yaml", "rocblas", "parent",
		 "generic", ""},
		{"lib/rocblas/library/TensileLibrary_gfx900.dat", "rocblas", "parent",
		 "gfx900", ""},
		{"lib/rocblas/library/TensileLibrary_gfx900.co", "rocblas", "code",
		 "gfx900", ""},
		{"lib/rocblas/library/Kernels.so-000-gfx900.hsaco", "rocblas", "helper",
		 "gfx900", ""},
		{"lib/rocblas/library/Kernels7.so-000-gfx900.hsaco", "rocblas", "helper",
		 "gfx900", ""},
		{"lib/rocblas/library/"
		 "Cijk_Ailk_Bjlk_DB_MT32x32x8_SE_K1_WG16_16_1_gfx906.co",
		 "rocblas", "code", "gfx906",
		 "datatype=FP64 transpose_a=false transpose_b=true"},
		/* lazy */
		{"lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "rocblas",
		 "parent", "gfx1100", ""},
		{"lib/rocblas/library/" HH "_gfx90a.dat", "rocblas", "child", "gfx90a",
		 "types=HH datatype=FP16 hpa=true "
		 "operation=Contraction_l_Ailk_Bljk_Cijk_Dijk "
		 "transpose_a=false transpose_b=false"},
		{"lib/rocblas/library/" HH "_gfx90a.co", "rocblas", "code", "gfx90a",
		 NULL},
		{"lib/rocblas/library/" DD "_CU104_gfx90a.co", "rocblas", "code",
		 "gfx90a",
		 "types=DD datatype=FP64 hpa=false "
		 "operation=Contraction_l_Ailk_Bjlk_Cijk_Dijk "
		 "transpose_a=false transpose_b=true cu_count=104"},
		{"lib/rocblas/library/" DD "_APU_gfx942.co", "rocblas", "code", "gfx942",
		 "types=DD datatype=FP64 hpa=false "
		 "operation=Contraction_l_Ailk_Bjlk_Cijk_Dijk "
		 "transpose_a=false transpose_b=true apu=true"},
		{"lib/rocblas/library/" DD "_CU228_XPU_gfx942.dat", "rocblas", "child",
		 "gfx942",
		 "types=DD datatype=FP64 hpa=false "
		 "operation=Contraction_l_Ailk_Bjlk_Cijk_Dijk "
		 "transpose_a=false transpose_b=true cu_count=228 apu=false"},
		{"lib/rocblas/library/" DD "_gfx906-xnack-.hsaco", "rocblas", "code",
		 "gfx906:xnack-",
		 "types=DD datatype=FP64 hpa=false "
		 "operation=Contraction_l_Ailk_Bjlk_Cijk_Dijk "
		 "transpose_a=false transpose_b=true xnack=false"},
		{"lib/rocblas/library/" DD "_fallback.dat", "rocblas", "fallback",
		 "generic", NULL},
		{"lib/rocblas/library/" DD "_fallback_gfx1100.hsaco", "rocblas",
		 "fallback", "gfx1100", NULL},
		{"lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "rocblas",
		 "helper", "gfx90a:xnack+", "xnack=true"},
		{"lib/rocblas/library/TensileManifest.txt", "rocblas", "manifest",
		 "generic", ""},
		{"lib/rocblas/library/TensileMasterSolutionIndex.csv", "rocblas", "file",
		 "generic", ""},
		{"lib/rocblas/library/TensileLibrary_Type_CC_Contraction_l_AlikC_BjlkC_"
		 "Cijk_Dijk_gfx908.dat",
		 "rocblas", "child", "gfx908",
		 "types=CC hpa=false operation=Contraction_l_AlikC_BjlkC_Cijk_Dijk "
		 "transpose_a=true transpose_b=true conjugate_a=true conjugate_b=true"},
		{"lib/rocblas/library/TensileLibrary_Type_4xi8I_HPA_DeviceEfficiency_"
		 "Contraction_l_Alik_Bljk_Cijk_Dijk_gfx1030.dat",
		 "rocblas", "child", "gfx1030",
		 "types=4xi8I datatype=INT8 hpa=true options=DeviceEfficiency "
		 "operation=Contraction_l_Alik_Bljk_Cijk_Dijk "
		 "transpose_a=true transpose_b=false"},
		{"lib/rocblas/library/TensileLibrary_Type_HS_HPA_Fp16AltRnz_"
		 "Contraction_l_Alik_Bjlk_Cijk_Dijk_gfx90a.dat",
		 "rocblas", "child", "gfx90a",
		 "types=HS datatype=FP16 hpa=true options=Fp16AltRnz "
		 "operation=Contraction_l_Alik_Bjlk_Cijk_Dijk "
		 "transpose_a=true transpose_b=true"},
		/*
		 * a directory per GPU; files without a GPU in their names are for that
		 * GPU too
		 */
		{"lib/rocblas/library/gfx942/TensileLibrary_lazy_gfx942.dat", "rocblas",
		 "parent", "gfx942", ""},
		{"lib/rocblas/library/gfx942/TensileManifest.txt", "rocblas", "manifest",
		 "gfx942", ""},
		{"lib/rocblas/library/gfx942/" DD "_fallback_gfx942.dat", "rocblas",
		 "fallback", "gfx942", NULL},
		{"lib/rocblas/library/gfx90a/Kernels.so-000-gfx90a-xnack-.hsaco",
		 "rocblas", "helper", "gfx90a:xnack-", "xnack=false"},
		{"lib/rocblas/library/gfx90a-xnack+/TensileLibrary_lazy_gfx90a.dat",
		 "rocblas", "parent", "gfx90a:xnack+", "xnack=true"},
		{"lib/rocblas/library/gfx9-4-generic/TensileManifest.txt", "rocblas",
		 "manifest", "gfx9-4-generic", ""},
		/* other places */
		{"torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "rocblas",
		 "parent", "gfx1100", ""},
		{"bin/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "rocblas",
		 "parent", "gfx1100", ""},
		{"lib/rocblas/TensileLibrary_lazy_gfx1100.dat", NULL, NULL, NULL, NULL},
		{"lib/librocblas/library/TensileLibrary_lazy_gfx1100.dat", NULL, NULL,
		 NULL, NULL},
	};

	check_rows(rows, COUNT(rows));
}

TEST(hipblaslt_and_hipsparselt)
{
	static const struct row rows[] = {
		{"lib/hipblaslt/library/TensileLibrary_lazy_gfx942.dat", "hipblaslt",
		 "parent", "gfx942", ""},
		{"lib/hipblaslt/library/" LT "_CU80_gfx942.dat", "hipblaslt", "child",
		 "gfx942",
		 "problem=BB_BB_HA_Bias_SAV_UA types=BB datatype=BF16 hpa=true "
		 "operation=Contraction_l_Alik_Bljk_Cijk_Dijk "
		 "transpose_a=true transpose_b=false cu_count=80"},
		{"lib/hipblaslt/library/" LT "_RMSE_gfx950.co", "hipblaslt", "code",
		 "gfx950", NULL},
		{"lib/hipblaslt/library/Kernels.so-000-gfx942.hsaco", "hipblaslt",
		 "helper", "gfx942", ""},
		{"lib/hipblaslt/library/extop_gfx942.co", "hipblaslt", "extop", "gfx942",
		 ""},
		{"lib/hipblaslt/library/hipblasltExtOpLibrary.dat", "hipblaslt", "extop",
		 "generic", ""},
		{"lib/hipblaslt/library/hipblasltTransform.hsaco", "hipblaslt",
		 "transform", "generic", ""},
		{"lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat", "hipblaslt",
		 "mapping", "generic", ""},
		{"lib/hipblaslt/library/rr_custom_kernels_gfx950.co", "hipblaslt", "code",
		 "gfx950", ""},
		{"lib/hipblaslt/library/metadata.yaml", "hipblaslt", "file", "generic",
		 ""},
		{"lib/hipblaslt/library/gfx942/hipblasltTransform_gfx942.hsaco",
		 "hipblaslt", "transform", "gfx942", ""},
		{"lib/hipblaslt/library/gfx942/hipblasltExtOpLibrary_gfx942.dat",
		 "hipblaslt", "extop", "gfx942", ""},
		{"lib/hipblaslt/library/gfx942/hipblasltExtOpLibrary.dat", "hipblaslt",
		 "extop", "gfx942", ""},
		{"lib/hipblaslt/library/gfx942/"
		 "TensileLiteLibrary_lazy_gfx942_Mapping.dat.zlib",
		 "hipblaslt", "mapping", "gfx942", ""},
		{"lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat.zlib",
		 "hipblaslt", "parent", "gfx942", ""},
		{"lib/hipblaslt/library/gfx942/hipblaslt-jit-knowledge-gfx942.dat.zlib",
		 "hipblaslt", "file", "gfx942", ""},
		{"lib/hipblaslt/library/gfx1250-strict/TensileLibrary_lazy_gfx1250.dat",
		 "hipblaslt", "parent", "gfx1250", "variant=gfx1250-strict"},
		{"lib/hipblaslt/library/gfx1250v0/Kernels.so-000-gfx1250.hsaco",
		 "hipblaslt", "helper", "gfx1250", "variant=gfx1250v0"},
		{"lib/hipsparselt/library/TensileLibrary_BB_BB_A_gfx942.dat",
		 "hipsparselt", "child", "gfx942", "problem=BB_BB_A"},
		{"lib/hipsparselt/library/TensileLibrary_BB_BB_A_gfx942.co",
		 "hipsparselt", "code", "gfx942", "problem=BB_BB_A"},
		{"lib/hipsparselt/library/gfx950/Kernels.so-000-gfx950.hsaco",
		 "hipsparselt", "helper", "gfx950", ""},
	};

	check_rows(rows, COUNT(rows));
}

#define GEMM "hipblaslt/library/TensileLibrary/gfx1100/"

TEST(kernels_that_describe_themselves)
{
	static const struct row rows[] = {
		{GEMM "gemm_kernel_1.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_4096x4096x512_FP16.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP16 M=4096 N=4096 K=512"},
		{GEMM "gemm_4096X4096X512_bf16_NT.co", "hipblaslt", "code", "gfx1100",
		 "datatype=BF16 transpose_a=false transpose_b=true "
		 "M=4096 N=4096 K=512"},
		{GEMM "gemm_M128_N64_K32_f32_tn.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP32 transpose_a=true transpose_b=false M=128 N=64 K=32"},
		{GEMM "gemm_m128n64k32_i8.co", "hipblaslt", "code", "gfx1100",
		 "datatype=INT8 M=128 N=64 K=32"},
		{GEMM "gemm_M128xN64xK32-fp8.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP8 M=128 N=64 K=32"},
		{GEMM "gemm_128_64_32_FP64.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP64 M=128 N=64 K=32"},
		{GEMM "hgemm_128_64_32.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP16 M=128 N=64 K=32"},
		{GEMM "gemm_M_128_N_64_K_32_FP16.co", "hipblaslt", "code", "gfx1100",
		 "datatype=FP16 M=128 N=64 K=32"},
		{GEMM "gemm_m=128,n=64,k=32_bf16.co", "hipblaslt", "code", "gfx1100",
		 "datatype=BF16 M=128 N=64 K=32"},
		{GEMM "gemm_128x64x32_k_8.co", "hipblaslt", "code", "gfx1100",
		 "M=128 N=64 K=32"},
		{GEMM "gemm_M_N_K_128.co", "hipblaslt", "code", "gfx1100", ""},
		/* names of Tensile's kernels have the types after the matrices */
		{GEMM "Cijk_Ailk_Bjlk_HBH_MT64x32x16_SE.co", "hipblaslt", "code",
		 "gfx1100", "datatype=FP16 transpose_a=false transpose_b=true"},
		{GEMM "Cijk_AlikC_Bljk_4xi8BH_MT64x32x16.co", "hipblaslt", "code",
		 "gfx1100",
		 "datatype=INT8 transpose_a=true transpose_b=false "
		 "conjugate_a=true"},
		{GEMM "Cijk_Ailk_Bljk_ZB_MT64x32x16.co", "hipblaslt", "code", "gfx1100",
		 "transpose_a=false transpose_b=false"},
		/* two numbers, four, zeros, too many digits: not a size */
		{GEMM "gemm_M128_N64.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_1_2_3_4.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_0x0x0.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_1x2x3x4.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_1x2x99999999999.co", "hipblaslt", "code", "gfx1100", ""},
		{GEMM "gemm_4096x.co", "hipblaslt", "code", "gfx1100", ""},
	};

	check_rows(rows, COUNT(rows));
}

/* Facts stay few and small for any name. */
TEST(hostile_names_do_no_harm)
{
	static const char *const patterns[] = {
		"_",      "gfx",     "gfx9_", "TensileLibrary_",
		"_Type_", "M1_",     "1_",    "Contraction_",
		"_CU9",   "-xnack+", ".zlib", "Contraction_l_Ailk_",
	};
	struct file_tree none = {0};

	for (size_t i = 0; i < COUNT(patterns); i++) {
		char path[4096] = "rocblas/library/TensileLibrary_";
		size_t n = strlen(patterns[i]);
		struct answer a;

		for (size_t at = strlen(path); at + n + 4 < sizeof(path); at += n)
			memcpy(path + at, patterns[i], n + 1);
		memcpy(path + strlen(path), ".co", 4);
		a = ask(&none, path, (struct kp_span){NULL, 0});
		assert_true(a.mine);
		assert_true(a.object.facts.size < 1000);
		library_object_fini(&a.object);
	}
}

TEST(stems_are_what_a_library_asks_for)
{
	static const struct {
		const char *path, *stem;
	} rows[] = {
		{"rocblas/library/" DD "_gfx90a.dat", DD "_gfx90a"},
		{"rocblas/library/" DD "_gfx90a.dat.zlib", DD "_gfx90a"},
		{"rocblas/library/" DD "_gfx90a-xnack+.hsaco", DD "_gfx90a"},
		{"rocblas/library/" DD "_fallback_gfx1100.hsaco", DD "_fallback_gfx1100"},
		{"rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco",
		 "Kernels.so-000-gfx90a"},
		{"rocblas/library/TensileManifest.txt", ""},
	};
	struct file_tree none = {0};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer a = ask(&none, rows[i].path, (struct kp_span){NULL, 0});
		char stem[300];

		find_fact(&a.object.facts, "stem", stem, sizeof(stem));
		assert_string_equal(stem, rows[i].stem);
		library_object_fini(&a.object);
	}
}

/* --- content ------------------------------------------------------------------------------ */

TEST(host_libraries_are_nobodys)
{
	static const uint8_t host[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0,
					 0,    0,   0,   0,   0, 0, 3, 0, 62};
	static const struct row row = {"lib/rocblas/library/libhelper.so", NULL, NULL,
				       NULL, NULL};

	check_row(&row, (struct kp_span){host, sizeof(host)});
}

TEST(names_that_contradict_are_warned_of)
{
	static const struct {
		const char *path;
		uint32_t flags; /* flags of its code object; 0: not a code object */
		const char *arch;
		bool warned;
	} rows[] = {
		{"rocblas/library/gfx942/" DD "_gfx950.dat", 0, "gfx942", true},
		{"rocblas/library/gfx942/" DD "_gfx950.co", 0x54f, "gfx950", true},
		{"rocblas/library/" DD "_gfx950.co", 0x54c, "gfx942", true},
		{"rocblas/library/gfx90a/Kernels.so-000-gfx90a-xnack+.hsaco", 0x63f,
		 "gfx90a:xnack-", true},
		{"rocblas/library/gfx90a/Kernels.so-000-gfx90a-xnack+.hsaco", 0x73f,
		 "gfx90a:xnack+", false},
		{"rocblas/library/rr_custom_kernels.co", 0x54f, "gfx950", false},
		{"hipblaslt/library/gfx1250-strict/extop_gfx1250.co", 0x549, "gfx1250",
		 false},
	};
	struct file_tree none = {0};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 4};
		struct kp_span bytes = {elf, rows[i].flags ? sizeof(elf) : 0};
		struct answer a;

		elf[18] = 224;
		kp_put_le32(elf + 48, rows[i].flags);
		a = ask(&none, rows[i].path, bytes);
		if (strcmp(a.object.arches[0], rows[i].arch) != 0 ||
		    !a.object.warning != !rows[i].warned)
			fail_msg("%s: %s (%s)", rows[i].path, a.object.arches[0],
				 a.object.warning ? a.object.warning : "no warning");
		library_object_fini(&a.object);
	}
}

TEST(parents_with_rows_of_others_are_warned_of)
{
#define ROW(gpu)                                                                         \
	"\x82\xa9predicate\x82\xa4type\xa9Processor\xa5value" gpu "\xa7library\xc0"
#define ROWS(n, rows) "\x81\xa7library\x82\xa4type\xa8Hardware\xa4rows" n rows
	static const struct {
		const char *path, *bytes;
		bool warned;
	} files[] = {
		{"rocblas/library/TensileLibrary_lazy_gfx1100.dat",
		 ROWS("\x91", ROW("\xa7gfx1030")), true},
		{"rocblas/library/gfx1100/TensileLibrary.dat",
		 ROWS("\x91", ROW("\xa7gfx1030")), true},
		{"rocblas/library/TensileLibrary_lazy_gfx1030.dat",
		 ROWS("\x91", ROW("\xa7gfx1030")), false},
		{"rocblas/library/gfx90a-xnack+/TensileLibrary_lazy_gfx90a.dat",
		 ROWS("\x92", ROW("\xa6gfx942") ROW("\xa6gfx90a")), false},
		{"hipblaslt/library/gfx1250v0/TensileLibrary_lazy_gfx1250.dat",
		 ROWS("\x91", ROW("\xa7gfx1250")), false},
		/* for all GPUs, for devices without names, for other things, truncated */
		{"rocblas/library/TensileLibrary.dat", ROWS("\x91", ROW("\xa7gfx1030")),
		 false},
		{"rocblas/library/TensileLibrary_lazy_gfx1100.dat",
		 ROWS("\x91", ROW("\xa3"
				  "all")),
		 false},
		{"rocblas/library/" DD "_gfx1100.dat", ROWS("\x91", ROW("\xa7gfx1030")),
		 false},
		{"rocblas/library/TensileLibrary_lazy_gfx1100.dat",
		 ROWS("\x92", ROW("\xa7gfx1030")), false},
	};
	struct file_tree none = {0};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct answer a = ask(&none, files[i].path, kp_span_str(files[i].bytes));

		if (!a.object.warning != !files[i].warned)
			fail_msg("%zu: %s: %s", i, files[i].path,
				 a.object.warning ? a.object.warning : "no warning");
		library_object_fini(&a.object);
	}
}

TEST(kernels_are_counted_where_the_first_bytes_say)
{
	static const struct {
		const char *head;
		size_t size;
		const char *count; /* "": not stated */
	} files[] = {
		{"\x82\xa9solutions\x93\x01\x02\x03", 14, "3"},
		{"\x82\xa9solutions\xdc\x01\x00", 14, "256"},
		{"\x82\xa9solutions\xdd\x00\x01\x00\x00", 16, "65536"},
		{"\x82\xa7version\x01\xa9solutions\x95", 21, "5"},
		{"\x83\xa1z\x81\xa1y\xa1x\xa9solutions\x92"
		 "ab",
		 22, "2"},
		{"\x82\x07\x08\xa9solutions\x91z", 14, "1"},
		{"\x82\xaesolutions_index", 16, ""},
		{"\x82\xafsolutions_index\xdc\x00\x06", 20, "2"},
		{"\x82\xa9solutions\x90zz", 14, ""},
		{"\x82\xa9solutions\xdd\x00\x01", 14, ""},
		{"\x82\xa9solutions\xa1z", 13, ""},
		{"\x81\xa9solution", 10, ""},
		{"\x82\xa7library\xda\xff\xff", 12, ""},
		{"solutions", 9, ""},
	};
	static const char *const paths[] = {"rocblas/library/" DD "_gfx942.dat",
					    "rocblas/library/" DD "_gfx942.dat.zlib"};
	struct file_tree none = {0};
	char count[32];

	for (size_t i = 0; i < COUNT(files); i++) {
		struct kp_span plain = {(const uint8_t *)files[i].head, files[i].size};
		struct bytes packed = deflated(plain);
		struct answer a = ask(&none, paths[0], plain);

		find_fact(&a.object.facts, "kernel_count", count, sizeof(count));
		if (strcmp(count, files[i].count) != 0)
			fail_msg("file %zu: '%s'", i, count);
		library_object_fini(&a.object);

		a = ask(&none, paths[1], bytes_span(&packed));
		find_fact(&a.object.facts, "kernel_count", count, sizeof(count));
		if (strcmp(count, files[i].count) != 0)
			fail_msg("compressed file %zu: '%s'", i, count);
		library_object_fini(&a.object);
		bytes_free(&packed);
	}
}

/* --- the paper's keys ---------------------------------------------------------------------- */

static void add_file(struct file_tree *tree, const char *path)
{
	struct file_tree_item item = {.path = (char *)(uintptr_t)path};

	file_tree_add(tree, &item);
}

TEST(trees_as_the_paper_draws_them_have_its_keys)
{
	static const struct {
		const char *path, *key; /* NULL: none */
	} rows[] = {
		{"a/rocblas/library/TensileLibrary.yaml", NULL},
		{"a/rocblas/library/gfx1100/kernel_1.co", "rocblas/gfx1100/kernel_1"},
		{"a/rocblas/library/gfx90a-xnack+/kernel_1.co",
		 "rocblas/gfx90a:xnack+/kernel_1"},
		{"a/rocblas/library/gfx1100/kernel_1.hsaco", NULL},
		{"a/rocblas/library/gfx1100/kernel_2.hsaco", "rocblas/gfx1100/kernel_2"},
		{"a/rocblas/library/gfx1100/kernel_2.co.zlib", NULL},
		{"a/rocblas/library/gfx1100/deep/kernel_1.co", NULL},
		{"a/rocblas/library/gfx1100/kernel.dat", NULL},
		{"a/rocblas/library/kernel_gfx1100.co", NULL},
		{"b/rocblas/library/gfx1100/kernel_1.co", NULL},
		{"hipblaslt/library/TensileLibrary/gfx90a/gemm_kernel_1.co",
		 "hipblaslt/gfx90a/gemm_kernel_1"},
		{"hipblaslt/library/gfx90a/gemm_kernel_1.co", NULL},
		{"hipblaslt/library/TensileLibrary/gemm_kernel_gfx90a.co", NULL},
		{"hipblaslt/library/TensileLibrary/x/gfx90a/gemm_kernel_1.co", NULL},
		{"hipsparselt/library/TensileLibrary/gfx90a/gemm_kernel_1.co", NULL},
	};
	struct file_tree tree = {0};

	for (size_t i = 0; i < COUNT(rows); i++)
		add_file(&tree, rows[i].path);
	file_tree_sort(&tree);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer a = ask(&tree, rows[i].path, (struct kp_span){NULL, 0});

		if (a.object.n_keys != !!rows[i].key ||
		    (rows[i].key && strcmp(a.object.keys[0], rows[i].key) != 0))
			fail_msg("%s: %s", rows[i].path,
				 a.object.n_keys ? a.object.keys[0] : "no key");
		library_object_fini(&a.object);
	}
	file_tree_fini(&tree);
}
