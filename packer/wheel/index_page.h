/* SPDX-License-Identifier: MIT */
/* Write the pages of a simple index: HTML (PEP 503, 658, 714) and JSON (PEP 691, 700). */
#ifndef PACKER_WHEEL_INDEX_PAGE_H
#define PACKER_WHEEL_INDEX_PAGE_H

#include <stdio.h>
#include "index_wheel.h"

/* A file in the project's own directory that is listed in addition to the wheels. */
struct index_extra {
	char *file;
	char *text;
	char sha256[DIGEST_TEXT];
};

/* Wheels of one project, in order of file names. */
struct index_project {
	const struct index_wheel *wheels;
	size_t count;
	struct index_extra *extras;
	size_t n_extras;
};

/*
 * ABOVE is the relative path from a project's directory to that of the wheels: "../..".
 */
void index_page_project(FILE *out, const struct index_project *p, const char *above);
/* WHEELS is sorted by project. */
void index_page_root(FILE *out, const struct index_wheel *wheels, size_t count);

/* The same pages as JSON. */
void index_json_project(FILE *out, const struct index_project *p, const char *above);
void index_json_root(FILE *out, const struct index_wheel *wheels, size_t count);

/* Write TEXT, escaped for a URL except for '/'. */
void index_page_url(FILE *out, const char *text);

#endif
