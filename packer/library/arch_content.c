/* SPDX-License-Identifier: MIT */
/* Recognise a file's content.  Code objects and bundles are listed, never decoded. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "packer/cli/xalloc.h"
#include "core/format/format.h"
#include "core/target/target.h"

/* --- the container ------------------------------------------------------------------------ */

static const struct {
	const char *name, *magic;
	size_t size;
} magics[] = {
	{"ccob", "CCOB", 4},  {"bundle", "__CLANG_OFFLOAD_BUNDLE__", 24},
	{"aks2", "AKS2", 4},  {"zip", "PK\3\4", 4},
	{"zip", "PK\5\6", 4}, {"sqlite", "SQLite format 3", 16},
	{"kpack", "KPAK", 4},
};

/* Check that an ELF header's fields are valid: a magic alone must not decide. */
static const char *elf_kind(struct kp_span s)
{
	if (s.size < 20 || s.data[EI_VERSION] != EV_CURRENT ||
	    (s.data[EI_CLASS] != ELFCLASS32 && s.data[EI_CLASS] != ELFCLASS64) ||
	    (s.data[EI_DATA] != ELFDATA2LSB && s.data[EI_DATA] != ELFDATA2MSB))
		return "";
	return kp_le16(s.data + offsetof(Elf64_Ehdr, e_machine)) == EM_AMDGPU
		       ? "elf"
		       : "host-elf";
}

/* Bytes of the UTF-8 character that begins with C, or 0. */
static size_t char_size(uint8_t c)
{
	return c < 0x80   ? 1
	       : c < 0xc2 ? 0
	       : c < 0xe0 ? 2
	       : c < 0xf0 ? 3
	       : c < 0xf5 ? 4
			  : 0;
}

static bool is_control(uint8_t c)
{
	return (c < 0x20 && !strchr("\t\n\v\f\r\033", c)) || c == 0 || c == 0x7f;
}

/* Whether S is UTF-8 text without control bytes; its last character may be cut off. */
static bool is_text(struct kp_span s)
{
	for (size_t i = 0; i < s.size;) {
		size_t n = char_size(s.data[i]);

		if (n == 0 || is_control(s.data[i]))
			return false;
		for (i++; --n && i < s.size; i++)
			if ((s.data[i] & 0xc0) != 0x80)
				return false;
	}
	return s.size > 0;
}

/* RFC 1950: deflate, a window of at most 32 KiB, a valid checksum, no dictionary. */
static bool is_zlib(struct kp_span s)
{
	return s.size > 2 && (s.data[0] & 0x0f) == 8 && s.data[0] >> 4 <= 7 &&
	       (s.data[0] << 8 | s.data[1]) % 31 == 0 && !(s.data[1] & 0x20);
}

/* Whether S begins with a map or an array, as MessagePack databases do. */
static bool is_msgpack(struct kp_span s)
{
	return s.size > 1 && ((s.data[0] >= 0x80 && s.data[0] <= 0x9f) ||
			      (s.data[0] >= 0xdc && s.data[0] <= 0xdf));
}

const char *content_container(const struct library_question *q)
{
	struct kp_span s = {q->head, q->head_size};

	for (size_t i = 0; i < KP_COUNT(magics); i++)
		if (kp_span_starts(s, magics[i].magic, magics[i].size))
			return magics[i].name;
	if (kp_span_starts(s, ELFMAG, SELFMAG))
		return elf_kind(s);
	return is_text(s) ? "text" : is_zlib(s) ? "zlib" : is_msgpack(s) ? "msgpack" : "";
}

/* --- the targets -------------------------------------------------------------------------- */

/* Some 60 processors exist, some with features: no real bundle has more targets. */
enum { TARGETS_MAX = 256 };

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Add ARCH if it names a GPU: not SPIR-V, not the mere number of a future processor. */
static kpack_error_t add_arch(struct content *c, const char *arch,
			      struct kpackx_error *why)
{
	struct kp_target target;

