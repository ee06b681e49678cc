/* SPDX-License-Identifier: MIT */
/*
 * The converted binaries of this process.  One is found again by the address of its marker, as
 * long as the same marker is there.
 */
#include "hip.h"

#include <stdlib.h>
#include <string.h>

#include "core/loader/process.h"

/* ---- what all binaries share ---- */

static enum say_level printed_level = SAY_MISSING;

bool say_wants(enum say_level level)
{
	return level <= printed_level;
}

void say_line(enum say_level level, const struct kp_line *line)
{
	if (say_wants(level))
		kp_line_print("kpack_hip: ", line);
}

kpack_error_t binaries_start(struct binaries *all, struct kpackx_error *why)
{
	const char *level = secure_getenv("KPACK_HIP_DEBUG");
	struct kp_line line = {.used = 0};
	struct kpackx_error reason = {0};
	kpack_error_t err;

	if (!all->started) {
		all->started = true;
		if (level && *level)
			printed_level = strcmp(level, "0") == 0 ? SAY_NOTHING : SAY_ALL;
		err = kp_environment_read(&all->env, &reason);
		if (!err && all->env.disabled)
			return KPACK_SUCCESS;
		if (!err)
			err = gpus_find(&all->gpus, &reason);
		if (!err)
			err = gpus_names(&all->gpus, &all->names, &all->n_names, &reason);
		if (!err)
			err = kp_cache_init(&all->cache, &reason);
		if (err) {
			all->fault = reason;
			kp_line_add(&line, "no converted binary gets code: %s",
				    reason.text);
			say_line(SAY_MISSING, &line);
		}
	}
	if (all->fault.code && why)
		*why = all->fault;
	return all->fault.code;
}

/* ---- one binary ---- */

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
	b->files = (struct kp_lookup){.cache = &all->cache,
				      .env = &all->env,
				      .key = b->facts.kernel_name,
				      .archs = all->names,
				      .n_archs = all->n_names};
	return kp_lookup_find(&b->files, &b->facts, b->path, why);
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
	kp_lookup_fini(&b->files);
	kp_marker_fini(&b->facts);
	free(b->mount);
	free(b->reported);
	free(b->path);
	free(b);
}
