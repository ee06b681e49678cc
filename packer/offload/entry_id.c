/* SPDX-License-Identifier: MIT */
/*
 * Entry IDs: KIND-ARCH-VENDOR-SYSTEM-ENVIRONMENT-TARGET, where each part of the triple but
 * the architecture may be empty, and TARGET is a GPU's target ID, or empty for a host.
 *
 *	host-x86_64-unknown-linux-gnu-
 *	hip-amdgcn-amd-amdhsa--gfx90a:xnack+
 *	openmp-nvptx64-nvidia-cuda-unknown-sm_80
 *
 * Bundles have one spelling: a part that is missing is "unknown", except that AMD's HSA has
 * no environment but its dash.  Readers take what older compilers wrote, too: without the
 * environment, or with "unknown" on HSA.  clang always hands its tools triples whose parts are
 * in their places, so that they are not moved here; only Debian's x86_64-linux-gnu, which
 * people write by hand, gets the vendor that it lacks.
 */
#include <stdio.h>
#include "core/target/target.h"
#include "offload.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/* ---- parsing and spelling ---- */

static unsigned count_dashes(struct kp_span s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s.size; i++)
		n += s.data[i] == '-';
	return n;
}

/* Cut S at its first dash: returns what is before it, and leaves what is behind. */
static struct kp_span cut_part(struct kp_span *s)
{
	const uint8_t *dash = s->size ? memchr(s->data, '-', s->size) : NULL;
	size_t n = dash ? (size_t)(dash - s->data) : s->size;
	struct kp_span part = kp_span_head(*s, n);

	*s = kp_span_tail(*s, n + (dash != NULL));
	return part;
}

bool entry_id_parse(struct kp_span text, struct entry_id *out)
{
	struct kp_entry_id parts;
	struct kp_span rest;

	if (!kp_entry_id_parse(text, &parts) || count_dashes(parts.triple) < 2)
		return false;
	rest = parts.triple;
	*out = (struct entry_id){.text = text,
				 .kind = parts.kind,
				 .no_environment = count_dashes(text) == 3};
	out->arch = cut_part(&rest);
	out->vendor = cut_part(&rest);
	out->system = cut_part(&rest);
	out->environment = rest;
	/* a host has no target ID, whatever the text has in its place */
	if (!kp_span_is(parts.kind, "host"))
		out->target = parts.target;
	if (out->environment.size == 0 && kp_span_starts(out->vendor, "linux", 5)) {
		out->environment = out->system;
		out->system = out->vendor;
		out->vendor = (struct kp_span){0};
	}
	return true;
}

char *entry_id_spell(const struct entry_id *id)
{
	const struct kp_span parts[] = {id->kind, id->arch, id->vendor, id->system,
					id->environment};
	char *text = NULL;
	size_t size = 0;
	FILE *out = xmemstream(&text, &size);

	for (size_t i = 0; i < KP_COUNT(parts); i++) {
		bool hsa = i == 4 && kp_span_starts(id->system, "amdhsa", 6);

		if (hsa)
			fputs("-", out);
		else if (parts[i].size)
			fprintf(out, "%.*s-", (int)parts[i].size,
				(const char *)parts[i].data);
		else
			fputs("unknown-", out);
	}
	if (id->target.size)
		fwrite(id->target.data, 1, id->target.size, out);
	fclose(out);
	return text;
}

/* ---- comparing ---- */

/* The usual name of an architecture that has several. */
static struct kp_span arch_name(struct kp_span arch)
{
	static const char *const others[][2] = {
		{"amd64", "x86_64"}, {"arm64", "aarch64"}, {"ppc64le", "powerpc64le"}};

	for (size_t i = 0; i < KP_COUNT(others); i++)
		if (kp_span_is(arch, others[i][0]))
			return kp_span_str(others[i][1]);
	return arch;
}

/* PART without a version ("macosx10.15", "linux5"); nothing for "unknown". */
static struct kp_span without_version(struct kp_span part)
{
	while (part.size && strchr("0123456789.", part.data[part.size - 1]))
		part.size--;
	return kp_span_is(part, "unknown") ? kp_span_head(part, 0) : part;
}

static bool same_part(struct kp_span a, struct kp_span b)
{
	return kp_span_eq(without_version(a), without_version(b));
}

static bool is_hip(const struct entry_id *id)
{
	return kp_span_is(id->kind, "hip") || kp_span_is(id->kind, "hipv4");
}

