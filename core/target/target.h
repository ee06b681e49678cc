/* SPDX-License-Identifier: MIT */
/*
 * Target IDs: a processor and its features, "gfx90a:sramecc+:xnack-".
 * Sources: LLVM's AMDGPU usage document (target IDs, EF_AMDGPU_MACH) and, for
 * numbers newer than LLVM 22, LLVM's later ELF header tests.
 */
#ifndef KP_CORE_TARGET_TARGET_H
#define KP_CORE_TARGET_TARGET_H

#include "core/base/errors.h"
#include "core/base/span.h"

enum kp_feature {
	KP_FEATURE_ANY, /* unstated: runs with the feature on or off */
	KP_FEATURE_OFF, /* "xnack-" */
	KP_FEATURE_ON,  /* "xnack+" */
};

/* Whether one of them is on and the other off. */
bool kp_features_contradict(enum kp_feature a, enum kp_feature b);

/* One row of the processor table. */
struct kp_processor {
	const char *name; /* primary name, "gfx90a" */
	uint8_t mach;     /* EF_AMDGPU_MACH value */
	bool xnack;       /* a target ID can state xnack */
	bool sramecc;
};

/* A parsed target ID. */
struct kp_target {
	char processor[32];               /* primary name; unknown names verbatim */
	const struct kp_processor *known; /* NULL: not in the table */
	enum kp_feature sramecc, xnack;
};

#define KP_TARGET_TEXT_MAX 64

/*
 * Parse a target ID: processor name or alias, features in any order, each at most
 * once, each with its sign; also Tensile's "gfx90a-xnack+".  An unknown processor is kept
 * verbatim, with both features allowed, if it has at most 31 characters, all of them
 * [A-Za-z0-9_.-]; examples are sm_NN, compute_NN and amdgcnspirv.
 * INVALID_ARGUMENT, with the reason: an empty or too long name, a known name in another
 * case, an unknown or repeated feature, a missing sign, a feature the processor does not
 * have.
 */
kpack_error_t kp_target_parse(struct kp_span text, struct kp_target *out,
			      struct kpackx_error *why);

/* Canonical text: primary name, sramecc before xnack, unstated features omitted. */
void kp_target_format(const struct kp_target *t, char out[KP_TARGET_TEXT_MAX]);

/*
 * Canonical spelling of TEXT, or TEXT itself, cut to 63 bytes, if it is no target ID.
 * Callers with longer texts that are no target IDs use kp_target_parse.
 */
void kp_target_canonical(struct kp_span text, char out[KP_TARGET_TEXT_MAX]);

bool kp_target_eq(const struct kp_target *a, const struct kp_target *b);

/*
 * Whether a code object built for CODE can run where WANT is requested: same processor,
 * and WANT states every feature that CODE states in the same way (LLVM's bundler rule).
 */
bool kp_target_compatible(const struct kp_target *code, const struct kp_target *want);

/* The architecture of files that suit every GPU. */
#define KP_ARCH_GENERIC "generic"

/* The architecture of SPIR-V for AMD GPUs. */
#define KP_ARCH_SPIRV "amdgcnspirv"

/* Whether T is "generic", the architecture of files that suit every GPU. */
bool kp_target_neutral(const struct kp_target *t);

/*
 * How code fits a GPU whose unstated features may be on or off, from nothing to the same
 * target ID.  A feature that both state differently always is KP_FIT_NONE.
 */
enum kp_fit {
	KP_FIT_NONE,
	KP_FIT_NEUTRAL,  /* suits every GPU */
	KP_FIT_SPIRV,    /* SPIR-V for AMD GPUs: compiled for the GPU when it is loaded */
	KP_FIT_GENERIC,  /* for the generic target that covers the GPU's processor */
	KP_FIT_FEATURES, /* for its processor, of any stepping (gfx1250-strict) */
	KP_FIT_EXACT,    /* the same target ID */
};

enum kp_fit kp_target_fit(const struct kp_target *gpu, const struct kp_target *code);

/* Whether GPU can load code for CODE: it fits in any way. */
bool kp_target_loadable(const struct kp_target *gpu, const struct kp_target *code);

/*
 * The GPUs that T can mean: T with each unstated feature of its processor on, and off.
 * Returns how many there are.
 */
#define KP_TARGET_SETTINGS 4
size_t kp_target_settings(const struct kp_target *t,
			  struct kp_target out[KP_TARGET_SETTINGS]);

/* PROCESSOR without a stepping's suffix: drivers call gfx1250-strict gfx1250, too. */
struct kp_span kp_processor_model(struct kp_span processor);

/* The table row of a name or alias; NULL: unknown. */
const struct kp_processor *kp_processor_by_name(struct kp_span name);

/* All rows, for listings and tests. */
const struct kp_processor *kp_processor_table(size_t *count);

/*
 * The generic target that covers a processor ("gfx1100" -> "gfx11-generic"); NULL: none.
 * A table lists the members; they are never derived from digits.
 */
const char *kp_processor_generic(struct kp_span processor);

/* Members of a generic target, NULL-terminated; NULL: NAME is not a generic target. */
const char *const *kp_generic_members(struct kp_span name);

/*
 * Target ID of an AMDGPU code object from its ELF header: EI_ABIVERSION (1 = code
 * object v3 ... 4 = v6) and e_flags.  An unknown mach is "mach-0xNN".
 * Feature bits that a target ID cannot state for the processor are omitted (gfx1250).
 * NOT_IMPLEMENTED: an ABI version without the processor in e_flags (v2), or a newer one.
 */
kpack_error_t kp_target_from_elf_flags(uint8_t abi_version, uint32_t e_flags,
				       struct kp_target *out, struct kpackx_error *why);

/* Parts of a bundle entry ID; spans borrow from the ID. */
struct kp_entry_id {
	struct kp_span
		kind; /* hip, hipv4, openmp ... verbatim; "host": the host's entry */
	struct kp_span triple; /* with the environment only if the ID has one */
	struct kp_span target; /* target ID, may be empty */
};

/*
 * Split a bundle entry ID in any of the four spellings in use:
 *   hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+   hip-amdgcn-amd-amdhsa-gfx900
 *   hip-amdgcn-amd-amdhsa-unknown-gfx1100    host-x86_64-unknown-linux-gnu-
 * The triple of the third spelling is amdgcn-amd-amdhsa-unknown; that of the first two is
 * amdgcn-amd-amdhsa.  false: no '-' at all, or an empty kind.
 */
bool kp_entry_id_parse(struct kp_span id, struct kp_entry_id *out);

#endif
