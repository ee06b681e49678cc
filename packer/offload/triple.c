/* SPDX-License-Identifier: MIT */
/*
 * LLVM recognizes the parts of a triple by their names or by how the names begin, and
 * moves them to their places: "x86_64-linux-gnu" is x86_64-unknown-linux-gnu.
 */
#include "triple.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"

/* Places for parts: a part that is pushed off the end moves to the places behind it. */
#define ROOM (2 * TRIPLE_PARTS + 1)

/* Architectures; the names in one line mean the same. */
static const char *const archs[] = {
	"amdgcn",
	"x86_64 amd64 x86_64h",
	"nvptx64",
	"nvptx",
	"spirv64",
	"spirv32",
	"spirv",
	"aarch64 arm64",
	"aarch64_be",
	"aarch64_32 arm64_32",
	"arm64e",
	"arm64ec",
	"i386 i486 i586 i686 i786 i886 i986",
	"powerpc64le ppc64le",
	"powerpc64 ppc64 ppu",
	"powerpcle ppcle ppc32le",
	"powerpc ppc ppc32",
	"powerpcspe",
	"riscv64",
	"riscv32",
	"riscv64be",
	"riscv32be",
	"loongarch64",
	"loongarch32",
	"s390x systemz",
	"arm",
	"armeb",
	"thumb",
	"thumbeb",
	"xscale",
	"xscaleeb",
	"mips mipseb mipsallegrex",
	"mipsisa32r6 mipsr6",
	"mipsel mipsallegrexel",
	"mipsisa32r6el mipsr6el",
	"mips64 mips64eb mipsn32",
	"mipsisa64r6 mips64r6 mipsn32r6",
	"mips64el mipsn32el",
	"mipsisa64r6el mips64r6el mipsn32r6el",
	"sparc",
	"sparcel",
	"sparcv9 sparc64",
	"wasm32",
	"wasm64",
	"hexagon",
	"avr",
	"arc",
	"m68k",
	"msp430",
	"csky",
	"xtensa",
	"ve",
	"lanai",
	"xcore",
	"shave",
	"tce",
	"tcele",
	"r600",
	"amdil",
	"amdil64",
	"hsail",
	"hsail64",
	"spir",
	"spir64",
	"renderscript32",
	"renderscript64",
	"bpf bpfel bpf_le",
	"bpfeb bpf_be",
	"dxil",
};

/*
 * Architectures with versions: a name begins with one of these and goes on with a digit.
 */
static const char *const versioned_archs[] = {
	"armv",     "armebv",   "thumbv", "thumbebv", "kalimba",
	"spirv32v", "spirv64v", "spirv1", "dxilv",
};

static const char *const vendors[] = {
	"apple",  "pc",  "scei sie", "fsl",  "ibm",  "img", "mti",
	"nvidia", "csr", "amd",      "mesa", "suse", "oe",  "intel",
};

/*
 * Systems and environments are recognized by their beginnings; longer names come first.
 */
static const char *const systems[] = {
	"darwin",      "dragonfly",
	"freebsd",     "fuchsia",
	"ios",         "kfreebsd",
	"linux",       "lv2",
	"macos",       "netbsd",
	"openbsd",     "solaris",
	"uefi",        "win32 windows mingw cygwin",
	"zos",         "haiku",
	"rtems",       "nacl",
	"aix",         "cuda",
	"nvcl",        "amdhsa",
	"ps4",         "ps5",
	"elfiamcu",    "tvos",
	"watchos",     "bridgeos",
	"driverkit",   "xros visionos",
	"mesa3d",      "amdpal",
	"hermit",      "hurd",
	"wasi",        "emscripten",
	"shadermodel", "liteos",
	"serenity",    "vulkan",
};

static const char *const environments[] = {
	"eabihf",        "eabi",       "gnuabin32",  "gnuabi64",      "gnueabihft64",
	"gnueabihf",     "gnueabit64", "gnueabi",    "gnuf32",        "gnuf64",
	"gnusf",         "gnux32",     "gnu_ilp32",  "code16",        "gnut64",
	"gnu",           "android",    "muslabin32", "muslabi64",     "musleabihf",
	"musleabi",      "muslf32",    "muslsf",     "muslx32",       "musl",
	"msvc",          "itanium",    "cygnus",     "coreclr",       "simulator",
	"macabi",        "pixel",      "vertex",     "geometry",      "hull",
	"domain",        "compute",    "library",    "raygeneration", "intersection",
	"anyhit",        "closesthit", "miss",       "callable",      "mesh",
	"amplification", "opencl",     "ohos",       "pauthtest",     "llvm",
	"mlibc",
};

