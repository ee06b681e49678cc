/* SPDX-License-Identifier: MIT */
#include "api_state.h"
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/archive/toc.h"

struct state {
	struct kp_last_errors errors;
	struct kp_cached_results answers;
	size_t n_entries;
};

static void free_state(void *data)
{
	struct state *s = data;

	kp_last_errors_fini(&s->errors);
	kp_cached_results_fini(&s->answers, s->n_entries);
	free(s);
}

kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return kp_fail_memory(why, sizeof(*s), "an archive");
	s->n_entries = kp_archive_toc(a)->n_entries;
	kp_last_errors_init(&s->errors);
	kp_archive_attach(a, s, free_state);
	return KPACK_SUCCESS;
}

struct kp_last_errors *kp_api_errors(const struct kpack_archive *a)
{
	struct state *s = kp_archive_attached(a);

	return &s->errors;
}

struct kp_cached_results *kp_api_answers(const struct kpack_archive *a)
{
	struct state *s = kp_archive_attached(a);

	return &s->answers;
}
