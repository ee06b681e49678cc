/* SPDX-License-Identifier: MIT */
/*
 * Target IDs, "gfx90a:sramecc+:xnack-": parsing, and which code loads on which GPU; and where they
 * stand in ELF flags and in the IDs of bundle entries.
 *
 *	TARGET   = PROCESSOR [ (":" | "-") FEATURE ("+" | "-") ]...
 *	ENTRY-ID = KIND "-" ARCH "-" VENDOR "-" OS "-" [ [ ENVIRONMENT ] "-" ] [ TARGET ]
 *
 * Both come from files of anybody and from users' command lines.  A processor that no table has is
 * accepted: archives must be usable for GPUs that are newer than this program.  But its name becomes
 * the name of a directory and of a file, and is printed: so it has few characters, and is short.
 */
#include "target.h"

#include <stdio.h>
#include <strings.h>

#include "core/base/text.h"

static kpack_error_t reject_id(struct kp_span id, const char *reason, struct kp_span what,
			       struct kpackx_error *why)
{
	char shown_id[96], shown[64];

	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "target ID \"%s\": %s \"%s\"",
		       kp_text_escape(id, shown_id, sizeof(shown_id)), reason,
		       kp_text_escape(what, shown, sizeof(shown)));
}

/* Offset of the first byte of S that is in STOP, or the size. */
static size_t find_any(struct kp_span s, const char *stop)
{
	size_t i = 0;

	while (i < s.size && !memchr(stop, s.data[i], strlen(stop)))
		i++;
	return i;
}

static bool is_feature(struct kp_span name)
{
	return kp_span_is(name, "sramecc") || kp_span_is(name, "xnack");
}

/*
 * Offset at which the features begin.  Names also have dashes (gfx11-generic), so a dash
 * is a separator only if a feature follows it.
 */
static size_t processor_size(struct kp_span id)
{
	size_t i = find_any(id, ":-");

	while (i < id.size && id.data[i] == '-') {
		struct kp_span rest = kp_span_tail(id, i + 1);

		if (is_feature(kp_span_head(rest, find_any(rest, "+-:"))))
			break;
		i += 1 + find_any(rest, ":-");
	}
	return i;
}

/* Whether A and B are the same but for ASCII's case: tolower depends on the locale. */
static bool same_but_for_case(const char *a, struct kp_span b)
{
	if (strlen(a) != b.size)
		return false;
	for (size_t i = 0; i < b.size; i++) {
		uint8_t x = (uint8_t)a[i], y = b.data[i], lower = x | 0x20;

		if (x != y && (lower != (y | 0x20) || lower < 'a' || lower > 'z'))
			return false;
	}
	return true;
}

kpack_error_t kp_target_parse(struct kp_span text, struct kp_target *out,
			      struct kpackx_error *why)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = processor_size(text), count;
	const struct kp_processor *table = kp_processor_table(&count);
	struct kp_span name = kp_span_head(text, n), rest = kp_span_tail(text, n);
	struct kp_target t = {.known = kp_processor_by_name(name)};

	if (t.known)
		name = kp_span_str(t.known->name);
	else if (name.size == 0)
		return reject_id(text, "no processor in", text, why);
	else if (name.size >= sizeof(t.processor))
		return reject_id(text, "too long (31 bytes at most)", name, why);
	/* a known name in the wrong case is a typing error, not a new processor */
	for (size_t i = 0; i < count && !t.known; i++)
		if (same_but_for_case(table[i].name, name))
			return reject_id(text, "not in lower case:", name, why);
	for (size_t i = 0; i < name.size; i++)
		if (!memchr(allowed, name.data[i], strlen(allowed)))
			return reject_id(text, "not a processor name:", name, why);
	memcpy(t.processor, name.data, name.size);
	/* a separator, the feature's name, and its sign */
	while (rest.size) {
		struct kp_span body = kp_span_tail(rest, 1);
		struct kp_span feature = kp_span_head(body, find_any(body, "+-:"));
		struct kp_span sign = kp_span_tail(body, feature.size);
		bool sramecc = kp_span_is(feature, "sramecc");
		enum kp_feature *state = sramecc ? &t.sramecc : &t.xnack;

		if (rest.data[0] != ':' && rest.data[0] != '-')
			return reject_id(text, "no ':' before", rest, why);
		if (!is_feature(feature))
			return reject_id(text, "unknown feature", feature, why);
		if (sign.size == 0 || sign.data[0] == ':')
			return reject_id(text, "no '+' or '-' after", feature, why);
		/* what "xnack+:xnack-" asks for, nobody can know */
		if (*state != KP_FEATURE_ANY)
			return reject_id(text, "repeated feature", feature, why);
		if (t.known && !(sramecc ? t.known->sramecc : t.known->xnack))
			return reject_id(text, "the processor has no", feature, why);
		*state = sign.data[0] == '+' ? KP_FEATURE_ON : KP_FEATURE_OFF;
		rest = kp_span_tail(sign, 1);
	}
	*out = t;
	return KPACK_SUCCESS;
}

