/* SPDX-License-Identifier: MIT */
/* Internals of the parser of a table of contents, shared by its files. */
#ifndef KP_CORE_TOC_PARSER_H
#define KP_CORE_TOC_PARSER_H

#include "core/base/msgpack_read.h"
#include "string_table.h"
#include "toc.h"

/* The place of an entry of scheme none that has its own "offset" and "size". */
struct kp_own_blob {
	uint32_t entry;
	bool has_ordinal;
	struct kp_toc_blob at;
};

struct kp_toc_parser {
	struct kp_mp c;
	struct kp_toc *toc;
	struct kpackx_error *why;
	bool no_memory;
	size_t entries_cap, binaries_cap;
	struct kp_span key; /* current key; becomes a binary with its first entry */
	bool key_added;
	struct kp_own_blob *own;
	size_t n_own, own_cap;
	struct kp_string_table strings;
	struct kp_string_chain arch_chain, type_chain;
};

/* Parse an integer; a negative one becomes UINT64_MAX, which is out of every range. */
bool kp_toc_integer(struct kp_toc_parser *p, uint64_t *out);

/* Parse one key of the "toc" map with all its entries. */
bool kp_toc_parse_binary(struct kp_toc_parser *p);

#endif
