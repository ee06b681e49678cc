/* SPDX-License-Identifier: MIT */
/*
 * AOTriton: kernels of flash attention compiled from Triton.
 *
 *   aotriton.images/amd-<pack>/flash/<operation>/<signature>.aks2
 *   aotriton.images/amd-<pack>/flash/<operation>.zip
 *   aotriton.images/amd-<pack>/__signature__
 *
 * The loader keeps the directory open and opens files below it by name; it lists nothing.
 * In trees with a directory of code objects for each GPU, files also get keys:
 *
 *   aotriton/kernels/<arch>/<operation>.hsaco -> aotriton/<arch>/<operation>
 */
#include "aks2.h"
#include "aotriton_pack.h"
#include "arch_name.h"
#include "flatzip.h"
#include "core/base/text.h"
#include "triton_facts.h"

static const char IMAGES[] = "aotriton.images", KERNELS[] = "aotriton/kernels";

/* S without its first PREFIX and its last SUFFIX bytes. */
static struct kp_span inner_span(struct kp_span s, size_t prefix, size_t suffix)
{
	return (struct kp_span){s.data + prefix, s.size - prefix - suffix};
}

static bool in_kernels(const char *path, struct kp_span *rest, char *arch)
{
	return path_below(path, KERNELS, rest) && path_depth(*rest) > 1 &&
	       arch_of_directory(path_component(*rest, 0), arch, NULL);
}

static bool probe_file(const struct library *self, const struct library_question *q)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span rest;

	(void)self;
	return path_below(q->path, IMAGES, &rest) || in_kernels(q->path, &rest, arch);
}

/* --- aotriton.images -------------------------------------------------------------------- */

/* Add TEXT if it is short and printable. */
static void add_text(struct library_object *out, const char *name, struct kp_span text)
{
	if (text.size && text.size <= 200 && kp_text_ok(text))
		facts_text(&out->facts, name, text);
}

/* "FONLY__*bf16@16_256_F_F_3_0": alignment and choices follow the type and "@". */
static void add_choices(struct library_object *out, struct kp_span signature)
{
	enum { CHOICES_MAX = 16 };
	struct kp_span choices[CHOICES_MAX], rest;
	const uint8_t *at = memchr(signature.data, '@', signature.size);
	size_t n = 0;

	if (!at)
		return;
	rest = inner_span(signature, (size_t)(at + 1 - signature.data), 0);
	while (rest.size && rest.size <= 200 && n < CHOICES_MAX && kp_text_ok(rest)) {
		size_t size = 0;

		while (size < rest.size && rest.data[size] != '_' &&
		       rest.data[size] != ',')
			size++;
		choices[n++] = (struct kp_span){rest.data, size};
		rest = inner_span(rest, size < rest.size ? size + 1 : size, 0);
	}
	if (n)
		facts_texts(&out->facts, "tuning_params", choices, n);
}

/* The type is between a star ('^', or U+FF0A since 0.10) and "@". */
static void add_datatype(struct library_object *out, struct kp_span signature)
{
	static const char *const stars[] = {"\xef\xbc\x8a", "^", "*"};
	const uint8_t *at = memchr(signature.data, '@', signature.size);
	size_t before = at ? (size_t)(at - signature.data) : 0;

	for (size_t i = 0; i < KP_COUNT(stars); i++) {
		size_t n = strlen(stars[i]);
		const uint8_t *star = memmem(signature.data, before, stars[i], n);

		if (!star)
			continue;
		add_text(out, "datatype",
			 (struct kp_span){star + n, (size_t)(at - star) - n});
		return;
	}
}

/* The part after "___" in the name of an .aks2 file: a pack or a product; or empty. */
static struct kp_span device_of(const char *path)
{
	struct kp_span stem = inner_span(path_name(path), 0, strlen(".aks2"));
	const uint8_t *mark = memmem(stem.data, stem.size, "___", 3);

	return mark ? inner_span(stem, (size_t)(mark + 3 - stem.data), 0)
		    : (struct kp_span){NULL, 0};
}

static void add_signature(struct library_object *out, const char *path)
{
	struct kp_span signature = inner_span(path_name(path), 0, strlen(".aks2"));
	struct kp_span device = device_of(path);

	if (device.data)
		signature.size = (size_t)(device.data - 3 - signature.data);
	add_text(out, "signature", signature);
	add_datatype(out, signature);
	add_choices(out, signature);
	add_text(out, "device", device);
}

static kpack_error_t take_aks2(const struct library_question *q, struct kp_span rest,
			       struct library_object *out, struct kpackx_error *why)
{
	size_t depth = path_depth(rest);
	struct kpackx_error fault;
	struct aks2 head;
	kpack_error_t err = aks2_read(q->source, &head, &fault);

	out->role = "kernel";
	if (depth > 2)
		add_text(out, "operation", path_component(rest, depth - 2));
	add_signature(out, q->path);
	if (err == KPACK_ERROR_INVALID_FORMAT) {
		library_warn(out, "packed as it is: %s", fault.text);
		return KPACK_SUCCESS;
	}
	if (err) {
		*why = fault;
		return err;
	}
	facts_number(&out->facts, "uncompressed_size", head.decoded_size);
	facts_number(&out->facts, "kernel_count", head.kernel_count);
	return KPACK_SUCCESS;
}

