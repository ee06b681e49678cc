/* SPDX-License-Identifier: MIT */
/*
 * Bytes of the input that neither a section nor a program header names: a program may
 * find what was appended to it by an offset from the beginning or the end of its file, or
 * behind its section headers.  They are kept where they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "edit_added.h"
#include "edit.h"
#include "core/base/bounds.h"

uint64_t kp_edit_kept_end(const struct kp_edit *ed, uint64_t at, uint64_t size)
{
	size_t low = 0, high = ed->n_kept;

	while (low < high) { /* the first that ends behind AT */
		size_t middle = low + (high - low) / 2;

		if (ed->kept[middle].from + ed->kept[middle].size <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ed->n_kept ||
	    (ed->kept[low].from > at && ed->kept[low].from - at >= size))
		return 0;
	return ed->kept[low].from + ed->kept[low].size;
}

static int by_start(const void *a, const void *b)
{
	const struct kp_edit_range *x = a, *y = b;

	return KP_ORDER(x->from, y->from);
}

/* Fill LIST, which has room for all tables, with the ranges that they name. */
static size_t named_ranges(const struct kp_edit *ed, uint64_t headers,
			   struct kp_edit_range *list)
{
	size_t n = 0;

	list[n++] = (struct kp_edit_range){0, sizeof(Elf64_Ehdr)};
	list[n++] = (struct kp_edit_range){ed->h.e_phoff,
					   ed->n_segments * sizeof(Elf64_Phdr)};
	if (kp_range_ok(ed->size, ed->h.e_shoff, headers))
		list[n++] = (struct kp_edit_range){ed->h.e_shoff, headers};
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].h.sh_type != SHT_NOBITS)
			list[n++] = (struct kp_edit_range){ed->sections[i].from,
							   ed->sections[i].h.sh_size};
	for (size_t i = 0; i < ed->n_segments; i++)
		if (kp_range_ok(ed->size, ed->segments[i].from,
				ed->segments[i].h.p_filesz))
			list[n++] = (struct kp_edit_range){ed->segments[i].from,
							   ed->segments[i].h.p_filesz};
	qsort(list, n, sizeof(*list), by_start);
	return n;
}

/* Set *SAME if [FROM, END) has only WORD, which begins at a multiple of its size. */
static kpack_error_t repeats(const struct kp_edit *ed, uint64_t from, uint64_t end,
			     const uint8_t word[4], bool *same, struct kpackx_error *why)
{
	uint8_t bytes[4096];

	*same = false;
	for (size_t n; from < end; from += n) {
		if (memcmp(word, "\0\0\0", 4) == 0) {
			/* a hole can be longer than anything that can be read */
			off_t data = lseek(ed->fd, (off_t)from, SEEK_DATA);

			if ((data < 0 && errno == ENXIO) || data >= (off_t)end)
				break;
			from = data > (off_t)from ? (uint64_t)data : from;
		}
		n = end - from < sizeof(bytes) ? (size_t)(end - from) : sizeof(bytes);
		KP_TRY(kp_file_pread(ed->fd, from, bytes, n, why));
		for (size_t i = 0; i < n; i++)
			if (bytes[i] != word[(from + i) % 4])
				return KPACK_SUCCESS;
	}
	*same = true;
	return KPACK_SUCCESS;
}

/*
 * Linkers fill the last page of code with an instruction: let *FROM be the end of such
 * filling, which is not kept.
 */
static kpack_error_t skip_filling(const struct kp_edit *ed, uint64_t *from, uint64_t end,
				  struct kpackx_error *why)
{
	uint8_t word[4], bytes[4];
	bool same = false;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];
		const Elf64_Phdr *h = &ed->segments[c->segment].h;
		uint64_t page = *from - *from % h->p_align;

		if (c->from + c->size != *from || !(h->p_flags & PF_X))
			continue;
		if (*from % h->p_align && end - page > h->p_align)
			end = page + h->p_align;
		if (*from % h->p_align == 0 || end - *from < sizeof(bytes))
			return KPACK_SUCCESS;
		KP_TRY(kp_file_pread(ed->fd, *from, bytes, sizeof(bytes), why));
		for (size_t k = 0; k < sizeof(bytes); k++)
			word[(*from + k) % 4] = bytes[k];
		KP_TRY(repeats(ed, *from, end, word, &same, why));
		if (same)
			*from = end;
		return KPACK_SUCCESS;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_gap(struct kp_edit *ed, uint64_t from, uint64_t end,
				 struct kpackx_error *why)
{
	static const uint8_t zero[4];
	bool zeros;

	KP_TRY(skip_filling(ed, &from, end, why));
	KP_TRY(repeats(ed, from, end, zero, &zeros, why));
	if (!zeros)
		ed->kept[ed->n_kept++] = (struct kp_edit_range){from, end - from};
	else if (end == ed->size)
		ed->end_zeros = end - from;
	return KPACK_SUCCESS;
}

static kpack_error_t find_kept(struct kp_edit *ed, struct kpackx_error *why)
{
	uint64_t headers = ed->n_sections * sizeof(Elf64_Shdr), at = 0;
	size_t most = ed->n_sections + ed->n_segments + 4, n;
	struct kp_edit_range *list = calloc(most, sizeof(*list));
	kpack_error_t err = KPACK_SUCCESS;

	ed->kept = calloc(most, sizeof(*ed->kept));
	if (!list || !ed->kept) {
		free(list);
		return kp_fail_memory(why, most * sizeof(*list), "sections");
	}
	n = named_ranges(ed, headers, list);
	list[n++] = (struct kp_edit_range){ed->size, 0};
	for (size_t i = 0; i < n && !err; i++) {
		if (list[i].from > at)
			err = look_at_gap(ed, at, list[i].from, why);
		if (list[i].from + list[i].size > at)
			at = list[i].from + list[i].size;
	}
	free(list);
	/* as in AppImages, whose runtime computes the end of its ELF file */
	if (!err && kp_edit_kept_end(ed, ed->h.e_shoff + headers, 1) == ed->size)
		ed->headers_end = ed->h.e_shoff + headers;
	return err;
}

kpack_error_t kp_edit_open_all(int fd, uint64_t size, struct kp_edit *out,
			       struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(kp_edit_open(fd, size, out, why));
	err = find_kept(out, why);
	if (err)
		kp_edit_close(out);
	return err;
}
