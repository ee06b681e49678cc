/* SPDX-License-Identifier: MIT */
#include "packer/library/tensile/directory.h"
#include "tests/unit/unit.h"

#define HH "TensileLibrary_Type_HH_Contraction_l_Ailk_Bljk_Cijk_Dijk"
#define SPARSE "TensileLibrary_BB_BB_A_SPA_Type_BB_Contraction_l_Alik_Bljk_Cijk_Dijk"

static const char *const paths[] = {
	"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/" HH "_gfx1100.co",
	"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/TensileMasterSolutionIndex.csv",
	"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/notes/a.co",
	/* nothing in the path names a library */
	"opt/blas/" HH "_gfx1100.co",
	"opt/blas/README.txt",
	"opt/blas/x.co",
	"opt/lt/library/extop_gfx942.co",
	"opt/lt/library/metadata.yaml",
	"opt/sparse/extop_gfx942.co",
	"opt/sparse/" SPARSE "_gfx942.dat",
	/* directories of GPUs */
	"opt/gpus/gfx90a-xnack+/TensileLibrary_lazy_gfx90a.dat",
	"opt/gpus/gfx942/Kernels.so-000-gfx942.hsaco",
	"opt/gpus/gfx942/rr_custom_kernels.co",
	"opt/gpus/other/rr_custom_kernels.co",
	/* only the last one of such components counts */
	"rocblas/share/hipblaslt/x/TensileLibrary_lazy_gfx942.dat",
	/* names that are like Tensile's */
	"src/TensileCreateLibrary.py",
	"src/TensileLibraryLogic.py",
	"src/x.co",
	"src/Kernels.h",
	"share/library/notes.txt",
	"TensileManifest.txt",
};

static const struct {
	const char *path;
	const char *library; /* NULL: of none */
	const char *rest;
} rows[] = {
	{"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/" HH "_gfx1100.co", "rocblas",
	 HH "_gfx1100.co"},
	{"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/TensileMasterSolutionIndex.csv",
	 "rocblas", "TensileMasterSolutionIndex.csv"},
	{"usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/notes/a.co", NULL, NULL},
	{"opt/blas/" HH "_gfx1100.co", "rocblas", HH "_gfx1100.co"},
	{"opt/blas/README.txt", NULL, NULL},
	{"opt/blas/x.co", "rocblas", "x.co"},
	{"opt/lt/library/extop_gfx942.co", "hipblaslt", "extop_gfx942.co"},
	{"opt/lt/library/metadata.yaml", "hipblaslt", "metadata.yaml"},
	{"opt/sparse/extop_gfx942.co", "hipsparselt", "extop_gfx942.co"},
	{"opt/gpus/gfx90a-xnack+/TensileLibrary_lazy_gfx90a.dat", "rocblas",
	 "gfx90a-xnack+/TensileLibrary_lazy_gfx90a.dat"},
	{"opt/gpus/gfx942/rr_custom_kernels.co", "rocblas",
	 "gfx942/rr_custom_kernels.co"},
	{"opt/gpus/other/rr_custom_kernels.co", NULL, NULL},
	{"rocblas/share/hipblaslt/x/TensileLibrary_lazy_gfx942.dat", "hipblaslt",
	 "TensileLibrary_lazy_gfx942.dat"},
	{"src/TensileLibraryLogic.py", NULL, NULL},
	{"src/x.co", NULL, NULL},
	{"share/library/notes.txt", NULL, NULL},
	{"TensileManifest.txt", "rocblas", "TensileManifest.txt"},
};

TEST(directories_are_known_by_their_files)
{
	static const char *const libraries[] = {"rocblas", "hipblaslt", "hipsparselt"};
	struct file_tree tree = {0};

	for (size_t i = 0; i < COUNT(paths); i++)
		file_tree_add(&tree, &(struct file_tree_item){.path = (char *)paths[i]});
	file_tree_sort(&tree);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *library = NULL;
		struct kp_span rest = {0};

		for (size_t k = 0; k < COUNT(libraries); k++)
			if (tensile_directory_has(&tree, rows[i].path, libraries[k],
						  &rest)) {
				assert_null(library);
				library = libraries[k];
			}
		if (!library != !rows[i].library ||
		    (library && (strcmp(library, rows[i].library) != 0 ||
				 !kp_span_is(rest, rows[i].rest))))
			fail_msg("%s: %s, %.*s", rows[i].path,
				 library ? library : "nobody's", (int)rest.size,
				 rest.size ? (const char *)rest.data : "");
	}
	file_tree_fini(&tree);
}
