/* SPDX-License-Identifier: MIT */
#include "gpus.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/target/kfd.h"

#define SPIRV "amdgcnspirv"

static kpack_error_t add_gpu(struct gpus *g, const struct kp_target *gpu,
			     struct kpackx_error *why)
{
	struct kp_target *longer;

	for (size_t i = 0; i < g->count; i++)
		if (kp_target_eq(&g->list[i], gpu))
			return KPACK_SUCCESS;
	longer = realloc(g->list, (g->count + 1) * sizeof(*longer));
	if (!longer)
		return kp_fail_memory(why, sizeof(*longer), "a list of GPUs");
	g->list = longer;
	g->list[g->count++] = *gpu;
	return KPACK_SUCCESS;
}

static kpack_error_t add_listed(struct gpus *g, const char *list,
				struct kpackx_error *why)
{
	static const char separators[] = ", ;";

	for (const char *at = list; *(at += strspn(at, separators));) {
		struct kp_span name = {(const uint8_t *)at, strcspn(at, separators)};
		struct kp_target gpu;

		if (kp_target_parse(name, &gpu, why))
			return kp_fail_prefix(why, KPACK_ERROR_INVALID_ARGUMENT,
					      "KPACK_HIP_ARCH");
		KP_TRY(add_gpu(g, &gpu, why));
		at += name.size;
	}
	return KPACK_SUCCESS;
}

/* The value of the variable NAME is VERSION, "10.3.0"; the driver would report 100300. */
static kpack_error_t parse_version(const char *name, const char *version,
				   struct kp_target *gpu, struct kpackx_error *why)
{
	unsigned major, minor, stepping;
	char properties[80], more;
	bool found = false;

	/* NOLINTNEXTLINE(cert-err34-c): the widths keep the numbers small */
	if (sscanf(version, "%3u.%2u.%2u%c", &major, &minor, &stepping, &more) == 3) {
		snprintf(properties, sizeof(properties), "gfx_target_version %u\n",
			 major * 10000 + minor * 100 + stepping);
		(void)kp_gpus_parse(kp_span_str(properties), gpu, &found, NULL);
	}
	return found ? KPACK_SUCCESS
		     : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: %s is not the version of a GPU", name, version);
}

#define OVERRIDE "HSA_OVERRIDE_GFX_VERSION"

/* Set *OUT to the runtime's name for GPU; the variable with its number counts first. */
static kpack_error_t name_gpu(const struct kp_gpu *gpu, struct kp_target *out,
			      struct kpackx_error *why)
{
	char name[sizeof(OVERRIDE) + 16];
	const char *version;

	snprintf(name, sizeof(name), OVERRIDE "_%u", gpu->number);
	version = secure_getenv(name);
	if (!version || !*version) {
		snprintf(name, sizeof(name), OVERRIDE);
		version = secure_getenv(name);
	}
	*out = gpu->target;
	return version && *version ? parse_version(name, version, out, why)
				   : KPACK_SUCCESS;
}

static kpack_error_t add_machine(struct gpus *g, struct kpackx_error *why)
{
	struct kp_gpus found;
	struct kp_target target;
	kpack_error_t err = kp_gpus_read(NULL, &found, why);

	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		err = KPACK_SUCCESS; /* no driver: no GPU */
	for (size_t i = 0; i < found.count && !err; i++) {
		err = name_gpu(&found.list[i], &target, why);
		if (!err)
			err = add_gpu(g, &target, why);
	}
	kp_gpus_fini(&found);
	return err;
}

kpack_error_t gpus_find(struct gpus *out, struct kpackx_error *why)
{
	const char *listed = secure_getenv("KPACK_HIP_ARCH");

	*out = (struct gpus){0};
	if (listed && *listed)
		return add_listed(out, listed, why);
	return add_machine(out, why);
}

const struct kp_target *gpus_that_loads(const struct gpus *g, struct kp_span code)
{
	struct kp_target target;

	if (kp_target_parse(code, &target, NULL) || kp_target_neutral(&target))
		return NULL;
	for (size_t i = 0; i < g->count; i++)
		if (kp_target_loadable(&g->list[i], &target))
			return &g->list[i];
	return NULL;
}

/* ---- names ---- */

struct names {
	const char **list;
	char *text; /* where the next name goes */
	size_t count;
};

/* Every processor and generic target, in each of four combinations of features. */
enum { COMBINATIONS = 4 };

static bool is_for(const char *processor, const struct kp_target *gpu)
{
	const char *generic = kp_processor_generic(kp_span_str(gpu->processor));
	struct kp_span model = kp_processor_model(kp_span_str(processor));

	return kp_span_is(model, gpu->processor) ||
	       (generic && strcmp(processor, generic) == 0);
}

/* A feature that the GPU does not state may be on or off. */
static bool set_feature(enum kp_feature *feature, bool has, enum kp_feature stated,
			bool on)
{
	enum kp_feature chosen = on ? KP_FEATURE_ON : KP_FEATURE_OFF;

	*feature = has ? chosen : KP_FEATURE_ANY;
	return has ? stated == KP_FEATURE_ANY || stated == chosen : !on;
}

static void add_names(struct names *n, const struct kp_processor *p,
		      const struct kp_target *gpu)
{
	for (unsigned i = 0; i < COMBINATIONS; i++) {
		struct kp_target t = {.known = p};

		snprintf(t.processor, sizeof(t.processor), "%s", p->name);
		if (!set_feature(&t.sramecc, p->sramecc, gpu->sramecc, i & 1) ||
		    !set_feature(&t.xnack, p->xnack, gpu->xnack, i & 2))
			continue;
		kp_target_format(&t, n->text);
		n->list[n->count++] = n->text;
		n->text += KP_TARGET_TEXT_MAX;
	}
}

kpack_error_t gpus_names(const struct gpus *g, const char *const **names, size_t *count,
			 struct kpackx_error *why)
{
	size_t n_processors, most;
	const struct kp_processor *table = kp_processor_table(&n_processors);
	struct names n = {0};

	most = g->count * (n_processors * COMBINATIONS + 1) + 1;
	n.list = malloc(most * (sizeof(*n.list) + KP_TARGET_TEXT_MAX));
	if (!n.list)
		return kp_fail_memory(why, most * KP_TARGET_TEXT_MAX, "names of GPUs");
	n.text = (char *)(n.list + most);
	for (size_t i = 0; i < g->count; i++) {
		if (!g->list[i].known) { /* a processor that the table lacks */
			kp_target_format(&g->list[i], n.text);
			n.list[n.count++] = n.text;
			n.text += KP_TARGET_TEXT_MAX;
		}
		for (size_t p = 0; p < n_processors; p++)
			if (is_for(table[p].name, &g->list[i]))
				add_names(&n, &table[p], &g->list[i]);
	}
	if (g->count)
		n.list[n.count++] = SPIRV;
	*names = n.list;
	*count = n.count;
	return KPACK_SUCCESS;
}
