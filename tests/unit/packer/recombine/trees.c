/* SPDX-License-Identifier: MIT */
/* Parsing the names of trees. */
#include "packer/recombine/trees.h"
#include "packer/split/artifact/tree_name.h"
#include <string.h>

#include "tests/unit/unit.h"

TEST(names)
{
	static const struct {
		const char *name, *component; /* NULL: not a tree's name */
	} rows[] = {
		{"blas_generic", "blas"},
		{"blas_lib_generic", "blas_lib"},
		{"blas_lib_gfx942", "blas_lib"},
		{"aotriton_gfx12_0", "aotriton"},
		{"blas_gfx90a:xnack+", "blas"},
		{"a_gfx9_gfx11-generic", "a_gfx9"},
		{"my_gfx_tools_gfx942", "my_gfx_tools"},
		{"gfx_generic", "gfx"},
		{"blas", NULL},
		{"_generic", NULL},
		{"_gfx942", NULL},
		{"blas_gfx", NULL},
		{"blas_gfxx", NULL},
		{"generic", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(tree_component_size(rows[i].name),
				 rows[i].component ? strlen(rows[i].component) : 0);
}
