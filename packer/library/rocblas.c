/* SPDX-License-Identifier: MIT */
#include "tensile.h"

static const struct tensile rocblas = {
	.directory = "rocblas/library",
	.drawn_in = "",
	.drawn_with = "TensileLibrary.yaml",
};

const struct library library_rocblas = {
	.name = "rocblas",
	.probe = tensile_probe,
	.check = tensile_check,
	.data = &rocblas,
};
