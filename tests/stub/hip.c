/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the HIP runtime, libamdhip64.so.5: it registers fat and converted
 * binaries as the real one does, and logs the code object that each of their wrappers
 * gives for each architecture.  Two files that give the same lines are equal for a
 * program.  It uses no GPU: calls that need one fail.
 *
 *   STUB_LOG      file to append the lines to
 *   STUB_ARCHES   agents to load for, separated by spaces; unset: those of the bundle
 *   STUB_DEFERRED if set, a wrapper's code is loaded when a kernel of it is launched
 *
 * With STUB_OLD defined it is a runtime from before kpack, which refuses converted binaries.
 *
 *   FILE NUMBER ARCH SIZE XXH3       a code object
 *   FILE NUMBER ARCH none            no code for this agent
 *   FILE NUMBER function|launch NAME
 *   FILE NUMBER refused
 *   FILE NUMBER fault WHAT
 *
 * FILE is the base name, or "?" if the wrapper is not in a file; NUMBER counts the wrappers
 * FILE registered.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "fat.h"
#ifndef STUB_OLD
#include "core/rocm_kpack/kpack.h"
#endif

#define HIPF UINT32_C(0x48495046)
#define HIPK UINT32_C(0x4b504948)
#define FILES_MAX 256
#define ARCHES_MAX 64

struct wrapper {
	uint32_t magic, version;
	const void *pointer;
	uint64_t reserved1;
};

/* A registered wrapper; what __hipRegisterFatBinary returns leads here. */
struct module {
	const char *path, *file; /* as it was loaded, and its base name */
	unsigned number;
	struct wrapper wrapper;
	bool recorded;
};