void kp_target_format(const struct kp_target *t, char out[KP_TARGET_TEXT_MAX])
{
	static const char *const signs[] = {"", "-", "+"}; /* by enum kp_feature */

	snprintf(out, KP_TARGET_TEXT_MAX, "%s%s%s%s%s", t->processor,
		 t->sramecc ? ":sramecc" : "", signs[t->sramecc],
		 t->xnack ? ":xnack" : "", signs[t->xnack]);
}

void kp_target_canonical(struct kp_span text, char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target t;
	/* longer texts are cut, which no caller can mistake for a target ID: those are shorter */
	size_t n = text.size < KP_TARGET_TEXT_MAX ? text.size : KP_TARGET_TEXT_MAX - 1;

	if (kp_target_parse(text, &t, NULL) == KPACK_SUCCESS) {
		kp_target_format(&t, out);
		return;
	}
	if (n)
		memcpy(out, text.data, n);
	out[n] = '\0';
}

bool kp_target_eq(const struct kp_target *a, const struct kp_target *b)
{
	return strcmp(a->processor, b->processor) == 0 && a->sramecc == b->sramecc &&
	       a->xnack == b->xnack;
}

bool kp_target_compatible(const struct kp_target *code, const struct kp_target *want)
{
	return strcmp(code->processor, want->processor) == 0 &&
	       (code->sramecc == KP_FEATURE_ANY || code->sramecc == want->sramecc) &&
	       (code->xnack == KP_FEATURE_ANY || code->xnack == want->xnack);
}

bool kp_target_neutral(const struct kp_target *t)
{
	return strcmp(t->processor, KP_ARCH_GENERIC) == 0;
}

bool kp_features_contradict(enum kp_feature a, enum kp_feature b)
{
	return a != KP_FEATURE_ANY && b != KP_FEATURE_ANY && a != b;
}

struct kp_span kp_processor_model(struct kp_span processor)
{
	static const char stepping[] = "-strict";

	return kp_span_ends(processor, stepping)
		       ? kp_span_head(processor, processor.size - strlen(stepping))
		       : processor;
}

enum kp_fit kp_target_fit(const struct kp_target *gpu, const struct kp_target *code)
{
	struct kp_span model = kp_processor_model(kp_span_str(gpu->processor));
	const char *generic;

	/* also of CUDA's targets, and of names that no table has */
	if (kp_target_eq(gpu, code))
		return KP_FIT_EXACT;
	if (kp_target_neutral(code))
		return KP_FIT_NEUTRAL;
	/* a loader refuses such code, also that of a generic target */
	if (kp_features_contradict(gpu->sramecc, code->sramecc) ||
	    kp_features_contradict(gpu->xnack, code->xnack))
		return KP_FIT_NONE;
	if (kp_span_eq(model, kp_processor_model(kp_span_str(code->processor))))
		return KP_FIT_FEATURES;
	generic = kp_processor_generic(model);
	if (generic && strcmp(generic, code->processor) == 0)
		return KP_FIT_GENERIC;
	/* not for CUDA's sm_90, and not for what is no GPU */
	if (strcmp(code->processor, KP_ARCH_SPIRV) == 0 &&
	    strncmp(gpu->processor, "gfx", 3) == 0)
		return KP_FIT_SPIRV;
	return KP_FIT_NONE;
}

bool kp_target_loadable(const struct kp_target *gpu, const struct kp_target *code)
{
	return kp_target_fit(gpu, code) != KP_FIT_NONE;
}

/*
 * A GPU has each feature on or off, and whoever names it need not know which: the driver's settings
 * decide.
 */
size_t kp_target_settings(const struct kp_target *t,
			  struct kp_target out[KP_TARGET_SETTINGS])
{
	bool sramecc = !t->sramecc && t->known && t->known->sramecc; /* may be either */
	bool xnack = !t->xnack && t->known && t->known->xnack;
	size_t n = 0;

