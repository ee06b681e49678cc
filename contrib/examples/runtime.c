/* SPDX-License-Identifier: MIT */
/*
 * A small HIP runtime, which shows how a real one loads code objects with librocm_kpack.
 *
 *  - A library registers its wrappers while it is loaded; nothing is read at that time.
 *  - The first launch on a device loads the code object of the kernel's wrapper from an
 *    archive: for the device, or else for the generic target that covers it.
 *  - If that fails, code that is still embedded in the library is loaded.
 *  - A code object is loaded once per wrapper and device, by whichever thread comes
 *  first, and
 *    stays loaded.
 *
 * Wrappers that were not converted are refused here; a real runtime handles them as
 * before.  No GPU is used: loading prints a line, launching does nothing more, and device
 * memory is the host's.  It replaces libamdhip64.so.5 for programs that need no more than
 * this:
 *
 *   cc -std=c11 -D_GNU_SOURCE -shared -fPIC -pthread runtime.c -o libamdhip64.so.5 \
 *      -Wl,-soname,libamdhip64.so.5 -Wl,--version-script=runtime.map \
 *      $(pkg-config --cflags --libs rocm_kpack) \
 *      -Wl,-rpath,$(pkg-config --variable=libdir rocm_kpack)
 *   LD_LIBRARY_PATH=. EXAMPLE_DEVICES="gfx1103 gfx90a:sramecc+:xnack-" PROGRAM
 *
 *   gpu 0 gfx1103: librocrand.so.1#0: 1234 bytes, crc32 0123abcd, from an archive
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rocm_kpack/kpack.h>
#include <rocm_kpack/kpackx.h>

#define DEVICES_MAX 16

/* HIP's numbers. */
enum hip_error {
	HIP_SUCCESS = 0,
	HIP_OUT_OF_MEMORY = 2,
	HIP_INVALID_DEVICE_FUNCTION = 98,
	HIP_INVALID_DEVICE = 101,
	HIP_INVALID_IMAGE = 200,
	HIP_NO_BINARY_FOR_GPU = 209,
};

/* ---- devices ----------------------------------------------------------------------- */

static struct device {
	const char *archs[2]; /* the architectures that it runs, best first */
	size_t n_archs;
	char generic[64];
} devices[DEVICES_MAX];
static int n_devices;
static _Thread_local int current_device;

static kpack_cache_t cache; /* keeps archives open, also for libraries loaded later */
static pthread_once_t started = PTHREAD_ONCE_INIT;

/* Called at the first launch or hipSetDevice: loading libraries needs none of this. */
static void start(void)
{
	const char *list = getenv("EXAMPLE_DEVICES");
	char *rest = strdup(list ? list : "gfx1100"), *name;

	while (n_devices < DEVICES_MAX && (name = strsep(&rest, " "))) {
		struct device *d = &devices[n_devices];

		if (!*name)
			continue;
		n_devices++;
		d->archs[d->n_archs++] = name;
		/*
		 * librocm_kpack takes generic code only if the list names the generic
		 * target
		 */
		if (!kpackx_generic_target(name, d->generic, sizeof(d->generic)))
			d->archs[d->n_archs++] = d->generic;
	}
	if (kpack_cache_create(&cache))
		cache = NULL; /* every look-up fails, and only embedded code is loaded */
}

/* ---- finding a code object --------------------------------------------------------- */

/* The compiler puts one into .hipFatBinSegment for each bundle of code objects. */
struct wrapper {
	uint32_t magic, version;
	const void *binary; /* the marker, which names archives */
	uint64_t index;     /* of the wrapper in its file */
};

#define HIPK UINT32_C(0x4b504948) /* a converted wrapper; a fat binary's has "HIPF" */

struct code {
	char path[PATH_MAX]; /* the file of the wrapper */
	uint32_t index;
	void *data;
	size_t size;
	const char *from;
};

/*
 * Find the code; WHY says what was wrong with the archives, even if embedded code was
 * found.
 */
static kpack_error_t find_code(const struct wrapper *w, const struct device *d,
			       struct code *code, struct kpackx_error *why)
{
	kpack_error_t err;

	/* the marker's search paths are relative to the file */
	if (kpack_discover_binary_path(w, code->path, sizeof(code->path), NULL)) {
		snprintf(why->text, sizeof(why->text), "cannot find the wrapper's file");
		return KPACK_ERROR_PATH_DISCOVERY_FAILED;
	}
	code->index = (uint32_t)w->index;
	code->from = "an archive";
	err = kpackx_load_code_object(cache, w->binary, code->path, code->index, d->archs,
				      d->n_archs, &code->data, &code->size, why);
	if (!err)
		return KPACK_SUCCESS;
	code->from = "the file itself";
	if (!kpackx_load_embedded(code->path, code->index, d->archs, d->n_archs,
				  &code->data, &code->size, NULL))
		return KPACK_SUCCESS;
	return err;
}

/* ---- loading a code object --------------------------------------------------------- */

