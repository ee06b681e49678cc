/* SPDX-License-Identifier: MIT */
#include "amdgpu_notes.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/bounds.h"

/*
 * A note is u32 owner size, contents size, type; owner, contents, each padded to 4 bytes.
 */
#define NOTE_SIZE 12

/* Types of notes with the owner "AMD" (code object v2) or "AMDGPU". */
enum { CODE_OBJECT_VERSION = 1, ISA_VERSION = 3, ISA_NAME = 11, METADATA = 32 };

/* The source of notes. */
struct reader {
	struct kp_source src;
	struct kp_amdgpu_notes *out;
	uint64_t walked; /* bytes of notes read so far */
};

struct note {
	struct kp_source contents;
	uint32_t type;
	char owner[8];
};

typedef kpack_error_t note_fn(struct kp_amdgpu_notes *out, const struct note *note,
			      struct kpackx_error *why);

/* Read the first SIZE bytes of the contents into BUF; missing bytes become 0. */
static kpack_error_t get_contents(const struct note *note, uint8_t *buf, size_t size,
				  struct kpackx_error *why)
{
	size_t n = note->contents.size < size ? (size_t)note->contents.size : size;

	memset(buf, 0, size);
	return kp_source_read(&note->contents, 0, buf, n, why);
}

static kpack_error_t take_version(struct kp_amdgpu_notes *out, const struct note *note,
				  struct kpackx_error *why)
{
	uint8_t b[8];

	KP_TRY(get_contents(note, b, sizeof(b), why));
	out->has_version = true;
	out->version[0] = kp_le32(b);
	out->version[1] = kp_le32(b + 4);
	return KPACK_SUCCESS;
}

/* Copy at most SIZE of the ROOM bytes at B, up to a NUL, to a string. */
static void copy_text(char out[16], const uint8_t *b, size_t room, size_t size)
{
	size_t n = size < room ? size : room;

	snprintf(out, 16, "%.*s", (int)(n < 15 ? n : 15), (const char *)b);
}

/* u16 vendor size, u16 family size, u32 major, minor, stepping, vendor, family */
static kpack_error_t take_isa(struct kp_amdgpu_notes *out, const struct note *note,
			      struct kpackx_error *why)
{
	uint8_t b[16 + 64];
	size_t vendor;

	KP_TRY(get_contents(note, b, sizeof(b), why));
	if (note->contents.size < 16)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "ISA note of %" PRIu64 " bytes", note->contents.size);
	out->has_isa = true;
	for (size_t i = 0; i < 3; i++)
		out->isa[i] = kp_le32(b + 4 + 4 * i);
	vendor = kp_le16(b);
	vendor = vendor < 32 ? vendor : 32;
	copy_text(out->isa_vendor, b + 16, 32, vendor);
	copy_text(out->isa_family, b + 16 + vendor, 32, kp_le16(b + 2));
	return KPACK_SUCCESS;
}

static kpack_error_t take_isa_name(struct kp_amdgpu_notes *out, const struct note *note,
				   struct kpackx_error *why)
{
	KP_TRY(get_contents(note, (uint8_t *)out->isa_name, sizeof(out->isa_name), why));
	out->isa_name[sizeof(out->isa_name) - 1] = '\0';
	return KPACK_SUCCESS;
}

static kpack_error_t take_metadata(struct kp_amdgpu_notes *out, const struct note *note,
				   struct kpackx_error *why)
{
	uint64_t size = note->contents.size;

	if (out->metadata)
		return KPACK_SUCCESS;
	if (size > KP_METADATA_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "metadata of %" PRIu64 " bytes, %d at most", size,
			       KP_METADATA_MAX);
	out->metadata = malloc(size + !size);
	if (!out->metadata)
		return kp_fail_memory(why, size, "the metadata of kernels");
	out->metadata_size = (size_t)size;
	return kp_source_read(&note->contents, 0, out->metadata, (size_t)size, why);
}

static kpack_error_t take_build_id(struct kp_amdgpu_notes *out, const struct note *note,
				   struct kpackx_error *why)
{
	uint64_t size = note->contents.size;

	if (out->build_id_size || size > sizeof(out->build_id))
		return KPACK_SUCCESS;
	out->build_id_size = (size_t)size;
	return kp_source_read(&note->contents, 0, out->build_id, (size_t)size, why);
}

