/* SPDX-License-Identifier: MIT */
#include "candidates.h"
#include <stdlib.h>
#include "core/elf/search_path.h"
#include "trace.h"

static kpack_error_t add_list(struct kp_lookup *l, const char *name,
			      const struct kp_path_list *list, struct kpackx_error *why)
{
	kpack_error_t err;
	size_t at = 0;
	char *path;

	while (!(err = kp_path_list_next(list, &at, &path, why)) && path) {
		kp_trace_name(l->trace, name, path, NULL);
		err = kp_lookup_add_place(l, path, why);
		free(path);
		if (err)
			break;
	}
	return err;
}

/* A marker's search path, which is resolved for each target. */
struct pattern {
	struct kp_lookup *lookup;
	struct kp_search_memo *memo;
	const char *text;
	const char *binary;
	struct kpackx_error *why;
	kpack_error_t err;
};

static bool add_target(struct kp_span target, void *arg)
{
	struct pattern *p = arg;
	char *path;

	p->err = kp_search_resolve(p->text, target, p->binary, p->memo, &path, p->why);
	if (p->err == KPACK_ERROR_INVALID_ARGUMENT) {
		/* too long for any file */
		kp_trace_name(p->lookup->trace, "passed over", p->text, p->why->text);
		p->err = KPACK_SUCCESS;
	} else if (p->err == KPACK_SUCCESS) {
		p->err = kp_lookup_add(p->lookup, path, p->why);
	}
	return p->err == KPACK_SUCCESS;
}

static kpack_error_t add_pattern(struct pattern *p, const struct kp_lookup_want *want)
{
	p->err = KPACK_SUCCESS;
	if (!kp_search_has_arch(p->text)) {
		add_target((struct kp_span){0}, p);
		return p->err;
	}
	for (size_t i = 0; i < want->n_archs && !p->err; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), add_target, p);
	return p->err;
}

static kpack_error_t add_patterns(struct kp_lookup *l, const struct kp_marker *m,
				  const char *binary, const struct kp_lookup_want *want,
				  struct kpackx_error *why)
{
	struct kp_search_memo memo = {0};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < m->n_search_paths && !err; i++) {
		struct pattern p = {.lookup = l,
				    .memo = &memo,
				    .text = m->search_paths[i],
				    .binary = binary,
				    .why = why};

		kp_trace_name(l->trace, "search path", p.text, NULL);
		err = add_pattern(&p, want);
	}
	kp_search_memo_fini(&memo);
	return err;
}

static void trace_replaced(const struct kp_lookup *l, const struct kp_marker *m)
{
	for (size_t i = 0; i < m->n_search_paths; i++)
		kp_trace_name(l->trace, "search path", m->search_paths[i],
			      "replaced by ROCM_KPACK_PATH");
}

kpack_error_t kp_candidates_add(const struct kp_environment *env,
				const struct kp_marker *m, const char *binary,
				const struct kp_lookup_want *want, struct kp_lookup *l,
				struct kpackx_error *why)
{
	if (env->instead.size) {
		trace_replaced(l, m);
		return add_list(l, "ROCM_KPACK_PATH", &env->instead, why);
	}
	KP_TRY(add_list(l, "ROCM_KPACK_PATH_PREFIX", &env->before, why));
	return add_patterns(l, m, binary, want, why);
}