/* The same as zlib's, so that results can be compared. */
static uint32_t crc32(const uint8_t *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static void say(const struct code *code, int device, const char *what, const char *text)
{
	const char *slash = strrchr(code->path, '/');

	fprintf(stderr, "gpu %d %s: %s#%u: %s%s\n", device, devices[device].archs[0],
		slash ? slash + 1 : code->path, code->index, what, text);
}

/*
 * A real runtime hands the bytes to its driver here, and after that no longer needs them.
 */
static void load_to_gpu(struct code *code, int device)
{
	char text[80];

	snprintf(text, sizeof(text), "%zu bytes, crc32 %08x, from ", code->size,
		 crc32(code->data, code->size));
	say(code, device, text, code->from);
	kpack_free_code_object(code->data);
}

static enum hip_error load(const struct wrapper *w, int device)
{
	struct code code = {.path = "?"};
	struct kpackx_error why = {0};
	kpack_error_t err = find_code(w, &devices[device], &code, &why);

	if (why.text[0])
		say(&code, device, err ? "" : "not from an archive: ", why.text);
	if (!err)
		load_to_gpu(&code, device);
	if (err == KPACK_ERROR_ARCH_NOT_FOUND || err == KPACK_ERROR_ARCHIVE_NOT_FOUND)
		return HIP_NO_BINARY_FOR_GPU;
	return err ? HIP_INVALID_IMAGE : HIP_SUCCESS;
}

/* ---- functions that compiled code calls -------------------------------------------- */

/* A registered wrapper, and the devices on which it is loaded. */
struct module {
	const struct wrapper *wrapper;
	struct {
		pthread_mutex_t lock;
		bool loaded;
	} on[DEVICES_MAX];
};

struct function {
	const void *host; /* the host function by which programs call the kernel */
	struct module *module;
	struct function *next;
};

static pthread_rwlock_t functions_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct function *functions; /* a real runtime would hash them */
static _Thread_local enum hip_error last_error;

#define API __attribute__((visibility("default")))

API struct module *__hipRegisterFatBinary(const struct wrapper *wrapper);
API void __hipRegisterFunction(struct module *module, const void *host);
API void __hipUnregisterFatBinary(struct module *module);
API int hipSetDevice(int device);
API int hipLaunchKernel(const void *host);
API int hipGetLastError(void);
API int hipMalloc(void **memory, size_t size);
API int hipFree(void *memory);
API int hipMemcpy(void *to, const void *from, size_t size);
API int hipStreamSynchronize(void *stream);
API int __hipPushCallConfiguration(void);
API int __hipPopCallConfiguration(void);

/*
 * Called in a library's constructor: only remember the wrapper, and do not even read its
 * marker.
 */
struct module *__hipRegisterFatBinary(const struct wrapper *wrapper)
{
	struct module *m;

	if (wrapper->magic != HIPK || wrapper->version != 1)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->wrapper = wrapper;
	for (int i = 0; i < DEVICES_MAX; i++)
		pthread_mutex_init(&m->on[i].lock, NULL);
	return m;
}

/* The further arguments, names and sizes, do not matter here. */
void __hipRegisterFunction(struct module *module, const void *host)
{
	struct function *f = malloc(sizeof(*f));

	if (!f)
		return;
	pthread_rwlock_wrlock(&functions_lock);
	*f = (struct function){host, module, functions};
	functions = f;
	pthread_rwlock_unlock(&functions_lock);
}

void __hipUnregisterFatBinary(struct module *module)
{
	pthread_rwlock_wrlock(&functions_lock);
	for (struct function **at = &functions, *f; (f = *at);) {
		if (f->module == module) {
			*at = f->next;
			free(f);
		} else {
			at = &f->next;
		}
	}
	pthread_rwlock_unlock(&functions_lock);
	free(module);
}

static int result(enum hip_error error)
{
	if (error)
		last_error = error;
	return (int)error;
}

int hipGetLastError(void)
{
	int error = (int)last_error;

	last_error = HIP_SUCCESS;
	return error;
}

int hipSetDevice(int device)
{
	pthread_once(&started, start);
	if (device < 0 || device >= n_devices)
		return result(HIP_INVALID_DEVICE);
	current_device = device;
	return HIP_SUCCESS;
}

/*
 * Other wrappers and devices do not wait.  A failure is not remembered: archives may
 * appear.
 */
static enum hip_error load_once(struct module *m, int device)
{
	enum hip_error error = HIP_SUCCESS;

	pthread_mutex_lock(&m->on[device].lock);
	if (!m->on[device].loaded)
		error = load(m->wrapper, device);
	m->on[device].loaded = !error;
	pthread_mutex_unlock(&m->on[device].lock);
	return error;
}

int hipLaunchKernel(const void *host)
{
	struct function *f;
	struct module *m;

	pthread_once(&started, start);
	pthread_rwlock_rdlock(&functions_lock);
	for (f = functions; f && f->host != host;)
		f = f->next;
	m = f ? f->module : NULL;
	pthread_rwlock_unlock(&functions_lock);
	if (n_devices == 0)
		return result(HIP_INVALID_DEVICE);
	return result(m ? load_once(m, current_device) : HIP_INVALID_DEVICE_FUNCTION);
}

/* Without a GPU the size of the grid does not matter. */
int __hipPushCallConfiguration(void)
{
	return HIP_SUCCESS;
}

int __hipPopCallConfiguration(void)
{
	return HIP_SUCCESS;
}

int hipMalloc(void **memory, size_t size)
{
	*memory = calloc(1, size ? size : 1);
	return result(*memory ? HIP_SUCCESS : HIP_OUT_OF_MEMORY);
}

int hipFree(void *memory)
{
	free(memory);
	return HIP_SUCCESS;
}

int hipMemcpy(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return HIP_SUCCESS;
}

/* Every call has ended when it returns. */
int hipStreamSynchronize(void *stream)
{
	(void)stream;
	return HIP_SUCCESS;
}
