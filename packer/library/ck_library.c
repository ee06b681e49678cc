/* SPDX-License-Identifier: MIT */
#include "ck_library.h"
#include "arch_name.h"
#include "ck_name.h"
#include "core/elf/host_fatbin.h"
#include "core/target/target.h"

/* --- names ------------------------------------------------------------------------------ */

/* Whether ENDING is ".so", with or without version numbers. */
static bool is_so(struct kp_span ending)
{
	if (!kp_span_starts(ending, ".so", 3))
		return false;
	for (size_t i = 3; i < ending.size; i++)
		if (ending.data[i] != '.' &&
		    (ending.data[i] < '0' || ending.data[i] > '9'))
			return false;
	return ending.size == 3 || (ending.data[3] == '.' && ending.size > 4);
}

static bool cut_ending(struct kp_span *name)
{
	for (size_t i = 0; i < name->size; i++) {
		struct kp_span ending = kp_span_tail(*name, i);

		if (!is_so(ending) && !kp_span_is(ending, ".dll"))
			continue;
		name->size = i;
		return true;
	}
	return false;
}

bool ck_library_name(struct kp_span name, struct ck_library_name *out)
{
	static const char prefix[] = "MIOpenCK", mark[] = "_gfx";
	struct kp_span id;
	bool variant;
	const uint8_t *at;

	if (kp_span_starts(name, "lib", 3))
		name = kp_span_tail(name, 3);
	if (!kp_span_starts(name, prefix, sizeof(prefix) - 1) || !cut_ending(&name))
		return false;
	at = memmem(name.data, name.size, mark, sizeof(mark) - 1);
	if (!at)
		return false;
	id = kp_span_tail(name, (size_t)(at - name.data) + 1);
	*out = (struct ck_library_name){0};
	if (!ck_target(id, out->arch, &variant))
		return false;
	if (variant)
		out->variant = id;
	return true;
}

/* --- content ---------------------------------------------------------------------------- */

/* The targets of a library's code, compared with the GPU in its name. */
struct stated {
	const char *other; /* the first target that does not agree; or NULL */
	const char *only;  /* the only target of all code; NULL: none, or several */
	size_t images, agreeing;
};

static struct stated compare_images(const struct kp_containers *list, const char *named)
{
	struct stated s = {0};

	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *image = &list->images[i];

		if (image->host || strncmp(image->arch, "gfx", 3) != 0)
			continue;
		if (s.images++ == 0)
			s.only = image->arch;
		else if (s.only && strcmp(s.only, image->arch) != 0)
			s.only = NULL;
		if (arch_agrees(named, image->arch))
			s.agreeing++;
		else if (!s.other)
			s.other = image->arch;
	}
	return s;
}

static void decide_arch(const struct kp_containers *list, const char *named,
			struct library_object *out)
{
	struct stated s = compare_images(list, named);
	const char *arch = s.only ? s.only : named;

	if (s.images && !s.only && !s.agreeing)
		arch = KP_ARCH_GENERIC;
	library_add_arch(out, arch);
	if (s.other)
		library_warn(out, "named for %s, but code in it is for %s: packed as %s",
			     named, s.other, arch);
}

static kpack_error_t look_inside(const struct library_question *q, const char *named,
				 struct library_object *out, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct kp_fatbin fat;
	kpack_error_t err;

	/* an archive's entry is not a file; it was checked when packed */
	if (q->source->fd < 0 || q->source->offset != 0) {
		library_add_arch(out, named);
		return KPACK_SUCCESS;
	}
	err = kp_fatbin_open(q->source->fd, q->source->size, &fat, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = fault;
		return err;
	}
	if (err) {
		library_add_arch(out, named);
		library_warn(out, "packed as it is: %s", fault.text);
		return KPACK_SUCCESS;
	}
	decide_arch(&fat.containers, named, out);
	kp_fatbin_fini(&fat);
	return KPACK_SUCCESS;
}

kpack_error_t ck_library_check(const struct library_question *q,
			       const struct ck_library_name *name, bool *mine,
			       struct library_object *out, struct kpackx_error *why)
{
	bool elf = strcmp(content_container(q), "host-elf") == 0;
	bool dll = q->head_size > 2 && memcmp(q->head, "MZ", 2) == 0;

	if (!elf && !dll)
		return KPACK_SUCCESS;
	*mine = true;
	out->role = "library";
	facts_string(&out->facts, "container", elf ? "host-elf" : "dll");
	if (name->variant.size)
		facts_text(&out->facts, "variant", name->variant);
	if (elf)
		return look_inside(q, name->arch, out, why);
	library_add_arch(out, name->arch);
	return KPACK_SUCCESS;
}