static bool name_starts(struct kp_span s, const char *with)
{
	return kp_span_starts(s, with, strlen(with));
}

/* Whether NAME (or, if WHOLE is false, its beginning) is one of the words of LINE. */
static bool in_line(struct kp_span name, const char *line, bool whole)
{
	size_t n;

	for (; *line; line += n + (line[n] == ' ')) {
		n = strcspn(line, " ");
		if (kp_span_starts(name, line, n) && (!whole || name.size == n))
			return true;
	}
	return false;
}

/* The number of the line that has NAME, counted from 1; 0: none. */
static size_t find_line(struct kp_span name, const char *const *lines, size_t n,
			bool whole)
{
	for (size_t i = 0; i < n; i++)
		if (in_line(name, lines[i], whole))
			return i + 1;
	return 0;
}

static bool is_versioned_arch(struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(versioned_archs); i++) {
		size_t n = strlen(versioned_archs[i]);

		if (name_starts(name, versioned_archs[i]) && name.size > n &&
		    memchr("0123456789.", name.data[n], 11))
			return true;
	}
	return false;
}

/*
 * A number for NAME as part PART, equal for names that mean the same; 0: unknown as PART.
 */
static size_t part_number(int part, struct kp_span name)
{
	switch (part) {
	case TRIPLE_ARCH:
		return is_versioned_arch(name)
			       ? KP_COUNT(archs) + 1
			       : find_line(name, archs, KP_COUNT(archs), true);
	case TRIPLE_VENDOR:
		return find_line(name, vendors, KP_COUNT(vendors), true);
	case TRIPLE_OS:
		return find_line(name, systems, KP_COUNT(systems), false);
	default:
		return find_line(name, environments, KP_COUNT(environments), false);
	}
}

struct triple triple_split(struct kp_span text)
{
	struct triple t = {0};
	const uint8_t *dash;

	for (int i = 0; i < TRIPLE_PARTS; i++) {
		dash = i < TRIPLE_ENV && text.size ? memchr(text.data, '-', text.size)
						   : NULL;
		if (!dash) {
			t.part[i] = text;
			break;
		}
		t.part[i] = kp_span_head(text, (size_t)(dash - text.data));
		text = kp_span_tail(text, t.part[i].size + 1);
	}
	return t;
}

bool triple_known(const struct triple *t)
{
	return part_number(TRIPLE_ARCH, t->part[TRIPLE_ARCH]) != 0;
}

/* ---- normal form ---- */

/* Parts on their way to their places; a part that is FIXED has arrived. */
struct order {
	struct kp_span part[ROOM];
	bool fixed[ROOM];
};

static struct kp_span swap_part(struct kp_span *place, struct kp_span s)
{
	struct kp_span before = *place;

	*place = s;
	return before;
}

static size_t next_free(const struct order *o, size_t i)
{
	while (o->fixed[i])
		i++;
	return i;
}

/* Put S at AT and push the parts from there to the right, until a place is empty. */
static void push_part(struct order *o, size_t at, struct kp_span s)
{
	for (at = next_free(o, at); at < ROOM; at = next_free(o, at + 1)) {
		s = swap_part(&o->part[at], s);
		if (s.size == 0 || at + 1 == ROOM)
			return;
	}
}

/* Move the part at FROM to TO. */
static void move_part(struct order *o, size_t from, size_t to)
{
	struct kp_span none = {NULL, 0};

	if (to < from) {
		push_part(o, to, swap_part(&o->part[from], none));
		return;
	}
	while (from < to) {
		push_part(o, from, none);
		from = next_free(o, from + 1);
	}
}

/* Whether S ends with a format of objects, which is enough for an environment. */
static bool names_format(struct kp_span s)
{
	static const char *const formats[] = {"coff",  "elf",  "goff",
					      "macho", "wasm", "spirv"};

	for (size_t i = 0; i < KP_COUNT(formats); i++)
		if (kp_span_ends(s, formats[i]))
			return true;
	return false;
}

static bool fits_part(int part, struct kp_span s)
{
	return part_number(part, s) != 0 || (part == TRIPLE_ENV && names_format(s));
}

