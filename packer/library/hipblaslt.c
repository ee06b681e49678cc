/* SPDX-License-Identifier: MIT */
#include "tensile.h"

static const struct tensile hipblaslt = {
	.directory = "hipblaslt/library",
	.drawn_in = "TensileLibrary/",
};

const struct library library_hipblaslt = {
	.name = "hipblaslt",
	.probe = tensile_probe,
	.check = tensile_check,
	.data = &hipblaslt,
};
