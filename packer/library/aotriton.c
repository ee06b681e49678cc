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
 *
 * and facts from the small JSON file that Triton writes next to a kernel.
 */
#include <jansson.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static const char IMAGES[] = "aotriton.images", KERNELS[] = "aotriton/kernels";

/* Facts are small: limits of text bytes, of name bytes, of a kernel's parameters. */
enum { TEXT_MAX = 200, NAME_MAX_BYTES = 32, PARAMS_MAX = 24, CHOICES_MAX = 16 };

/* Limit of bytes of a JSON file: Triton's files have some kilobytes. */
enum { JSON_MAX = 64 << 10 };

/* --- packs ------------------------------------------------------------------------------ */

/* The GPUs that a pack is for. */
struct pack {
	char arches[32][KP_TARGET_TEXT_MAX]; /* canonical */
	size_t n_arches;                     /* 0: every GPU */
	char family[KP_TARGET_TEXT_MAX];     /* name of a family of GPUs; or "" */
	bool unknown; /* it names GPUs, but none that kpack knows */
};

/*
 * The GPUs that AOTriton builds each family for.  The x's in a name do not say that:
 * gfx11xx is older than gfx1154 and gfx117x, and does not include them.
 */
static const struct {
	const char *name, *members;
} families[] = {
	{"gfx11xx", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153"},
	{"gfx110x", "gfx1100 gfx1101 gfx1102 gfx1103"},
	{"gfx115x", "gfx1150 gfx1151 gfx1152 gfx1153"},
	{"gfx120x", "gfx1200 gfx1201"},
};

/* Whether PROCESSOR matches FAMILY, in which an x stands for any character. */
static bool fits_family(const char *processor, struct kp_span family)
{
	if (strlen(processor) != family.size || strchr(processor, '-'))
		return false;
	for (size_t i = 0; i < family.size; i++)
		if (family.data[i] != (uint8_t)processor[i] &&
		    (i < 3 || family.data[i] != 'x'))
			return false;
	return true;
}

/* The pack NAME, "gfx942" or "gfx11xx"; any name without "gfx" is for every GPU. */
static struct pack pack_named(struct kp_span name)
{
	struct pack p = {0};
	struct kp_span ignored;
	const char *members = NULL;
	size_t n;
	const struct kp_processor *table = kp_processor_table(&n);

	if (!kp_span_begins(name, "gfx"))
		return p;
	/* the suffix for a part of a GPU's compute units: gfx942_mod0 is for gfx942 */
	kp_span_split(name, "_mod", &name, &ignored);
	if (arch_of_directory(name, p.arches[0], NULL)) {
		p.n_arches = 1;
		return p;
	}
	p.unknown = true;
	if (name.size >= sizeof(p.family) || !memchr(name.data + 3, 'x', name.size - 3))
		return p;
	for (size_t i = 0; i < KP_COUNT(families); i++)
		if (kp_span_is(name, families[i].name))
			members = families[i].members;
	/* of a family that is not known: the GPUs whose names match */
	for (size_t i = 0; i < n && p.n_arches < KP_COUNT(p.arches); i++)
		if (members ? kp_span_is_one_of(kp_span_str(table[i].name), members)
			    : fits_family(table[i].name, name))
			strcpy(p.arches[p.n_arches++], table[i].name);
	p.unknown = p.n_arches == 0;
	if (!p.unknown)
		memcpy(p.family, name.data, name.size);
	return p;
}

/* --- containers ------------------------------------------------------------------------- */

/*
 * AOTriton's container of kernels, "AKS2", little-endian:
 *
 *   "AKS2", u32 decoded size, u32 number of kernels, u32 size of the directory
 *   one xz stream (or older LZMA), which decodes to the directory and the images
 *
 * A directory record has five u32 and a NUL-terminated name.  Only the header is read, and
 * whether the stream seems whole.
 */
static kpack_error_t read_aks2(const struct kp_source *source, struct facts *facts,
			       struct kpackx_error *why)
{
	/* an xz stream has a head and a foot of 12 bytes each, and an index between them */
	enum { HEAD = 16, RECORD_MIN = 5 * 4 + 1, STREAM_MIN = 32 };
	uint8_t head[HEAD + 6], tail[1024];
	uint32_t decoded, count, directory;
	size_t n;

	if (source->size < sizeof(head))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: %llu bytes hold no header",
			       (unsigned long long)source->size);
	KP_TRY(kp_source_read(source, 0, head, sizeof(head), why));
	if (memcmp(head, "AKS2", 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: begins with %02x%02x%02x%02x, not with \"AKS2\"",
			       head[0], head[1], head[2], head[3]);
	decoded = kp_le32(head + 4);
	count = kp_le32(head + 8);
	directory = kp_le32(head + 12);
	if (directory > decoded)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: a directory of %u bytes in %u decoded ones",
			       directory, decoded);
	if (count > directory / RECORD_MIN)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "aks2: %u kernels in a directory of %u bytes", count,
			       directory);
	if (memcmp(head + HEAD, "\xfd\x37zXZ", 6) == 0) {
		/* zeros in groups of four may follow an xz stream: skip the last of them */
		n = source->size - HEAD < sizeof(tail) ? (size_t)source->size - HEAD
						       : sizeof(tail);
		KP_TRY(kp_source_read(source, source->size - n, tail, n, why));
		while (n >= 4 && kp_le32(tail + n - 4) == 0)
			n -= 4;
		if (n < STREAM_MIN || memcmp(tail + n - 2, "YZ", 2) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "aks2: the xz stream has no end: "
				       "cut short at %llu bytes",
				       (unsigned long long)source->size);
	} else if (memcmp(head + HEAD, "\x5d\0\0", 3) != 0) {
		/* older LZMA has no mark of its end */
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"aks2: no xz stream behind the header, but %02x%02x%02x%02x",
			head[HEAD], head[HEAD + 1], head[HEAD + 2], head[HEAD + 3]);
	}
	facts_number(facts, "uncompressed_size", decoded);
	facts_number(facts, "kernel_count", count);
	return KPACK_SUCCESS;
}

