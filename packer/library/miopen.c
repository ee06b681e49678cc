/* SPDX-License-Identifier: MIT */
/*
 * MIOpen and Composable Kernel.
 *
 * MIOpen's are all files below miopen/db:
 *
 *   gfx942130.db.txt             gfx942, 0x130 = 304 compute units
 *   gfx90878.HIP.fdb.txt         gfx908, 0x78 = 120
 *   gfx1030_36.kdb               gfx1030, 36
 *   gfx906_nosramecc_60.db.txt   gfx906:sramecc-, 60
 *   gfx942_metadata.tn.model     gfx942
 *
 * MIOpen looks for the file with its GPU and number of compute units in the name; if
 * there is none, it searches the whole directory for the nearest number.  Its models are for
 * the GPU in their name, but for those of gfx908.
 *
 * Libraries of Composable Kernel are for one GPU, anywhere in the tree: MIOpen's are fat host
 * libraries, [lib]MIOpenCK<word>_<arch>.so, .so.1 or .dll; they are stored whole, with their code
 * inside, because MIOpen loads the library of its GPU with dlopen.  Static libraries of device code
 * are libdevice_conv_operations_<arch>.a and libMIOpenCK<word>_<arch>.a; those without a GPU are
 * for all GPUs, and nobody's.
 */
#include "arch_name.h"
#include "sqlite.h"

static const char DB[] = "miopen/db", STRICT[] = "-strict";

/* --- Composable Kernel ------------------------------------------------------------------ */

struct ck_name {
	char arch[KP_TARGET_TEXT_MAX]; /* canonical */
	struct kp_span variant;        /* "gfx1250-strict"; or empty */
};

/* Take a separator and WORD after it. */
static bool take_part(struct kp_span *rest, const char *word)
{
	struct kp_span next = *rest;

	if ((!kp_span_take(&next, "-") && !kp_span_take(&next, "_") &&
	     !kp_span_take(&next, ":")) ||
	    !kp_span_take(&next, word))
		return false;
	*rest = next;
	return true;
}

/* CMake replaces '+' by 'p', '-' and ':' by '_'.  Without a sign the feature is on. */
static enum kp_feature take_sign(struct kp_span *rest)
{
	if (kp_span_take(rest, "-") || kp_span_take(rest, "_"))
		return KP_FEATURE_OFF;
	if (!kp_span_take(rest, "+"))
		kp_span_take(rest, "p");
	return KP_FEATURE_ON;
}

/*
 * Read TEXT as a target ID in any spelling in use: gfx942, gfx90a-xnack+, gfx90a:xnack-,
 * and CMake's spellings gfx90a_xnackp, gfx90a_sramecc__xnack_, gfx11_generic,
 * gfx1250_strict.  An unknown processor is not accepted, because nothing says where its name
 * would end.
 */
static bool ck_target(struct kp_span text, struct ck_name *out)
{
	struct kp_span rest = text;
	struct kp_target t = {0};
	char name[sizeof(t.processor)];
	size_t n = text.size < sizeof(name) ? text.size : sizeof(name), model;

	for (size_t i = 0; i < n; i++)
		name[i] = text.data[i] == '_' ? '-' : (char)text.data[i];
	for (; n > 3 && !t.known; n--) {
		t.known = kp_processor_by_name((struct kp_span){(uint8_t *)name, n});
		rest = kp_span_tail(text, n);
	}
	if (!t.known || strncmp(name, "gfx", 3) != 0)
		return false;
	n = strlen(t.known->name);
	model = kp_processor_model(kp_span_str(t.known->name)).size;
	memcpy(t.processor, t.known->name, model);
	*out = (struct ck_name){0};
	if (model < n || take_part(&rest, "strict"))
		out->variant = text;
	while (rest.size) {
		if (t.sramecc == KP_FEATURE_ANY && take_part(&rest, "sramecc"))
			t.sramecc = take_sign(&rest);
		else if (t.xnack == KP_FEATURE_ANY && take_part(&rest, "xnack"))
			t.xnack = take_sign(&rest);
		else
			return false;
	}
	if ((!t.known->xnack && t.xnack != KP_FEATURE_ANY) ||
	    (!t.known->sramecc && t.sramecc != KP_FEATURE_ANY))
		return false;
	kp_target_format(&t, out->arch);
	return true;
}

/* Read NAME, a library's without its ending, which begins with "lib" and PREFIX. */
static bool ck_library(struct kp_span name, const char *prefix, struct ck_name *out)
{
	struct kp_span before, after;

	kp_span_take(&name, "lib");
	if (!kp_span_begins(name, prefix) ||
	    !kp_span_split(name, "_gfx", &before, &after))
		return false;
	return ck_target(kp_span_tail(name, before.size + 1), out);
}

