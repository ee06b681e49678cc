/* SPDX-License-Identifier: MIT */
/*
 * Composable Kernel: a static library of device code for each GPU, anywhere in the tree:
 * libdevice_conv_operations_gfx942.a.
 */
#include "arch_name.h"
#include "ck_name.h"

/* The GPU that the file's name states, with the name of its stepping; false: none. */
static bool named(const char *path, char arch[KP_TARGET_TEXT_MAX], struct kp_span *id,
		  bool *variant)
{
	static const char prefix[] = "device_conv_operations_";
	static const char *const endings[] = {".a", ".lib"};
	struct kp_span name = path_name(path);

	if (kp_span_starts(name, "lib", 3))
		name = (struct kp_span){name.data + 3, name.size - 3};
	if (!kp_span_starts(name, prefix, sizeof(prefix) - 1))
		return false;
	*id = (struct kp_span){name.data + sizeof(prefix) - 1,
			       name.size - (sizeof(prefix) - 1)};
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(endings[i]);

		if (id->size <= n || memcmp(id->data + id->size - n, endings[i], n) != 0)
			continue;
		id->size -= n;
		return ck_target(*id, arch, variant);
	}
	return false;
}

static bool probe(const struct library *self, const struct library_question *q)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span id;
	bool variant;

	(void)self;
	return named(q->path, arch, &id, &variant);
}

static kpack_error_t check(const struct library *self, const struct library_question *q,
			   bool *mine, struct library_object *out,
			   struct kpackx_error *why)
{
	static const char magic[] = "!<arch>\n";
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span id;
	bool variant;

	(void)self;
	if (q->head_size < sizeof(magic) - 1 ||
	    memcmp(q->head, magic, sizeof(magic) - 1) != 0 ||
	    !named(q->path, arch, &id, &variant))
		return KPACK_SUCCESS;
	*mine = true;
	out->role = "archive";
	facts_string(&out->facts, "container", "ar");
	if (variant)
		facts_text(&out->facts, "variant", id);
	return library_add_arch(out, arch, why);
}

const struct library library_composablekernel = {
	.name = "composablekernel",
	.probe = probe,
	.check = check,
};
