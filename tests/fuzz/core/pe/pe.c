/* SPDX-License-Identifier: MIT */
/* Headers, sections and base relocations of PE files; what converting makes of them is in host/convert.c. */
#include "core/pe/edit.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct relocs {
	const struct kp_pe *pe;
	struct kp_source src;
	size_t n;
};

/* What is found must be in the file; each word of 2 bytes is at most one relocation. */
static kpack_error_t take_reloc(void *arg, uint32_t rva, unsigned bytes,
				struct kpackx_error *why)
{
	struct relocs *r = arg;
	uint64_t at;
	uint8_t word[8];

	if (++r->n > r->src.size / 2)
		__builtin_trap();
	if (bytes && kp_pe_find(r->pe, rva, bytes, &at) &&
	    kp_range_ok(r->src.size, at, bytes) &&
	    kp_source_read(&r->src, at, word, bytes, why))
		__builtin_trap();
	return KPACK_SUCCESS;
}

/* Moves ascend, and stay in the input and in the output. */
static void check_moves(struct kp_pe_edit *ed)
{
	KP_AUTO_FREE struct kp_move *moves = NULL;
	struct kpackx_error why;
	uint64_t end = 0;
	size_t n;

	if (kp_pe_edit_moves(ed, &moves, &n, &why))
		__builtin_trap();
	for (size_t i = 0; i < n; i++) {
		if (moves[i].from < end || !moves[i].size ||
		    !kp_range_ok(ed->file.size, moves[i].from, moves[i].size) ||
		    !kp_range_ok(ed->size, moves[i].to, moves[i].size))
			__builtin_trap();
		end = moves[i].from + moves[i].size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t bytes[3000] = {1};
	int fd = memfd_create("pe", MFD_CLOEXEC);
	KP_AUTO(kp_pe_edit) ed = {0};
	struct relocs r = {.src = kp_source_memory(data, size)};
	struct kpackx_error why;
	struct kp_pe pe;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!kp_pe_open(&r.src, &pe, &why)) {
		r.pe = &pe;
		(void)kp_pe_each_reloc(&r.src, &pe, take_reloc, &r, &why);
		kp_pe_fini(&pe);
	}
	if (!kp_pe_edit_open(fd, size, true, &ed, &why)) {
		struct kp_pe_part *code = kp_pe_edit_find(&ed, KP_PE_FATBIN);

		if (code)
			kp_pe_edit_fill(&ed, code, 0, NULL, NULL);
		if (!kp_pe_edit_add(&ed, KP_PE_MARKER, KP_PE_DATA,
				    (struct kp_span){bytes, sizeof(bytes)}, &why) &&
		    !kp_pe_edit_place(&ed, &why))
			check_moves(&ed);
	}
	close(fd);
	return 0;
}
