/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that code is loaded for, and all the names that files for them may have: each
 * processor and generic target that they load, with each combination of features.
 */
#include "hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/target/kfd.h"

#define SPIRV "amdgcnspirv"
#define OVERRIDE "HSA_OVERRIDE_GFX_VERSION"

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

kpack_error_t gpus_find(struct gpus *out, struct kpackx_error *why)
{
	static const char separators[] = ", ;";
	const char *listed = secure_getenv("KPACK_HIP_ARCH"), *version;
	char name[sizeof(OVERRIDE) + 16], properties[80], more;
	unsigned major, minor, stepping;
	struct kp_line line = {.used = 0};
	struct kp_target target;
	struct kp_gpus found;
	kpack_error_t err;

	*out = (struct gpus){0};
	if (listed && *listed) {
		while (*(listed += strspn(listed, separators))) {
			struct kp_span text = {(const uint8_t *)listed,
					       strcspn(listed, separators)};

			if (kp_target_parse(text, &target, why))
				return kp_fail_prefix(why, KPACK_ERROR_INVALID_ARGUMENT,
						      "KPACK_HIP_ARCH");
			KP_TRY(add_gpu(out, &target, why));
			listed += text.size;
		}
		return KPACK_SUCCESS;
	}

	err = kp_gpus_read(NULL, &found, why);
	if (err == KPACK_ERROR_FILE_NOT_FOUND) {
		err = KPACK_SUCCESS; /* no driver: no GPU */
		/* but the runtime finds GPUs by the device, if only /sys is hidden */
		if (access("/dev/kfd", F_OK) == 0) {
			kp_line_add(&line,
				    "no code for any GPU: " KP_TOPOLOGY
				    " is missing, but /dev/kfd is there; in a container "
				    "without /sys name the GPUs in KPACK_HIP_ARCH");
			say_line(SAY_MISSING, &line);
		}
	}
	for (size_t i = 0; i < found.count && !err; i++) {
		bool known = false;

		/* The runtime's name for it: that of its version, "10.3.0", if a variable states
		 * it, as the driver would report 100300.  The variable with its number counts
		 * first. */
		target = found.list[i].target;
		snprintf(name, sizeof(name), OVERRIDE "_%u", found.list[i].number);
		version = secure_getenv(name);
		if (!version || !*version) {
			snprintf(name, sizeof(name), OVERRIDE);
			version = secure_getenv(name);
		}
		/* NOLINTNEXTLINE(cert-err34-c): the widths keep the numbers small */
		if (version && sscanf(version, "%3u.%2u.%2u%c", &major, &minor, &stepping,
				      &more) == 3) {
			snprintf(properties, sizeof(properties),
				 "gfx_target_version %u\n",
				 major * 10000 + minor * 100 + stepping);
			(void)kp_gpus_parse(kp_span_str(properties), &target, &known,
					    NULL);
		}
		if (version && *version && !known)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: %s is not the version of a GPU", name,
				      version);
		else
			err = add_gpu(out, &target, why);
	}
	kp_gpus_fini(&found);
	return err;
}

bool gpu_loads(const struct kp_target *gpu, const char *code)
{
	struct kp_target target;

	return !kp_target_parse(kp_span_str(code), &target, NULL) &&
	       !kp_target_neutral(&target) && kp_target_loadable(gpu, &target);
}

/* ---- names ---- */

/* Every processor and generic target, in each of four combinations of features. */
enum { COMBINATIONS = 4 };

/*
 * Set FEATURE to on or off, if the processor HAS it.  false: the GPU states otherwise; what it
 * does not state may be either.
 */
static bool set_feature(enum kp_feature *feature, bool has, enum kp_feature stated,
			bool on)
{
	enum kp_feature chosen = on ? KP_FEATURE_ON : KP_FEATURE_OFF;

	*feature = has ? chosen : KP_FEATURE_ANY;
	return has ? stated == KP_FEATURE_ANY || stated == chosen : !on;
}

kpack_error_t gpus_names(const struct gpus *g, const char *const **names, size_t *count,
			 struct kpackx_error *why)
{
	size_t n_processors, most, n = 0;
	const struct kp_processor *table = kp_processor_table(&n_processors), *p;
	const char **list;
	char *text;

	most = g->count * (n_processors * COMBINATIONS + 1) + 1;
	list = malloc(most * (sizeof(*list) + KP_TARGET_TEXT_MAX));
	if (!list)
		return kp_fail_memory(why, most * KP_TARGET_TEXT_MAX, "names of GPUs");
	text = (char *)(list + most); /* where the next name goes */
	for (size_t i = 0; i < g->count; i++) {
		const struct kp_target *gpu = &g->list[i];
		const char *generic = kp_processor_generic(kp_span_str(gpu->processor));

		if (!gpu->known) { /* a processor that the table lacks */
			kp_target_format(gpu, text);
			list[n++] = text;
			text += KP_TARGET_TEXT_MAX;
		}
		for (p = table; p < table + n_processors; p++) {
			if (!kp_span_is(kp_processor_model(kp_span_str(p->name)),
					gpu->processor) &&
			    (!generic || strcmp(p->name, generic) != 0))
				continue;
			for (unsigned k = 0; k < COMBINATIONS; k++) {
				struct kp_target t = {.known = p};

				snprintf(t.processor, sizeof(t.processor), "%s", p->name);
				if (!set_feature(&t.sramecc, p->sramecc, gpu->sramecc,
						 k & 1) ||
				    !set_feature(&t.xnack, p->xnack, gpu->xnack, k & 2))
					continue;
				kp_target_format(&t, text);
				list[n++] = text;
				text += KP_TARGET_TEXT_MAX;
			}
		}
	}
	if (g->count)
		list[n++] = SPIRV;
	*names = list;
	*count = n;
	return KPACK_SUCCESS;
}