static kpack_error_t take_zip(const struct library_question *q, struct kp_span rest,
			      struct library_object *out, struct kpackx_error *why)
{
	struct kpackx_error fault;
	unsigned members;
	kpack_error_t err = flatzip_read(q->source, &members, &fault);

	(void)rest;
	out->role = "kernel";
	out->at_random = true;
	add_text(out, "operation", inner_span(path_name(q->path), 0, strlen(".zip")));
	if (err == KPACK_ERROR_INVALID_FORMAT) {
		library_warn(out, "packed as it is: %s", fault.text);
		return KPACK_SUCCESS;
	}
	if (err) {
		*why = fault;
		return err;
	}
	facts_number(&out->facts, "members", members);
	return KPACK_SUCCESS;
}

static kpack_error_t take_versions(const struct library_question *q, struct kp_span rest,
				   struct library_object *out, struct kpackx_error *why)
{
	(void)rest;
	out->role = "signature";
	return triton_versions(q->source, &out->facts, why);
}

static const struct {
	const char *end; /* of the path */
	kpack_error_t (*take)(const struct library_question *q, struct kp_span rest,
			      struct library_object *out, struct kpackx_error *why);
} kinds[] = {
	{".aks2", take_aks2},
	{".zip", take_zip},
	{"/__signature__", take_versions},
};

static kpack_error_t take_kind(const struct library_question *q, struct kp_span rest,
			       struct library_object *out, struct kpackx_error *why)
{
	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (kp_span_ends(kp_span_str(q->path), kinds[i].end))
			return kinds[i].take(q, rest, out, why);
	return KPACK_SUCCESS;
}

/* It is for all GPUs of the family, unless its content (a code object) states GPUs. */
static kpack_error_t take_family(const struct library_question *q,
				 const struct aotriton_pack *pack,
				 struct library_object *out, struct kpackx_error *why)
{
	struct content c;
	bool stated;

	KP_TRY(content_look(q, &c, why));
	stated = c.n_arches > 0;
	content_fini(&c);
	if (stated)
		return arch_decide(q, "", out, why);
	if (*c.container)
		facts_string(&out->facts, "container", c.container);
	for (size_t i = 0; i < pack->n_arches; i++)
		library_add_arch(out, pack->arches[i]);
	memcpy(out->family, pack->family, sizeof(out->family));
	return KPACK_SUCCESS;
}

/* Since 0.10 a kernel's name ends with its pack: warn if it is not the directory's. */
static void compare_device(const struct library_question *q,
			   const struct aotriton_pack *pack, struct library_object *out)
{
	struct kp_span device = device_of(q->path);
	struct aotriton_pack named = aotriton_pack_named(device);

	if (!out->warning && !aotriton_packs_agree(pack, &named))
		library_warn(out, "named for %.*s, but it is in the pack of %s",
			     (int)device.size, (const char *)device.data,
			     *pack->family ? pack->family : pack->arches[0]);
}

static kpack_error_t take_image(const struct library_question *q, struct kp_span rest,
				struct library_object *out, struct kpackx_error *why)
{
	struct kp_span first = path_component(rest, 0);
	struct aotriton_pack pack = {0};

	if (path_depth(rest) > 1)
		pack = aotriton_pack(first);
	KP_TRY(*pack.family
		       ? take_family(q, &pack, out, why)
		       : arch_decide(q, pack.n_arches ? pack.arches[0] : "", out, why));
	if (pack.n_arches)
		add_text(out, "pack", inner_span(first, strlen("amd-"), 0));
	if (pack.unknown)
		library_warn(out, "no GPU that is known is in %.*s: packed for every GPU",
			     (int)first.size, (const char *)first.data);
	if (kp_span_ends(rest, ".aks2"))
		compare_device(q, &pack, out);
	return take_kind(q, rest, out, why);
}

/* --- aotriton/kernels ------------------------------------------------------------------- */

static kpack_error_t take_kernel(const struct library_question *q, struct kp_span rest,
				 const char *arch, struct library_object *out,
				 struct kpackx_error *why)
{
	size_t dir = path_component(rest, 0).size + 1;
	char named[KP_TARGET_TEXT_MAX];
	struct kp_span operation;

	arch_named(q->path, arch, named, out);
	KP_TRY(arch_decide(q, named, out, why));
	if (!kp_span_ends(rest, ".hsaco"))
		return KPACK_SUCCESS;
	out->role = "kernel";
	operation = inner_span(rest, dir, strlen(".hsaco"));
	add_text(out, "operation", operation);
	if (operation.size == 0)
		return KPACK_SUCCESS;
	library_add_key(out, "aotriton/%s/%.*s", arch, (int)operation.size,
			(const char *)operation.data);
	return triton_kernel(q, &out->facts, why);
}

static kpack_error_t check_file(const struct library *self,
				const struct library_question *q, bool *mine,
				struct library_object *out, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span rest;

	(void)self;
	if (strcmp(content_container(q), "host-elf") == 0)
		return KPACK_SUCCESS;
	*mine = true;
	if (path_below(q->path, IMAGES, &rest))
		return take_image(q, rest, out, why);
	in_kernels(q->path, &rest, arch);
	return take_kernel(q, rest, arch, out, why);
}

const struct library library_aotriton = {
	.name = "aotriton",
	.probe = probe_file,
	.check = check_file,
};
