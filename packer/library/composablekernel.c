/* SPDX-License-Identifier: MIT */
/*
 * Composable Kernel: a static library of device code for each GPU, anywhere in the tree:
 * libdevice_conv_operations_gfx942.a, and libMIOpenCKGroupedConv_gfx942.a.
 */
#include "arch_name.h"
#include "ck_name.h"

static bool cut_ending(struct kp_span *name)
{
	static const char *const endings[] = {".a", ".lib"};

	for (size_t i = 0; i < KP_COUNT(endings); i++) {
		size_t n = strlen(endings[i]);

		if (name->size <= n ||
		    memcmp(name->data + name->size - n, endings[i], n) != 0)
			continue;
		name->size -= n;
		return true;
	}
	return false;
}

/*
 * Find the GPU at the end of the file's name; ID is its spelling there.  false: not the
 * name of such a library, or without a GPU: that library is for all GPUs.
 */
static bool parse_name(const char *path, char arch[KP_TARGET_TEXT_MAX],
		       struct kp_span *id, bool *variant)
{
	static const char *const prefixes[] = {"device_conv_operations_", "MIOpenCK"};
	struct kp_span name = path_name(path);

	if (kp_span_starts(name, "lib", 3))
		name = kp_span_tail(name, 3);
	if (!cut_ending(&name))
		return false;
	for (size_t i = 0; i < KP_COUNT(prefixes); i++) {
		const uint8_t *gfx;

		if (!kp_span_starts(name, prefixes[i], strlen(prefixes[i])))
			continue;
		gfx = memmem(name.data, name.size, "_gfx", 4);
		if (!gfx)
			return false;
		*id = kp_span_tail(name, (size_t)(gfx + 1 - name.data));
		return ck_target(*id, arch, variant);
	}
	return false;
}

static bool probe_file(const struct library *self, const struct library_question *q)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span id;
	bool variant;

	(void)self;
	return parse_name(q->path, arch, &id, &variant);
}

static kpack_error_t check_file(const struct library *self,
				const struct library_question *q, bool *mine,
				struct library_object *out, struct kpackx_error *why)
{
	static const char magic[] = "!<arch>\n";
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span id;
	bool variant;

	(void)self, (void)why;
	if (q->head_size < sizeof(magic) - 1 ||
	    memcmp(q->head, magic, sizeof(magic) - 1) != 0 ||
	    !parse_name(q->path, arch, &id, &variant))
		return KPACK_SUCCESS;
	*mine = true;
	out->role = "archive";
	facts_string(&out->facts, "container", "ar");
	if (variant)
		facts_text(&out->facts, "variant", id);
	library_add_arch(out, arch);
	return KPACK_SUCCESS;
}

const struct library library_composablekernel = {
	.name = "composablekernel",
	.probe = probe_file,
	.check = check_file,
};