	if (strncmp(arch, "gfx", 3) != 0 ||
	    kp_target_parse(kp_span_str(arch), &target, NULL) != KPACK_SUCCESS)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < c->n_arches; i++)
		if (strcmp(c->arches[i], arch) == 0)
			return KPACK_SUCCESS;
	if (c->n_arches == TARGETS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entries for more than %d GPUs", TARGETS_MAX);
	c->arches = xrealloc(c->arches, (c->n_arches + 1) * sizeof(*c->arches));
	memcpy(c->arches[c->n_arches++], arch, strlen(arch) + 1);
	return KPACK_SUCCESS;
}

static kpack_error_t list_targets(const struct library_question *q, struct content *c,
				  struct kpackx_error *why)
{
	struct kp_container object = {.format = &kp_format_code_object};
	struct kp_containers list = {0};
	kpack_error_t err;

	/* bytes after a code object do no harm: only its own headers are read */
	if (strcmp(c->container, "elf") == 0)
		err = object.format->parse(q->source, &object, &list, why);
	else
		err = kp_containers_scan(q->source, &list, why);
	for (size_t i = 0; !err && i < list.n_images; i++)
		if (!list.images[i].host)
			err = add_arch(c, list.images[i].arch, why);
	kp_containers_fini(&list);
	return err;
}

kpack_error_t content_look(const struct library_question *q, struct content *out,
			   struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct content){.container = content_container(q)};
	if (strcmp(out->container, "elf") != 0 && strcmp(out->container, "ccob") != 0 &&
	    strcmp(out->container, "bundle") != 0)
		return KPACK_SUCCESS;
	err = list_targets(q, out, &out->fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = out->fault;
		content_fini(out);
		return err;
	}
	/* a container that this build cannot read is not damaged */
	out->damaged = err && err != KPACK_ERROR_NOT_IMPLEMENTED;
	if (err)
		out->n_arches = 0;
	if (out->n_arches > 1)
		qsort(out->arches, out->n_arches, sizeof(*out->arches), by_text);
	return KPACK_SUCCESS;
}

void content_fini(struct content *c)
{
	free(c->arches);
	c->arches = NULL;
	c->n_arches = 0;
}

/* --- the decision -------------------------------------------------------------------------- */

void arch_named(const char *path, const char *directory, char named[KP_TARGET_TEXT_MAX],
		struct library_object *out)
{
	char own[KP_TARGET_TEXT_MAX];
	const char *chosen = directory;

	if (arch_of_name(path_name(path), own)) {
		if (!*directory)
			chosen = own;
		else if (arch_agrees(directory, own))
			chosen = arch_more_exact(directory, own);
		else
			library_warn(out,
				     "named for %s in the directory of %s: packed as %s",
				     own, directory, directory);
	}
	snprintf(named, KP_TARGET_TEXT_MAX, "%s", chosen);
}

/*
 * One target that the code states decides.  Code that states none, or several of which one
 * has the name, has the target of the name.
 */
static void add_decided(const char *named, const struct content *c,
			struct library_object *out)
{
	const char *arch = KP_ARCH_GENERIC;
	size_t agreeing = 0;

	for (size_t i = 0; *named && i < c->n_arches; i++)
		agreeing += arch_agrees(named, c->arches[i]);
	if (c->n_arches == 1)
		arch = c->arches[0];
	else if (*named && (c->n_arches == 0 || agreeing))
		arch = named;
	library_add_arch(out, arch);

	if (c->n_arches == 0 && c->damaged)
		library_warn(out, "damaged, packed as it is: %s", c->fault.text);
	if (!*named || agreeing == c->n_arches)
		return;
	if (c->n_arches == 1)
		library_warn(out, "named for %s, but its code is for %s: packed as %s",
			     named, arch, arch);
	else
		library_warn(out,
			     "named for %s, but its code is for %s and %zu more: "
			     "packed as %s",
			     named, c->arches[0], c->n_arches - 1, arch);
}

kpack_error_t arch_decide(const struct library_question *q, const char *named,
			  struct library_object *out, struct kpackx_error *why)
{
	struct content c;

	KP_TRY(content_look(q, &c, why));
	if (*c.container)
		facts_string(&out->facts, "container", c.container);
	add_decided(named, &c, out);
	content_fini(&c);
	return KPACK_SUCCESS;
}
