/* SPDX-License-Identifier: MIT */
#include "tensile.h"

static const struct tensile hipsparselt = {.directory = "hipsparselt/library"};

const struct library library_hipsparselt = {
	.name = "hipsparselt",
	.probe = tensile_probe,
	.check = tensile_check,
	.data = &hipsparselt,
};