/*
 * AOTriton's "flatzip": an ordinary ZIP whose members are stored, without ZIP64.  As its loader does,
 * find the end record, whose comment ends with the file, in the last 65,558 bytes.
 */
static kpack_error_t read_flatzip(const struct kp_source *source, struct facts *facts,
				  struct kpackx_error *why)
{
	enum { END = 22, TAIL = END + 65536 };
	size_t n = source->size < TAIL ? (size_t)source->size : TAIL, at;
	KP_AUTO_FREE uint8_t *tail = xmalloc(n);
	const uint8_t *end;
	uint64_t before;

	KP_TRY(kp_source_read(source, source->size - n, tail, n, why));
	for (at = n; at-- > 0;)
		if (kp_range_ok(n, at, END) && memcmp(tail + at, "PK\5\6", 4) == 0 &&
		    kp_le16(tail + at + 20) == n - at - END)
			break;
	if (at == SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zip: no end record in the last %zu bytes: cut short", n);
	end = tail + at;
	before = source->size - n + at;
	if (!kp_range_ok(before, kp_le32(end + 16), kp_le32(end + 12)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"zip: a directory of %u bytes at %u, but its end is at %llu",
			kp_le32(end + 12), kp_le32(end + 16), (unsigned long long)before);
	facts_number(facts, "members", kp_le16(end + 10));
	return KPACK_SUCCESS;
}

/* --- JSON ------------------------------------------------------------------------------- */

/* The JSON of SOURCE; *OUT is NULL if it has too many bytes, or is none. */
static kpack_error_t load_json(const struct kp_source *source, json_t **out,
			       struct kpackx_error *why)
{
	size_t n = source->size <= JSON_MAX ? (size_t)source->size : 0;
	KP_AUTO_FREE char *text = xmalloc(n + 1);
	json_error_t error;

	KP_TRY(kp_source_read(source, 0, text, n, why));
	*out = json_loadb(text, n, JSON_ALLOW_NUL, &error);
	if (!*out && json_error_code(&error) == json_error_out_of_memory)
		xalloc_fail(0);
	return KPACK_SUCCESS;
}

/* The bytes of a string; empty for another value. */
static struct kp_span text_of(const json_t *value)
{
	return (struct kp_span){(const uint8_t *)json_string_value(value),
				json_string_length(value)};
}

static void add_param(const char *name, const json_t *value, struct facts *params)
{
	struct kp_span text = kp_span_str(name);

	if (params->count >= PARAMS_MAX || text.size == 0 || text.size > NAME_MAX_BYTES ||
	    !kp_text_ok(text) || facts_has(params, name))
		return;
	if (json_is_integer(value))
		facts_signed(params, name, json_integer_value(value));
	else if (json_is_boolean(value))
		facts_flag(params, name, json_is_true(value));
	else
		facts_short(params, name, text_of(value), NAME_MAX_BYTES);
}

/* Add the signature and tuning parameters of Q's kernel, from NAME.json, if that exists. */
static kpack_error_t add_kernel(const struct library_question *q, struct facts *out,
				struct kpackx_error *why)
{
	static const char params_of[] = "num_warps num_stages num_ctas shared kpack "
					"waves_per_eu matrix_instr_nonkdim";
	KP_AUTO_FREE char *path = xasprintf(
		"%.*s.json", (int)(strlen(q->path) - strlen(".hsaco")), q->path);
	json_t *json = NULL, *value, *param;
	KP_AUTO(facts) params = {0};
	const char *name, *inner;
	struct file_bytes bytes;
	kpack_error_t err;
	size_t file;

	if (!file_tree_find(q->tree, path, &file))
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(q->tree, file, &bytes, why));
	err = load_json(&bytes.source, &json, why);
	file_bytes_close(&bytes);
	json_object_foreach(json, name, value)
	{
		struct kp_span text = kp_span_str(name);
		KP_AUTO(kp_compose) types = {0};
		bool fits = true;

		if (kp_span_is(text, "signature") && !facts_has(out, name)) {
			/* a text, or Triton's own: an object of each argument's type */
			facts_short(out, "signature", text_of(value), TEXT_MAX);
			json_object_foreach(value, inner, param)
			{
				struct kp_span s = text_of(param);

				fits &= s.size && kp_text_ok(s) &&
					types.size + s.size < TEXT_MAX;
				if (!fits)
					break;
				kp_compose_str(&types, types.size ? "," : "");
				kp_compose_span(&types, s);
			}
			if (fits)
				facts_short(out, "signature",
					    (struct kp_span){(uint8_t *)types.text,
							     types.size},
					    TEXT_MAX);
		} else if (json_is_object(value) &&
			   kp_span_is_one_of(text, "tuning_params constants kwargs")) {
			json_object_foreach(value, inner, param)
				add_param(inner, param, &params);
		} else if (kp_span_is_one_of(text, params_of) ||
			   (strncasecmp(name, "block_", 6) == 0 && name[6])) {
			add_param(name, value, &params);
		}
	}
	if (params.count)
		facts_map(out, "tuning_params", &params);
	json_decref(json);
	return err;
}

/* --- aotriton.images -------------------------------------------------------------------- */

/*
 * Add what the name of an .aks2 file says, "FONLY__*bf16@16_256_F_F_3_0___gfx942": the type is between a
 * star ('^', or U+FF0A since 0.10) and "@", alignment and choices follow it.  DEVICE gets what is
 * behind "___", a pack or a product; or nothing.
 */
static void add_signature_name(struct kp_span signature, struct facts *facts,
			       struct kp_span *device)
{
	static const char *const stars[] = {"\xef\xbc\x8a", "^", "*"};
	struct kp_span choices[CHOICES_MAX], before, after, type;
	size_t n = 0;