/* Whether PATH has the name of a host library: .so, with or without version numbers, or .dll. */
static bool ck_host_library(const char *path, struct ck_name *out)
{
	struct kp_span name = path_name(path), versions;
	size_t n = name.size;

	if (!kp_span_take_end(&name, ".dll")) {
		while (n && strchr("0123456789.", name.data[n - 1]))
			n--;
		versions = kp_span_tail(name, n);
		name.size = n;
		if ((versions.size && (versions.size == 1 || versions.data[0] != '.')) ||
		    !kp_span_take_end(&name, ".so"))
			return false;
	}
	return ck_library(name, "MIOpenCK", out);
}

static bool ck_static_library(const char *path, struct ck_name *out)
{
	struct kp_span name = path_name(path);

	return (kp_span_take_end(&name, ".a") || kp_span_take_end(&name, ".lib")) &&
	       (ck_library(name, "device_conv_operations_", out) ||
		ck_library(name, "MIOpenCK", out));
}

static bool ck_probe(const struct library_question *q)
{
	struct ck_name name;

	return ck_static_library(q->path, &name);
}

static kpack_error_t ck_check(struct library_question *q, struct kpackx_error *why)
{
	struct library_object *out = &q->out;
	struct ck_name name;

	(void)why;
	if (q->head_size < 8 || memcmp(q->head, "!<arch>\n", 8) != 0 ||
	    !ck_static_library(q->path, &name))
		return KPACK_SUCCESS;
	q->mine = true;
	out->role = "archive";
	facts_string(&out->facts, "container", "ar");
	if (name.variant.size)
		facts_text(&out->facts, "variant", name.variant);
	library_add_arch(out, name.arch);
	return KPACK_SUCCESS;
}

const struct library library_composablekernel = {
	.name = "composablekernel", .probe = ck_probe, .check = ck_check};

/* --- the names of MIOpen's databases ---------------------------------------------------- */

struct miopen_name {
	char arch[KP_TARGET_TEXT_MAX]; /* canonical; or "" */
	struct kp_span db_id;          /* "gfx906_nosramecc"; or empty */
	struct kp_span variant;        /* "gfx1250-strict"; or empty */
	unsigned cu_count;             /* 0: not stated */
	const char *role;              /* "perf", "find", "kernels", "model", "file" */
	const char *backend;           /* "HIP", "OpenCL", or NULL */
};

/* "_60" is decimal, "130" right after the DbId is hexadecimal; then '.' or the end. */
static unsigned read_cu_count(struct kp_span rest)
{
	unsigned base = kp_span_take(&rest, "_") ? 10 : 16, count = 0;
	size_t n = 0;

	for (; n < rest.size; n++) {
		unsigned char c = rest.data[n];
		unsigned digit = 16;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		if (digit >= base)
			break;
		if (n == 4)
			return 0;
		count = count * base + digit;
	}
	return n < rest.size && rest.data[n] != '.' ? 0 : count;
}

static struct miopen_name miopen_name(struct kp_span text)
{
	static const struct {
		const char *end, *role, *backend;
	} kinds[] = {
		{".HIP.fdb.txt", "find", "HIP"}, {".OpenCL.fdb.txt", "find", "OpenCL"},
		{".fdb.txt", "find", NULL},      {".db.txt", "perf", NULL},
		{".db", "perf", NULL},           {".kdb", "kernels", NULL},
		{".model", "model", NULL},
	};
	/*
	 * MIOpen adds "_nosramecc" if sramecc is on by default for the processor but off,
	 * "_sramecc" if it is off by default but on, and "_xnack" if xnack is on.  Without a word
	 * the feature has its default, for which a target ID states nothing.
	 */
	static const struct {
		const char *word;
		bool sramecc; /* else xnack */
		enum kp_feature state;
	} words[] = {
		{"_nosramecc", true, KP_FEATURE_OFF},
		{"_sramecc", true, KP_FEATURE_ON},
		{"_noxnack", false, KP_FEATURE_OFF},
		{"_xnack", false, KP_FEATURE_ON},
	};
	size_t n_processors, size = 0;
	const struct kp_processor *table = kp_processor_table(&n_processors);
	struct miopen_name out = {.role = "file"};
	struct kp_target t = {0};
	struct kp_span rest = text;

	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (kp_span_take_end(&rest, kinds[i].end)) {
			out.role = kinds[i].role;
			out.backend = kinds[i].backend;
			break;
		}
	/* the longest processor, without its stepping */
	for (size_t i = 0; i < n_processors; i++) {
		const char *name = table[i].name;

		if (strlen(name) > size && kp_span_begins(text, name) &&
		    strncmp(name, "gfx", 3) == 0 && !strstr(name, STRICT)) {
			size = strlen(name);
			t.known = &table[i];
		}
	}
	if (!t.known)
		return out;
	memcpy(t.processor, text.data, size);
	rest = kp_span_tail(text, size);
	if (kp_span_take(&rest, STRICT))
		out.variant = kp_span_head(text, (size_t)(rest.data - text.data));
	for (int pass = 0; pass < 2; pass++) /* in any order */
		for (size_t i = 0; i < KP_COUNT(words); i++) {
			enum kp_feature *f = words[i].sramecc ? &t.sramecc : &t.xnack;

			if (*f == KP_FEATURE_ANY && kp_span_take(&rest, words[i].word))
				*f = words[i].state;
		}
	/* a target ID cannot state each feature; the DbId keeps it */
	if (!t.known->sramecc)
		t.sramecc = KP_FEATURE_ANY;
	if (!t.known->xnack)
		t.xnack = KP_FEATURE_ANY;
	kp_target_format(&t, out.arch);
	out.db_id = kp_span_head(text, (size_t)(rest.data - text.data));
	out.cu_count = read_cu_count(rest);
	return out;
}