static bool same_triple(const struct entry_id *code, const struct entry_id *want)
{
	return kp_span_eq(arch_name(code->arch), arch_name(want->arch)) &&
	       same_part(code->vendor, want->vendor) &&
	       same_part(code->system, want->system) &&
	       (code->no_environment || same_part(code->environment, want->environment));
}

enum entry_match entry_id_match(const struct entry_id *code, const struct entry_id *want,
				bool hip_openmp)
{
	bool one_hip = is_hip(code) || is_hip(want),
	     both_hip = is_hip(code) && is_hip(want);
	bool openmp =
		kp_span_is(code->kind, "openmp") || kp_span_is(want->kind, "openmp");
	struct kp_target c, w;

	if (!same_triple(code, want) || (!kp_span_eq(code->kind, want->kind) &&
					 !both_hip && !(hip_openmp && one_hip && openmp)))
		return ENTRY_OTHER;
	if (kp_span_eq(code->target, want->target))
		return kp_span_eq(code->kind, want->kind) ? ENTRY_SAME : ENTRY_SERVES;
	return kp_target_parse(code->target, &c, NULL) == KPACK_SUCCESS &&
			       kp_target_parse(want->target, &w, NULL) == KPACK_SUCCESS &&
			       kp_target_compatible(&c, &w)
		       ? ENTRY_SERVES
		       : ENTRY_OTHER;
}

/*
 * A driver that finds code for gfx90a and for gfx90a:xnack+ could take either, so that which of
 * them runs would depend on the order of the entries.
 */
bool entry_ids_conflict(const struct entry_id *a, const struct entry_id *b)
{
	struct kp_target x, y;

	return kp_span_eq(a->kind, b->kind) && same_triple(a, b) &&
	       kp_target_parse(a->target, &x, NULL) == KPACK_SUCCESS &&
	       kp_target_parse(b->target, &y, NULL) == KPACK_SUCCESS &&
	       strcmp(x.processor, y.processor) == 0 &&
	       ((x.sramecc == KP_FEATURE_ANY) != (y.sramecc == KP_FEATURE_ANY) ||
		(x.xnack == KP_FEATURE_ANY) != (y.xnack == KP_FEATURE_ANY));
}

/* ---- the targets of a run ---- */

/* Report that the target A, or the targets A and B, cannot be. */
static int refuse_target(const char *a, const char *b, const char *what)
{
	return report_error(NULL, "target %s%s%s: %s", a, b ? " and " : "", b ? b : "",
			    what);
}

int bundler_targets_read(struct bundler *b, const struct option_texts *texts)
{
	bool hip_only = true;
	size_t hosts = 0;

	b->host = SIZE_MAX;
	b->targets = xcalloc(texts->count, sizeof(*b->targets));
	for (size_t i = 0; i < texts->count; i++) {
		struct offload_target *t = &b->targets[b->n_targets];
		const char *text = texts->items[i];
		struct entry_id id;

		/* five fields, or an older form with a target ID */
		if (!entry_id_parse(kp_span_str(text), &id) ||
		    count_dashes(id.text) < (id.target.size ? 3 : 4))
			return refuse_target(text, NULL,
					     "not KIND-ARCH-VENDOR-SYSTEM-ENVIRONMENT"
					     "[-TARGET[:FEATURE]...]");
		if (!is_hip(&id) && !kp_span_is(id.kind, "host") &&
		    !kp_span_is(id.kind, "openmp"))
			return refuse_target(text, NULL,
					     "not of host, hip, hipv4 or openmp");
		if (is_hip(&id) && !kp_span_is(id.arch, "amdgcn") &&
		    !kp_span_starts(id.arch, "spirv", 5))
			return refuse_target(text, NULL, "no architecture of HIP");
		t->name = entry_id_spell(&id);
		b->n_targets++;
		/* the parts of NAME, not of TEXT */
		entry_id_parse(kp_span_str(t->name), &t->id);
		/* another spelling of an existing target is a duplicate, too */
		for (const struct offload_target *o = b->targets; o < t; o++) {
			if (strcmp(o->name, t->name) == 0)
				return refuse_target(t->name, NULL, "given twice");
			if (entry_ids_conflict(&o->id, &t->id))
				return refuse_target(o->name, t->name,
						     "all targets for a processor, or "
						     "none, must state a feature");
		}
		if (kp_span_is(t->id.kind, "host")) {
			hosts++;
			b->host = i;
		}
		hip_only = hip_only && is_hip(&t->id);
	}
	/* HIP's device code may be bundled without a host, and anything be taken out without */
	if (hosts > 1 || (hosts == 0 && !hip_only && !b->unbundle))
		return report_error(NULL, "%zu targets for the host: one is needed",
				    hosts);
	return 0;
}