	*device = (struct kp_span){0};
	kp_span_split(signature, "___", &signature, device);
	facts_short(facts, "signature", signature, TEXT_MAX);
	if (kp_span_split(signature, "@", &before, &after)) {
		for (size_t i = 0; i < KP_COUNT(stars); i++)
			if (kp_span_split(before, stars[i], &type, &before)) {
				facts_short(facts, "datatype", before, TEXT_MAX);
				break;
			}
		while (after.size && after.size <= TEXT_MAX && n < CHOICES_MAX &&
		       kp_text_ok(after))
			choices[n++] = kp_span_word(&after, "_,");
		if (n)
			facts_texts(facts, "tuning_params", choices, n);
	}
	facts_short(facts, "device", *device, TEXT_MAX);
}

static kpack_error_t check_image(struct library_question *q, struct kp_span rest,
				 struct kpackx_error *why)
{
	struct library_object *out = &q->out;
	struct kp_span first = path_component(rest, 0), name = path_name(q->path), device;
	size_t depth = path_depth(rest);
	struct kpackx_error fault = {0};
	struct pack pack = {0}, named;
	KP_AUTO(content) c = {0};
	json_t *json, *value;
	const char *key;
	kpack_error_t err;
	bool agrees;

	/* "amd-common", and any other name than "amd-gfx...", is for every GPU */
	if (depth > 1 && kp_span_take(&first, "amd-"))
		pack = pack_named(first);
	KP_TRY(content_look(q, &c, why));
	/* for all GPUs of its family, unless the content states GPUs */
	if (*pack.family && c.n_arches == 0) {
		if (*c.container)
			facts_string(&out->facts, "container", c.container);
		for (size_t i = 0; i < pack.n_arches; i++)
			library_add_arch(out, pack.arches[i]);
		memcpy(out->family, pack.family, sizeof(out->family));
	} else {
		arch_settle(&c, *pack.family || !pack.n_arches ? "" : pack.arches[0],
			    out);
	}
	if (pack.n_arches)
		facts_short(&out->facts, "pack", first, TEXT_MAX);
	if (pack.unknown)
		library_warn(out,
			     "no GPU that is known is in amd-%.*s: packed for every GPU",
			     (int)first.size, (const char *)first.data);
	if (kp_span_take_end(&name, ".aks2")) {
		out->role = "kernel";
		if (depth > 2)
			facts_short(&out->facts, "operation",
				    path_component(rest, depth - 2), TEXT_MAX);
		add_signature_name(name, &out->facts, &device);
		/* since 0.10 a kernel's name ends with its pack */
		named = pack_named(device);
		agrees = pack.n_arches == 0 || named.n_arches == 0;
		for (size_t i = 0; i < pack.n_arches; i++)
			for (size_t k = 0; k < named.n_arches; k++)
				agrees |= arch_agrees(pack.arches[i], named.arches[k]);
		if (!out->warning && !agrees)
			library_warn(out, "named for %.*s, but it is in the pack of %s",
				     (int)device.size, (const char *)device.data,
				     *pack.family ? pack.family : pack.arches[0]);
		err = read_aks2(q->source, &out->facts, &fault);
	} else if (kp_span_take_end(&name, ".zip")) {
		out->role = "kernel";
		out->at_random = true;
		facts_short(&out->facts, "operation", name, TEXT_MAX);
		err = read_flatzip(q->source, &out->facts, &fault);
	} else if (kp_span_ends(kp_span_str(q->path), "/__signature__")) {
		/* the versions, under the names they have there */
		out->role = "signature";
		KP_TRY(load_json(q->source, &json, why));
		json_object_foreach(json, key, value)
		{
			if (kp_span_is_one_of(kp_span_str(key),
					      "AOTRITON_GIT_SHA1 AOTRITON_GIT_TREESHA1 "
					      "DB_SHA256 TRITON_VERSION") &&
			    !facts_has(&out->facts, key))
				facts_short(&out->facts, key, text_of(value), TEXT_MAX);
		}
		json_decref(json);
		return KPACK_SUCCESS;
	} else {
		return KPACK_SUCCESS;
	}
	if (err == KPACK_ERROR_INVALID_FORMAT)
		library_warn(out, "packed as it is: %s", fault.text);
	else if (err)
		*why = fault;
	return err == KPACK_ERROR_INVALID_FORMAT ? KPACK_SUCCESS : err;
}

/* --- aotriton/kernels ------------------------------------------------------------------- */

static bool in_kernels(const char *path, struct kp_span *rest, char *arch)
{
	return path_below(path, KERNELS, rest) && path_depth(*rest) > 1 &&
	       arch_of_directory(path_component(*rest, 0), arch, NULL);
}

static bool aotriton_probe(const struct library_question *q)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span rest;