static const struct {
	const char *owner;
	uint32_t type;
	note_fn *take;
} kinds[] = {
	{"AMDGPU", METADATA, take_metadata},
	{"AMD", CODE_OBJECT_VERSION, take_version},
	{"AMD", ISA_VERSION, take_isa},
	{"AMD", ISA_NAME, take_isa_name},
	{"GNU", NT_GNU_BUILD_ID, take_build_id},
};

static kpack_error_t take_note(struct kp_amdgpu_notes *out, const struct note *note,
			       struct kpackx_error *why)
{
	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (kinds[i].type == note->type && !strcmp(kinds[i].owner, note->owner))
			return kinds[i].take(out, note, why);
	return KPACK_SUCCESS;
}

static uint64_t padded_size(uint64_t size)
{
	return (size + 3) & ~UINT64_C(3);
}

/* Read the note at *POS of AREA, and move *POS after it. */
static kpack_error_t read_note(struct kp_window *area, uint64_t *pos, struct note *note,
			       struct kpackx_error *why)
{
	uint64_t owner_size, at = *pos + NOTE_SIZE, size;
	const uint8_t *p;

	KP_TRY(kp_window_get(area, *pos, NOTE_SIZE, &p, why));
	owner_size = kp_le32(p);
	size = kp_le32(p + 4);
	*note = (struct note){.type = kp_le32(p + 8)};
	if (!kp_source_sub(&area->src, at + padded_size(owner_size), size,
			   &note->contents))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "note at offset %" PRIu64 ": %" PRIu64 " and %" PRIu64
			       " bytes pass the end at %" PRIu64,
			       *pos, owner_size, size, area->src.size);
	if (owner_size && owner_size <= sizeof(note->owner)) {
		KP_TRY(kp_window_get(area, at, (size_t)owner_size, &p, why));
		memcpy(note->owner, p, (size_t)owner_size - 1);
	}
	*pos = at + padded_size(owner_size) + padded_size(size);
	return KPACK_SUCCESS;
}

/* Read the notes in [OFF, OFF + LEN). */
static kpack_error_t walk_notes(struct reader *r, uint64_t off, uint64_t len,
				struct kpackx_error *why)
{
	struct kp_window area;
	struct kp_source src;
	struct note note;

	/* bounds the time: many headers may state the same bytes */
	if (!kp_source_sub(&r->src, off, len, &src) || len > r->src.size - r->walked)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "notes of %" PRIu64 " bytes and more in a code object of "
			       "%" PRIu64,
			       r->walked + len, r->src.size);
	r->walked += len;
	kp_window_init(&area, &src);
	for (uint64_t pos = 0; pos < src.size;) {
		KP_TRY(read_note(&area, &pos, &note, why));
		KP_TRY(take_note(r->out, &note, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t walk_sections(struct reader *r, const struct kp_sections *sections,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < sections->count; i++) {
		const struct kp_section *s = &sections->items[i];

		if (s->type == SHT_NOTE)
			KP_TRY(walk_notes(r, s->offset, s->size, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t walk_segments(struct reader *r, const Elf64_Ehdr *header,
				   struct kpackx_error *why)
{
	struct kp_window window;
	const uint8_t *p;

	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return KPACK_SUCCESS;
	kp_window_init(&window, &r->src);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		KP_TRY(kp_window_get(&window, header->e_phoff + i * sizeof(Elf64_Phdr),
				     sizeof(Elf64_Phdr), &p, why));
		if (kp_le32(p + offsetof(Elf64_Phdr, p_type)) == PT_NOTE)
			KP_TRY(walk_notes(r, kp_le64(p + offsetof(Elf64_Phdr, p_offset)),
					  kp_le64(p + offsetof(Elf64_Phdr, p_filesz)),
					  why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_amdgpu_notes_read(const struct kp_source *src,
				   const struct kp_sections *sections,
				   struct kp_amdgpu_notes *out, struct kpackx_error *why)
{
	struct reader r = {.src = *src, .out = out};
	kpack_error_t err;

	*out = (struct kp_amdgpu_notes){0};
	err = sections->count ? walk_sections(&r, sections, why)
			      : walk_segments(&r, &sections->header, why);
	if (err)
		kp_amdgpu_notes_fini(out);
	return err;
}

void kp_amdgpu_notes_fini(struct kp_amdgpu_notes *notes)
{
	free(notes->metadata);
	*notes = (struct kp_amdgpu_notes){0};
}