	for (unsigned on = 0; on < KP_TARGET_SETTINGS; on++) {
		if ((on & 2 && !sramecc) || (on & 1 && !xnack))
			continue;
		out[n] = *t;
		if (sramecc)
			out[n].sramecc = on & 2 ? KP_FEATURE_ON : KP_FEATURE_OFF;
		if (xnack)
			out[n].xnack = on & 1 ? KP_FEATURE_ON : KP_FEATURE_OFF;
		n++;
	}
	return n;
}

/* EI_ABIVERSION; 0 is code object v2, whose flags do not hold the processor. */
enum { ABI_V3 = 1, ABI_V6 = 4 };

/*
 * The state of a feature in FLAGS.  v3 has one bit for it: where the processor is CERTAIN to have
 * the feature, clear means off.  Since v4 there are two: not supported, any, off, on.
 */
static enum kp_feature feature_in_flags(uint8_t abi_version, uint32_t bit, uint32_t bits,
					bool certain)
{
	static const enum kp_feature states[] = {
		KP_FEATURE_ANY,
		KP_FEATURE_ANY,
		KP_FEATURE_OFF,
		KP_FEATURE_ON,
	};

	if (abi_version != ABI_V3)
		return states[bits & 3];
	return bit ? KP_FEATURE_ON : certain ? KP_FEATURE_OFF : KP_FEATURE_ANY;
}

kpack_error_t kp_target_from_elf_flags(uint8_t abi_version, uint32_t e_flags,
				       struct kp_target *out, struct kpackx_error *why)
{
	size_t count;
	const struct kp_processor *table = kp_processor_table(&count), *row = NULL;
	struct kp_target t;

	if (abi_version < ABI_V3 || abi_version > ABI_V6)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"code object: ABI version %u: only %d (v3) to %d (v6) name "
			"their processor in e_flags",
			abi_version, ABI_V3, ABI_V6);
	for (size_t i = 0; i < count && !row; i++)
		if (table[i].mach == (e_flags & 0xff))
			row = &table[i];
	t = (struct kp_target){.known = row};
	if (row)
		snprintf(t.processor, sizeof(t.processor), "%s", row->name);
	else
		snprintf(t.processor, sizeof(t.processor), "mach-0x%02x",
			 (unsigned)(e_flags & 0xff));
	/* an ID that states a feature the processor lacks would be refused everywhere */
	if (!row || row->xnack)
		t.xnack =
			feature_in_flags(abi_version, e_flags & 0x100, e_flags >> 8, row);
	if (!row || row->sramecc)
		t.sramecc = feature_in_flags(abi_version, e_flags & 0x200, e_flags >> 10,
					     row);
	*out = t;
	return KPACK_SUCCESS;
}

/*
 * Whether S, at the place of a triple's environment, is a target ID instead.  No environment is
 * called so, and clang writes IDs with and without one.
 */
static bool looks_like_target(struct kp_span s)
{
	static const char *const begins[] = {"gfx", "sm_", "compute_", "amdgcnspirv",
					     "generic"};

	for (size_t i = 0; i < KP_COUNT(begins); i++)
		if (kp_span_starts(s, begins[i], strlen(begins[i])))
			return true;
	return kp_processor_by_name(kp_span_head(s, find_any(s, ":"))) != NULL;
}

/* Offset after the Nth '-' at or after FROM, or size + 1 when there are fewer. */
static size_t after_dash(struct kp_span s, size_t from, int n)
{
	for (; n && from <= s.size; n--)
		from += find_any(kp_span_tail(s, from), "-") + 1;
	return from;
}

bool kp_entry_id_parse(struct kp_span id, struct kp_entry_id *out)
{
	/* where the parts begin: the kind has no dash, and the triple has three */
	size_t triple = after_dash(id, 0, 1);
	size_t env = after_dash(id, triple, 3);
	size_t target = env, end;

	if (triple <= 1 || triple > id.size)
		return false;
	if (env <= id.size && !looks_like_target(kp_span_tail(id, env)))
		target = after_dash(id, env, 1);
	/* an empty environment ends the triple before its dash */
	end = target == env + 1 ? env : target;

	out->kind = kp_span_head(id, triple - 1);
	out->triple = kp_span_head(kp_span_tail(id, triple), end - 1 - triple);
	out->target = kp_span_tail(id, target <= id.size ? target : id.size);
	return true;
}
