/* SPDX-License-Identifier: MIT */
/*
 * Stands before the HIP runtime: a wrapper of a converted binary, whose magic is HIPK and
 * which older runtimes refuse, becomes an ordinary one with a bundle.  Everything else is
 * passed on.
 *
 * The calls come from constructors in any order, so nothing here needs a constructor to
 * have run.  No lock is held while the dynamic linker or the runtime is called, because a
 * thread in dlopen() has the linker's lock when it comes here.
 */
#include "hip.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/lock.h"

struct wrapper {
	uint32_t magic, version;
	const void *pointer;
	uint64_t index;
};

/* A wrapper that was made, and what belongs to it until it is unregistered. */
struct registration {
	struct registration *next;
	struct wrapper wrapper;
	struct binary *binary; /* NULL: unknown */
	struct bundle *bundle;
	struct runtime runtime;
	void *handle;
};

/* The library's lock, for everything below and in the other files. */
KP_LOCK(library_lock, KP_LOCK_OUTER, NULL)
static struct binaries binaries;
static struct registration *registrations;

/* ---- with the lock held ---- */

/*
 * Make a wrapper with the code of WRAPPER; without any, a program goes on as on a GPU it has no
 * code for.
 */
static struct registration *registration_new(const struct wrapper *wrapper)
{
	struct registration *r = calloc(1, sizeof(*r));
	struct kp_line line = {.used = 0};
	struct kpackx_error why = {0};
	const char *name = NULL;
	struct binary *b = NULL;
	kpack_error_t err;

	if (!r)
		return NULL;
	err = binaries_start(&binaries, &why);
	if (!err && binaries.gpus.count) {
		err = binary_get(&binaries, wrapper->pointer, &b, &why);
		if (!err)
			err = bundle_get(&binaries, b, (uint32_t)wrapper->index,
					 &r->bundle, &why);
		if (b)
			name = b->path ? b->path : b->facts.kernel_name;
		if (err && name) {
			kp_line_add_name(&line, name);
			kp_line_add(&line, ": ");
		}
		if (err) {
			kp_line_add(&line, "no code for any GPU: %s", why.text);
			/* for the other wrappers of a binary the reason is the same */
			say_line(b && b->is_unusable ? SAY_ALL : SAY_MISSING, &line);
		}
		if (err && b)
			b->is_unusable = true;
	}
	r->binary = b;
	if (!r->bundle && bundle_empty(&r->bundle, &why)) {
		binary_put(&binaries, b);
		free(r);
		return NULL;
	}
	r->wrapper = (struct wrapper){.magic = KP_WRAPPER_HIPF,
				      .version = KP_WRAPPER_VERSION,
				      .pointer = bundle_address(r->bundle)};
	return r;
}

/* The bundle first: it refers to archives that the binary keeps open. */
static void registration_free(struct registration *r)
{
	bundle_put(r->bundle);
	binary_put(&binaries, r->binary);
	free(r);
}

/* ---- registering ---- */

#define API __attribute__((visibility("default")))

API void *__hipRegisterFatBinary(const struct wrapper *wrapper);
API void __hipUnregisterFatBinary(void *handle);

void *__hipRegisterFatBinary(const struct wrapper *wrapper)
{
	struct registration *r = NULL;
	int cancel, before = errno;
	struct runtime runtime;
	void *handle = NULL;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	runtime_find(wrapper, &runtime);
	if (runtime.add && wrapper && wrapper->magic == KP_WRAPPER_HIPK &&
	    wrapper->version == KP_WRAPPER_VERSION && !runtime.takes_kpack) {
		kp_lock_take(&library_lock);
		/* nothing is to be done if the user asked for that */
		if (binaries_start(&binaries, NULL) || !binaries.env.disabled)
			r = registration_new(wrapper);
		kp_lock_give(&library_lock);
	}
	if (runtime.add)
		handle = runtime.add(r ? &r->wrapper : wrapper);
	if (r) {
		kp_lock_take(&library_lock);
		if (handle) {
			r->handle = handle;
			r->runtime = runtime;
			r->next = registrations;
			registrations = r;
		} else {
			registration_free(r);
		}
		kp_lock_give(&library_lock);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = before;
	return handle;
}

/* The runtime reads the bundle until it has forgotten the handle. */
void __hipUnregisterFatBinary(void *handle)
{
	struct registration **at = &registrations, *r = NULL;
	struct runtime runtime;

	kp_lock_take(&library_lock);
	while (handle && *at && (*at)->handle != handle)
		at = &(*at)->next;
	if (handle && *at) {
		r = *at;
		*at = r->next;
		runtime = r->runtime;
	}
	kp_lock_give(&library_lock);
	if (!r)
		runtime_find(__builtin_return_address(0), &runtime);
	if (runtime.drop)
		runtime.drop(handle);
	if (!r)
		return;
	kp_lock_take(&library_lock);
	registration_free(r);
	kp_lock_give(&library_lock);
}
