/* SPDX-License-Identifier: MIT */
/*
 * Make every public call on one open archive, for the fuzzer.  Checks
 * properties of the archive with EVERY_CALL_CHECK, which must be defined before this
 * header is included.
 */
#ifndef EVERY_CALL_H
#define EVERY_CALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpack_design.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/base/text.h"

#undef kpack_get_kernel
#undef kpack_free_kernel

/* Larger entries are not read whole, because inputs may state gigabytes. */
enum { EVERY_CALL_LARGE = 1 << 20, EVERY_CALL_PART = 4096 };

/* Check the result ERR of a call on A: every failure must leave a printable message. */
static inline bool every_call_failed(kpack_archive_t a, kpack_error_t err)
{
	const char *text = kpack_get_last_error(a);

	EVERY_CALL_CHECK(text && kp_text_ok(kp_span_str(text)));
	EVERY_CALL_CHECK(!err || text[0]);
	return err != KPACK_SUCCESS;
}

static inline void every_call_names(kpack_archive_t a)
{
	const char **arches = NULL, **again = NULL, *name = NULL;
	size_t n = 0, counted = 0;

	EVERY_CALL_CHECK(!kpack_get_architecture_count(a, &n));
	EVERY_CALL_CHECK(!kpack_get_architectures(a, &arches, &counted));
	EVERY_CALL_CHECK(!kpack_get_architectures(a, &again, &counted));
	EVERY_CALL_CHECK(n == counted && arches == again && !arches[n]);
	for (size_t i = 0; i < n; i++)
		EVERY_CALL_CHECK(!kpack_get_architecture(a, i, &name) &&
				 name == arches[i] && kp_text_ok(kp_span_str(name)));
	EVERY_CALL_CHECK(every_call_failed(a, kpack_get_architecture(a, n, &name)));
	EVERY_CALL_CHECK(!kpack_get_binary_count(a, &n));
	EVERY_CALL_CHECK(every_call_failed(a, kpack_get_binary(a, n, &name)));
}

/* Check that the list for NAME has the key MEMBER, and only keys that can be found. */
static inline void every_call_list(kpack_archive_t a, const char *name, const char *arch,
				   const char *member)
{
	const char **names = NULL, **again = NULL;
	size_t n = 0, n_again = 0, found;
	bool listed = false;

	EVERY_CALL_CHECK(!kpack_list_kernels(a, name, arch, &names, &n));
	EVERY_CALL_CHECK(!kpack_list_kernels(a, name, arch, &again, &n_again));
	EVERY_CALL_CHECK(names == again && n == n_again && !names[n]);
	for (size_t i = 0; i < n; i++) {
		EVERY_CALL_CHECK(!kpackx_find_entry(a, names[i], arch, &found));
		listed |= names[i] == member;
	}
	EVERY_CALL_CHECK(listed);
}

static inline void every_call_parts(kpack_archive_t a, size_t index,
				    const struct kpackx_entry *e, const uint8_t *whole)
{
	const uint64_t offsets[] = {0,           1,       e->chunk - 1, e->size / 2,
				    e->size - 1, e->size, UINT64_MAX};
	uint8_t *buf = malloc(EVERY_CALL_PART);

	EVERY_CALL_CHECK(buf);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		uint64_t left = offsets[i] < e->size ? e->size - offsets[i] : 0;
		size_t got = 0;

		if (every_call_failed(a, kpackx_read_range(a, index, offsets[i], buf,
							   EVERY_CALL_PART, &got, NULL)))
			continue;
		EVERY_CALL_CHECK(got ==
				 (left < EVERY_CALL_PART ? left : EVERY_CALL_PART));
		if (whole && got)
			EVERY_CALL_CHECK(memcmp(buf, whole + offsets[i], got) == 0);
	}
	free(buf);
}

/* Read an entry whole in three ways, and in parts. */
static inline void every_call_read(kpack_archive_t a, size_t index,
				   const struct kpackx_entry *e)
{
	uint8_t *whole = e->size < EVERY_CALL_LARGE ? malloc((size_t)e->size + 1) : NULL;
	const void *paper = NULL;
	void *data = NULL;
	size_t n = 0;
	bool read;

	if (!whole) {
		if (e->size < UINT64_C(1) << 32)
			every_call_parts(a, index, e, NULL);
		return;
	}
	EVERY_CALL_CHECK(every_call_failed(
		a, e->size ? kpackx_read_entry(a, index, whole, (size_t)e->size - 1, NULL)
			   : kpackx_read_entry(a, index, NULL, 0, NULL)));
	read = !every_call_failed(
		a, kpackx_read_entry(a, index, whole, (size_t)e->size, NULL));
	if (!every_call_failed(a, kpack_get_kernel(a, e->binary, e->arch, &data, &n)))
		EVERY_CALL_CHECK(read && data && n == e->size &&
				 memcmp(data, whole, n) == 0);
	else
		EVERY_CALL_CHECK(!read);
	kpack_free_kernel(data);
	if (!kpackx_design_get_kernel(a, e->binary, e->arch, &paper, &n))
		EVERY_CALL_CHECK(n == e->size && memcmp(paper, whole, n) == 0);
	kpackx_design_free_kernel(a, paper);
	every_call_parts(a, index, e, read ? whole : NULL);
	free(whole);
}

static inline void every_call_entry(kpack_archive_t a, size_t index)
{
	struct kpackx_entry e;
	char name[EVERY_CALL_PART + 8];
	const char *json = NULL;
	size_t found = SIZE_MAX, n = 0;

	EVERY_CALL_CHECK(!kpackx_get_entry(a, index, &e));
	EVERY_CALL_CHECK(kp_text_ok(kp_span_str(e.binary)) && e.arch[0] && e.type[0] &&
			 kp_text_ok(kp_span_str(e.arch)) &&
			 kp_text_ok(kp_span_str(e.type)));
	EVERY_CALL_CHECK(!kpackx_find_entry(a, e.binary, e.arch, &found) &&
			 found == index);
	if (!every_call_failed(a,
			       kpack_get_kernel_metadata(a, e.binary, e.arch, &json, &n)))
		EVERY_CALL_CHECK(n == strlen(json) && kp_text_ok(kp_span_str(json)));
	every_call_list(a, "", e.arch, e.binary);
	if (e.binary[0])
		every_call_list(a, e.binary, e.arch, e.binary);
	snprintf(name, sizeof(name), "%s", e.binary);
	for (char *slash; (slash = strrchr(name, '/')) != NULL && slash != name;) {
		*slash = '\0';
		every_call_list(a, name, e.arch, e.binary);
	}
	every_call_read(a, index, &e);
}

static inline void every_call(kpack_archive_t a)
{
	struct kpackx_entry e;
	size_t n = 0;

	every_call_names(a);
	EVERY_CALL_CHECK(!kpackx_get_entry_count(a, &n));
	EVERY_CALL_CHECK(every_call_failed(a, kpackx_get_entry(a, n, &e)));
	for (size_t i = 0; i < n; i++)
		every_call_entry(a, i);
}

#endif
