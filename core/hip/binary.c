/* SPDX-License-Identifier: MIT */
#include "binary.h"
#include <stdlib.h>
#include "core/loader/process.h"
#include "core/loader/trusted.h"
#include "say.h"

static kpack_error_t start_binaries(struct binaries *all, struct kpackx_error *why)
{
	say_read_level();
	KP_TRY(kp_environment_read(&all->env, why));
	if (all->env.disabled)
		return KPACK_SUCCESS;
	KP_TRY(gpus_find(&all->gpus, why));
	KP_TRY(gpus_names(&all->gpus, &all->names, &all->n_names, why));
	return kp_cache_init(&all->cache, why);
}

static void say_fault(const struct kpackx_error *why)
{
	struct kp_line line = {.used = 0};

	kp_line_add(&line, "no converted binary gets code: %s", why->text);
	say_line(SAY_MISSING, &line);
}

kpack_error_t binaries_start(struct binaries *all, struct kpackx_error *why)
{
	struct kpackx_error reason = {0};

	if (!all->started) {
		all->started = true;
		if (start_binaries(all, &reason)) {
			all->fault = reason;
			say_fault(&all->fault);
		}
	}
	if (all->fault.code && why)
		*why = all->fault;
	return all->fault.code;
}

static void binary_free(struct binary *b)
{
	kp_lookup_fini(&b->files);
	kp_marker_fini(&b->facts);
	free(b->mount);
	free(b->reported);
	free(b->path);
	free(b);
}

static kpack_error_t find_archives(struct binaries *all, struct binary *b,
				   struct kpackx_error *why)
{
	kpack_error_t err;
	char *trusted;

	b->files = (struct kp_lookup){
		.cache = &all->cache, .strict = all->env.strict, .trace = all->env.trace};
	b->want = (struct kp_lookup_want){.key = b->facts.kernel_name,
					  .archs = all->names,
					  .n_archs = all->n_names};
	err = kp_trusted_binary(b->path, &trusted, why);
	if (err)
		return kp_fail_prefix(why, KPACK_ERROR_ARCHIVE_NOT_FOUND,
				      "the binary's directory");
	err = kp_candidates_add(&all->env, &b->facts, trusted, &b->want, &b->files, why);
	free(trusted);
	return err;
}

static kpack_error_t fill_binary(struct binaries *all, struct binary *b,
				 struct kpackx_error *why)
{
	kpack_error_t err;
	uint64_t offset;

	b->reported = calloc(all->gpus.count + 1, sizeof(*b->reported));
	if (!b->reported)
		return kp_fail_memory(why, all->gpus.count, "a list of GPUs");
	err = kp_maps_find(b->marker, &b->path, &offset, why);
	if (err) {
		/* the name in the marker is better than none */
		(void)kp_marker_read_at(b->marker, &b->facts, NULL);
		return err;
	}
	KP_TRY(kp_marker_read_at(b->marker, &b->facts, why));
	return find_archives(all, b, why);
}

/*
 * Whether the marker of B is still at its address.  A library that was unloaded without
 * unregistering leaves its address to other libraries.  (dl_iterate_phdr, which counts the
 * unloaded ones, can hang in a child of fork.)
 */
static bool has_same_marker(const struct binary *b)
{
	struct kp_marker now = {0};
	bool readable = kp_marker_read_at(b->marker, &now, NULL) == KPACK_SUCCESS;
	bool same = readable && b->facts.kernel_name ? kp_marker_same(&now, &b->facts)
						     : !readable && !b->facts.kernel_name;

	kp_marker_fini(&now);
	return same;
}

kpack_error_t binary_get(struct binaries *all, const void *marker, struct binary **out,
			 struct kpackx_error *why)
{
	struct binary *b = all->first;
	struct kpackx_error reason = {0};

	*out = NULL;
	while (b && (b->marker != marker || !has_same_marker(b)))
		b = b->next;
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return kp_fail_memory(why, sizeof(*b), "a binary");
		b->marker = marker;
		/* it may give a reason for a place that it passed over, and succeed */
		if (fill_binary(all, b, &reason))
			b->fault = reason;
		b->next = all->first;
		all->first = b;
	}
	b->users++;
	*out = b;
	if (b->fault.code)
		*why = b->fault;
	return b->fault.code;
}

void binary_put(struct binaries *all, struct binary *b)
{
	struct binary **at = &all->first;

	if (!b || --b->users)
		return;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	binary_free(b);
}