	return path_below(q->path, IMAGES, &rest) || in_kernels(q->path, &rest, arch);
}

static kpack_error_t aotriton_check(struct library_question *q, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX], named[KP_TARGET_TEXT_MAX];
	struct library_object *out = &q->out;
	struct kp_span rest;

	q->mine = strcmp(content_container(q), "host-elf") != 0;
	if (!q->mine)
		return KPACK_SUCCESS;
	if (path_below(q->path, IMAGES, &rest))
		return check_image(q, rest, why);
	in_kernels(q->path, &rest, arch);
	arch_named(q->path, arch, named, out);
	KP_TRY(arch_decide(q, named, why));
	if (!kp_span_ends(rest, ".hsaco"))
		return KPACK_SUCCESS;
	out->role = "kernel";
	kp_span_word(&rest, "/");
	if (!kp_span_take_end(&rest, ".hsaco"))
		return KPACK_SUCCESS;
	facts_short(&out->facts, "operation", rest, TEXT_MAX);
	library_add_key(out, (struct facts){0}, "aotriton/%s/%.*s", arch, (int)rest.size,
			(const char *)rest.data);
	return add_kernel(q, &out->facts, why);
}

const struct library library_aotriton = {
	.name = "aotriton", .probe = aotriton_probe, .check = aotriton_check};