static void sort_parts(struct order *o)
{
	for (int to = 0; to < TRIPLE_PARTS; to++)
		o->fixed[to] = part_number(to, o->part[to]) != 0;
	for (int to = 0; to < TRIPLE_PARTS; to++) {
		for (size_t from = 0; from + 1 < ROOM && !o->fixed[to]; from++) {
			if ((from < TRIPLE_PARTS && o->fixed[from]) ||
			    !fits_part(to, o->part[from]))
				continue;
			move_part(o, from, (size_t)to);
			o->fixed[to] = true;
		}
	}
}

/*
 * Replace spellings of the environment that stand for another; OUT is room for a new one.
 */
static void settle_environment(struct order *o, char *out, size_t cap)
{
	struct kp_span *os = &o->part[TRIPLE_OS], *env = &o->part[TRIPLE_ENV];

	if (kp_span_is(o->part[TRIPLE_VENDOR], "suse") && name_starts(*env, "gnueabi") &&
	    !name_starts(*env, "gnueabihf"))
		*env = kp_span_str("gnueabihf");
	if (name_starts(*env, "androideabi")) {
		snprintf(out, cap, "android%.*s", (int)(env->size - 11),
			 (const char *)env->data + 11);
		*env = kp_span_str(out);
	}
	if (name_starts(*os, "mingw"))
		*env = kp_span_str("gnu");
	else if (name_starts(*os, "cygwin"))
		*env = kp_span_str("cygnus");
	else if (name_starts(*os, "win") &&
		 (!fits_part(TRIPLE_ENV, *env) || kp_span_ends(*env, "coff")))
		*env = kp_span_str("msvc");
	if (in_line(*os, "win32 windows mingw cygwin", false))
		*os = kp_span_str("windows");
}

static bool is_hsa(const struct triple *t)
{
	return name_starts(t->part[TRIPLE_OS], "amdhsa");
}

char *triple_normal(const struct triple *t)
{
	struct order o = {0};
	char environment[64];

	memcpy(o.part, t->part, sizeof(t->part));
	sort_parts(&o);
	/* "none" on bare metal is the system, not the vendor */
	if (o.fixed[TRIPLE_ARCH] && !o.fixed[TRIPLE_VENDOR] && !o.fixed[TRIPLE_OS] &&
	    o.fixed[TRIPLE_ENV] && kp_span_is(o.part[TRIPLE_VENDOR], "none") &&
	    o.part[TRIPLE_OS].size == 0)
		o.part[TRIPLE_VENDOR] =
			swap_part(&o.part[TRIPLE_OS], o.part[TRIPLE_VENDOR]);
	settle_environment(&o, environment, sizeof(environment));
	for (int i = 0; i < TRIPLE_PARTS; i++)
		if (o.part[i].size == 0)
			o.part[i] = kp_span_str("unknown");
	if (is_hsa(t))
		o.part[TRIPLE_ENV].size = 0;
	return xasprintf("%.*s-%.*s-%.*s-%.*s", (int)o.part[0].size,
			 (const char *)o.part[0].data, (int)o.part[1].size,
			 (const char *)o.part[1].data, (int)o.part[2].size,
			 (const char *)o.part[2].data, (int)o.part[3].size,
			 (const char *)o.part[3].data);
}

/* ---- comparison ---- */

static bool same_arch(struct kp_span a, struct kp_span b)
{
	return is_versioned_arch(a) || is_versioned_arch(b)
		       ? kp_span_eq(a, b)
		       : part_number(TRIPLE_ARCH, a) == part_number(TRIPLE_ARCH, b);
}

static bool same_part(int part, const struct triple *a, const struct triple *b)
{
	return part_number(part, a->part[part]) == part_number(part, b->part[part]);
}

bool triple_compatible(const struct triple *a, const struct triple *b)
{
	/*
	 * compilers for MinGW disagree about the vendor; Apple's versions do not matter
	 */
	bool mingw = name_starts(a->part[TRIPLE_OS], "windows") &&
		     name_starts(a->part[TRIPLE_ENV], "gnu");
	bool apple = kp_span_is(a->part[TRIPLE_VENDOR], "apple");

	return same_arch(a->part[TRIPLE_ARCH], b->part[TRIPLE_ARCH]) &&
	       (mingw || same_part(TRIPLE_VENDOR, a, b)) && same_part(TRIPLE_OS, a, b) &&
	       (apple || same_part(TRIPLE_ENV, a, b));
}
