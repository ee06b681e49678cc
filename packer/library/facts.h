/* SPDX-License-Identifier: MIT */
/*
 * Facts: the name-value pairs that the TOC holds about an entry besides its location,
 * collected as MessagePack.  They are small and only describe: no loader reads them.
 */
#ifndef PACKER_LIBRARY_FACTS_H
#define PACKER_LIBRARY_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/span.h"

struct facts {
	uint8_t *pairs; /* name, value, name, value ... */
	size_t size, cap;
	size_t count; /* pairs */
};

/* Add a pair.  The caller adds each name once, and adds no pair that has no value. */
void facts_text(struct facts *f, const char *name, struct kp_span text);
void facts_string(struct facts *f, const char *name, const char *text);
/* Add TEXT if it is printable, not empty, and has at most MOST bytes. */
void facts_short(struct facts *f, const char *name, struct kp_span text, size_t most);
void facts_number(struct facts *f, const char *name, uint64_t number);
void facts_signed(struct facts *f, const char *name, int64_t number);
void facts_flag(struct facts *f, const char *name, bool flag);
void facts_bytes(struct facts *f, const char *name, struct kp_span bytes);
void facts_numbers(struct facts *f, const char *name, const uint64_t *numbers, size_t n);
void facts_texts(struct facts *f, const char *name, const struct kp_span *texts,
		 size_t n);
/* Add the pairs of MAP as one value, a map. */
void facts_map(struct facts *f, const char *name, const struct facts *map);
void facts_maps(struct facts *f, const char *name, const struct facts *maps, size_t n);

/* Add all pairs of OTHER. */
void facts_join(struct facts *f, const struct facts *other);

/* Whether a pair NAME already exists. */
bool facts_has(const struct facts *f, const char *name);

void facts_fini(struct facts *f);

#endif