struct function {
	const void *host;
	const char *name;
	struct module *module;
	struct function *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static struct function *functions;

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void leave_lock(void)
{
	pthread_mutex_unlock(&lock);
}

/* A child may call whatever other threads did during fork(). */
__attribute__((constructor)) static void add_handlers(void)
{
	if (pthread_atfork(take_lock, leave_lock, leave_lock))
		abort();
}

/* --- the log ------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void note(const struct module *m,
						       const char *format, ...)
{
	const char *path = getenv("STUB_LOG");
	va_list args;

	if (!log_file && path)
		log_file = fopen(path, "a");
	if (!log_file)
		return;
	fprintf(log_file, "%s %u ", m->file, m->number);
	va_start(args, format);
	vfprintf(log_file, format, args);
	va_end(args);
	fputc('\n', log_file);
}

static void note_object(const struct module *m, const char *arch, const void *data,
			size_t size)
{
	XXH128_hash_t hash = XXH3_128bits(data, size);

	note(m, "%s %zu %016" PRIx64 "%016" PRIx64, arch, size, hash.high64, hash.low64);
}

__attribute__((destructor)) static void close_log(void)
{
	if (log_file)
		fclose(log_file);
}

/* --- code for agents ---------------------------------------------------------------- */

/* Split STUB_ARCHES; the arches point into BUF. */
static size_t asked(char *buf, size_t size, const char *arches[ARCHES_MAX])
{
	const char *list = getenv("STUB_ARCHES");
	size_t n = 0;

	snprintf(buf, size, "%s", list ? list : "");
	for (char *rest = buf, *one; n < ARCHES_MAX && (one = strsep(&rest, " "));)
		if (*one)
			arches[n++] = one;
	return n;
}

static void record_fat(const struct module *m, const struct wrapper *w,
		       const char *const *arches, size_t n_arches)
{
	struct fat fat;

	if (!fat_read(w->pointer, &fat))
		note(m, "fault nothing a runtime knows");
	for (size_t i = 0; n_arches == 0 && i < fat.n_objects; i++)
		note_object(m, fat.objects[i].arch, fat.objects[i].data,
			    fat.objects[i].size);
	for (size_t i = 0; i < n_arches; i++) {
		const struct fat_object *o = fat_find(&fat, arches[i]);

		if (o)
			note_object(m, arches[i], o->data, o->size);
		else
			note(m, "%s none", arches[i]);
	}
	fat_fini(&fat);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#ifdef STUB_OLD
enum { LOADS_HIPK = false };

static void record_kpack(const struct module *m, const struct wrapper *w,
			 const char *const *arches, size_t n_arches)
{
	(void)m, (void)w, (void)arches, (void)n_arches;
}
#else
enum { LOADS_HIPK = true };

static bool is_absence(kpack_error_t e)
{
	return e == KPACK_ERROR_KERNEL_NOT_FOUND || e == KPACK_ERROR_ARCH_NOT_FOUND ||
	       e == KPACK_ERROR_ARCHIVE_NOT_FOUND;
}

static void record_load(const struct module *m, kpack_cache_t cache,
			const struct wrapper *w, const char *path, const char *arch)
{
	void *data;
	size_t size;
	kpack_error_t e = kpack_load_code_object(
		cache, w->pointer, path, (uint32_t)w->reserved1, &arch, 1, &data, &size);

	if (e == KPACK_SUCCESS) {
		note_object(m, arch, data, size);
		kpack_free_code_object(data);
	} else if (is_absence(e)) {
		note(m, "%s none", arch);
	} else {
		note(m, "fault %s error %d", arch, (int)e);
	}
}

static bool same_file(const char *a, const char *b)
{
	char real_a[PATH_MAX], real_b[PATH_MAX];

	return realpath(a, real_a) && realpath(b, real_b) && strcmp(real_a, real_b) == 0;
}

static void record_kpack(const struct module *m, const struct wrapper *w,
			 const char *const *arches, size_t n_arches)
{
	static kpack_cache_t cache;
	char path[PATH_MAX];

	if (!cache && kpack_cache_create(&cache) != KPACK_SUCCESS)
		note(m, "fault no cache");
	if (kpack_discover_binary_path(w->pointer, path, sizeof(path), NULL) !=
	    KPACK_SUCCESS)
		note(m, "fault no path");
	else if (!same_file(path, m->path))
		note(m, "fault path %s", path);
	else
		for (size_t i = 0; i < n_arches; i++)
			record_load(m, cache, w, path, arches[i]);
}

#endif

static void record(struct module *m)
{
	const struct wrapper *w = &m->wrapper;
	const char *arches[ARCHES_MAX];
	char buf[4096];
	size_t n = asked(buf, sizeof(buf), arches);

	if (m->recorded)
		return;
	m->recorded = true;
	if (w->version != 1)
		note(m, "fault version %u", w->version);
	else if (w->magic == HIPF)
		record_fat(m, w, arches, n);
	else if (w->magic == HIPK)
		record_kpack(m, w, arches, n);
	else
		note(m, "fault magic %08x", w->magic);
}

/* --- the runtime -------------------------------------------------------------------- */

static unsigned next_number(const char *file)
{
	static struct module seen[FILES_MAX];
	size_t i = 0;

	while (i < FILES_MAX - 1 && seen[i].file && strcmp(seen[i].file, file) != 0)
		i++;
	if (!seen[i].file)
		seen[i].file = strdup(file);
	return seen[i].number++;
}

/* Registrations are kept: a launch after unregistering would be the caller's fault. */
static struct module *module_new(const void *address)
{
	struct module *m = calloc(1, sizeof(*m));
	Dl_info info;

	if (!m)
		abort();
	m->path = strdup(dladdr(address, &info) ? info.dli_fname : "?");
	m->file = base_name(m->path);
	m->number = next_number(m->file);
	return m;
}

#define API __attribute__((visibility("default")))

enum {
	HIP_NO_FUNCTION = 98,
	HIP_NO_DEVICE = 100,
};

API struct module *__hipRegisterFatBinary(const struct wrapper *w);
API void __hipRegisterFunction(struct module *m, const void *host, const char *name);
API int hipLaunchKernel(const void *host);

struct module *__hipRegisterFatBinary(const struct wrapper *w)
{
	struct module *m;

	pthread_mutex_lock(&lock);
	m = module_new(w);
	m->wrapper = *w;
	if (w->magic == HIPK && !LOADS_HIPK) {
		note(m, "refused");
		m = NULL;
	} else if (!getenv("STUB_DEFERRED")) {
		record(m);
	}
	pthread_mutex_unlock(&lock);
	return m;
}

/* The third argument is the kernel's name; the others do not matter here. */
void __hipRegisterFunction(struct module *m, const void *host, const char *name)
{
	struct function *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	pthread_mutex_lock(&lock);
	*f = (struct function){host, strdup(name), m, functions};
	functions = f;
	if (m)
		note(m, "function %s", name);
	pthread_mutex_unlock(&lock);
}

/* Log the kernel that would be launched. */
int hipLaunchKernel(const void *host)
{
	const struct function *f;

	pthread_mutex_lock(&lock);
	for (f = functions; f && f->host != host;)
		f = f->next;
	if (f && f->module) {
		record(f->module);
		note(f->module, "launch %s", f->name);
	}
	pthread_mutex_unlock(&lock);
	return f && f->module ? 0 : HIP_NO_FUNCTION;
}

#define RETURNS(value, name)                                                             \
	API int name(void);                                                              \
	int name(void)                                                                   \
	{                                                                                \
		return value;                                                            \
	}

RETURNS(0, __hipUnregisterFatBinary)
RETURNS(0, __hipRegisterVar)
RETURNS(0, __hipRegisterManagedVar)
RETURNS(0, __hipRegisterSurface)
RETURNS(0, __hipRegisterTexture)
RETURNS(0, __hipPushCallConfiguration)
RETURNS(0, __hipPopCallConfiguration)
RETURNS(0, hipGetLastError)

/* Calls that need a GPU. */
RETURNS(HIP_NO_DEVICE, hipFree)
RETURNS(HIP_NO_DEVICE, hipGetDevice)
RETURNS(HIP_NO_DEVICE, hipGetDeviceProperties)
RETURNS(HIP_NO_DEVICE, hipMalloc)
RETURNS(HIP_NO_DEVICE, hipMemcpy)
RETURNS(HIP_NO_DEVICE, hipMemcpy2D)
RETURNS(HIP_NO_DEVICE, hipMemcpyAsync)
RETURNS(HIP_NO_DEVICE, hipMemset2DAsync)
RETURNS(HIP_NO_DEVICE, hipMemsetAsync)
RETURNS(HIP_NO_DEVICE, hipStreamSynchronize)