/* --- MIOpen's files --------------------------------------------------------------------- */

static bool miopen_probe(const struct library_question *q)
{
	struct kp_span rest;
	struct ck_name ck;

	return path_below(q->path, DB, &rest) || ck_host_library(q->path, &ck);
}

static kpack_error_t miopen_check(struct library_question *q, struct kpackx_error *why)
{
	bool elf = strcmp(content_container(q), "host-elf") == 0, kernels, known;
	struct library_object *out = &q->out;
	struct kp_span rest, text = path_name(q->path);
	char named[KP_TARGET_TEXT_MAX] = "";
	struct miopen_name name;
	struct ck_name ck;

	/* a library of Composable Kernel, which is stored with its code */
	if (ck_host_library(q->path, &ck)) {
		q->mine = elf || (q->head_size > 2 && memcmp(q->head, "MZ", 2) == 0);
		if (!q->mine)
			return KPACK_SUCCESS;
		out->role = "library";
		if (elf) {
			KP_TRY(arch_decide_fat(q, ck.arch, why));
		} else {
			facts_string(&out->facts, "container", "dll");
			library_add_arch(out, ck.arch);
		}
		if (ck.variant.size)
			facts_text(&out->facts, "variant", ck.variant);
		return KPACK_SUCCESS;
	}
	q->mine = path_below(q->path, DB, &rest) && !elf;
	if (!q->mine)
		return KPACK_SUCCESS;
	name = miopen_name(text);
	kernels = strcmp(name.role, "kernels") == 0;
	out->role = name.role;
	out->at_random = kernels || (text.size > 3 && kp_span_ends(text, ".db"));
	if (kernels && !q->plain && q->source->size < MIOPEN_KDB_MIN)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "kernel database: %llu bytes, MIOpen reads none below %d: "
			       "cut short, or remove it",
			       (unsigned long long)q->source->size, MIOPEN_KDB_MIN);
	if (out->at_random && !q->plain)
		KP_TRY(sqlite_header_check(q->source, why));

	/* by its models for gfx908 MIOpen chooses solvers on each GPU that has none of its own */
	if (!kp_span_is_one_of(text, "gfx908.tn.model gfx908_metadata.tn.model")) {
		known = *name.arch;
		if (known)
			memcpy(named, name.arch, sizeof(named));
		else
			known = arch_of_name(text, named) ||
				(path_depth(rest) > 1 &&
				 arch_of_directory(path_component(rest, 0), named, NULL));
		KP_TRY(arch_decide(q, known ? named : "", why));
		if (!known && arch_in_path((const char *)text.data))
			library_warn(out, "no GPU that is known is in its name: "
					  "packed for every GPU");
	} else {
		KP_TRY(arch_decide(q, "", why));
	}

	if (name.variant.size)
		facts_text(&out->facts, "variant", name.variant);
	if (name.db_id.size)
		facts_text(&out->facts, "db_id", name.db_id);
	if (name.cu_count)
		facts_number(&out->facts, "cu_count", name.cu_count);
	if (strcmp(name.role, "file") != 0)
		facts_string(&out->facts, "kind", name.role);
	if (name.backend)
		facts_string(&out->facts, "backend", name.backend);
	return KPACK_SUCCESS;
}

const struct library library_miopen = {
	.name = "miopen", .probe = miopen_probe, .check = miopen_check};
