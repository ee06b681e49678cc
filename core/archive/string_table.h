/* SPDX-License-Identifier: MIT */
/*
 * A table of distinct strings that gives each a small number: a table of contents repeats
 * a few architectures and types a million times.  Texts are borrowed.
 */
#ifndef KP_CORE_TOC_STRING_TABLE_H
#define KP_CORE_TOC_STRING_TABLE_H

#include "core/base/slots.h"
#include "core/base/span.h"

struct kp_string_table {
	struct kp_span *texts;
	size_t n, cap;
	struct kp_string_info {
		uint16_t follows; /* the string that followed it last time */
		bool is_name;     /* valid text, not empty, not too long */
	} * info;
	size_t info_cap;
	struct kp_slots slots; /* of the numbers */
};

/* The position in a sequence of strings, which often repeat in the same order. */
struct kp_string_chain {
	uint16_t last;
	bool begun;
};

enum kp_strings_result {
	KP_STRINGS_OK,
	KP_STRINGS_FULL, /* more than KP_STRINGS_MAX distinct ones */
	KP_STRINGS_NO_MEMORY,
};

/* The part of kp_string_next for a string that did not follow last time. */
enum kp_strings_result kp_string_other(struct kp_string_table *t,
				       struct kp_string_chain *chain, struct kp_span text,
				       uint16_t *number);

/*
 * The number of TEXT, which is the next string of CHAIN; adds a new TEXT.  Tries the
 * string that followed last time first.
 */
static inline enum kp_strings_result kp_string_next(struct kp_string_table *t,
						    struct kp_string_chain *chain,
						    struct kp_span text, uint16_t *number)
{
	if (chain->begun) {
		*number = t->info[chain->last].follows;
		if (kp_span_eq(t->texts[*number], text)) {
			chain->last = *number;
			return KP_STRINGS_OK;
		}
	}
	return kp_string_other(t, chain, text, number);
}

/* Whether TEXT has a number. */
bool kp_string_known(const struct kp_string_table *t, struct kp_span text);

void kp_string_table_fini(struct kp_string_table *t);

#endif
