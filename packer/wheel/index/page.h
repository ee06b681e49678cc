/* SPDX-License-Identifier: MIT */
/* The pages of a simple index: HTML (PEP 503, 658, 714) and JSON (PEP 691, 700). */
#ifndef PACKER_WHEEL_INDEX_PAGE_H
#define PACKER_WHEEL_INDEX_PAGE_H

#include <stdio.h>
#include "wheel.h"

/* A file listed besides the wheels, in the project's own directory. */
struct index_extra {
	char *file;
	char *text;
	char sha256[INDEX_DIGEST_TEXT];
};

/* Wheels of one project, in order of file names. */
struct index_project {
	const struct index_wheel *wheels;
	size_t count;
	struct index_extra *extras;
	size_t n_extras;
};

/* ABOVE is the relative way from a project's directory to the wheels': "../..". */
void index_page_project(FILE *out, const struct index_project *p, const char *above);
/* WHEELS in order of projects. */
void index_page_root(FILE *out, const struct index_wheel *wheels, size_t count);

/* The same as JSON.  NOT_IMPLEMENTED: built without jansson. */
kpack_error_t index_json_project(FILE *out, const struct index_project *p,
				 const char *above, struct kpackx_error *why);
kpack_error_t index_json_root(FILE *out, const struct index_wheel *wheels, size_t count,
			      struct kpackx_error *why);

/* TEXT as a part of a URL; '/' stays. */
void index_page_url(FILE *out, const char *text);

#endif
