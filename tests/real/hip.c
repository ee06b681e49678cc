/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the HIP runtime, libamdhip64.so.6 and .7, under which libraries that Debian
 * ships run unmodified: rocBLAS and hipBLASLt choose and launch kernels.  It has one GPU that
 * computes nothing.  Its memory is malloc's.  What a library asks it for is logged, so that
 * two runs can be compared:
 *
 *   load ARCH SIZE XXH3        a module: the code object for the GPU
 *   refused ERROR ARCH         a module that is not for the GPU
 *   function NAME [ERROR]      looked up in the symbol table of the module's code object
 *   launch NAME GRID BLOCK SHARED BYTES      BYTES: of the arguments
 *   object FILE NUMBER ARCH SIZE XXH3        of a registered binary; as tests/stub/hip.c
 *   kernel FILE NUMBER NAME GRID BLOCK SHARED  a launch of its kernel
 *   copy BYTES KIND
 *
 *   STUB_LOG   file to append the lines to
 *   STUB_GPU   target ID of the GPU (gfx1100)
 *   STUB_CUS   its number of compute units (96)
 *   STUB_OLD   set: as before kpack, refuse converted binaries; eager: load the code of
 *              a binary when it is registered
 *
 * tests/real/libraries links it with the version nodes that the libraries import.
 */
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "core/rocm_kpack/kpack.h"
#include "tests/stub/fat.h"

#define API __attribute__((visibility("default")))
#define HIPF UINT32_C(0x48495046)
#define HIPK UINT32_C(0x4b504948)

struct wrapper {
	uint32_t magic, version;
	const void *pointer;
	uint64_t index;
};

/* A code object: its bytes are copied, as a runtime does on loading. */
struct object {
	uint8_t *data;
	size_t size;
};

struct ihipModule_t {
	struct object object;
};

struct ihipModuleSymbol_t {
	const char *name;
};

/* A registered wrapper. */
struct binary {
	const char *path, *file;
	unsigned number;
	struct wrapper wrapper;
	bool tried;
	struct object object; /* no data: it has none for the GPU */
};

struct kernel {
	const void *host;
	const char *name;
	struct binary *binary;
	struct kernel *next;
};

struct configuration {
	dim3 grid, block;
	size_t shared;
	hipStream_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
static _Thread_local struct configuration pushed[16];
static _Thread_local unsigned n_pushed;
static _Thread_local hipError_t last_error;

static hipError_t result(hipError_t error)
{
	if (error != hipSuccess)
		last_error = error;
	return error;
}

static const char *gpu(void)
{
	const char *name = getenv("STUB_GPU");

	return name ? name : "gfx1100";
}

static bool is_gfx9(void)
{
	return strncmp(gpu(), "gfx9", 4) == 0;
}

static int compute_units(void)
{
	const char *n = getenv("STUB_CUS");

	return n ? atoi(n) : 96;
}

/* --- the log ------------------------------------------------------------------------ */

__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

void note(const char *format, ...)
{
	static FILE *file;
	const char *path = getenv("STUB_LOG");
	va_list args;

	pthread_mutex_lock(&lock);
	if (!file && path) {
		file = fopen(path, "a");
		if (file)
			setvbuf(file, NULL, _IOLBF, 0);
	}
	if (file) {
		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
		fputc('\n', file);
	}
	pthread_mutex_unlock(&lock);
}

static const char *hash_text(const void *data, size_t size, char out[33])
{
	XXH128_hash_t hash = XXH3_128bits(data, size);

	snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
	return out;
}

/* --- code objects ------------------------------------------------------------------- */

/* May the GPU run code for target ID ARCH?  A feature that ARCH does not state may be on or off. */
static bool runs(const char *arch)
{
	char text[FAT_ARCH_MAX], *rest = text, *feature;
	size_t n = strcspn(gpu(), ":");

	snprintf(text, sizeof(text), "%s", arch);
	feature = strsep(&rest, ":");
	if (strlen(feature) != n || strncmp(feature, gpu(), n) != 0)
		return false;
	while ((feature = strsep(&rest, ":")))
		if (!strstr(gpu() + n, feature))
			return false;
	return true;
}

/* Copy the code object at IMAGE that the GPU runs. */
static hipError_t take_object(const void *image, struct object *out)
{
	hipError_t error = hipErrorNoBinaryForGpu;
	char hash[33];
	struct fat fat;

	if (!fat_read(image, &fat)) {
		note("refused %d ?", hipErrorInvalidImage);
		return hipErrorInvalidImage;
	}
	for (size_t i = 0; i < fat.n_objects && error != hipSuccess; i++) {
		const struct fat_object *o = &fat.objects[i];

		if (!runs(o->arch)) {
			if (fat.n_objects == 1)
				note("refused %d %s", error, o->arch);
			continue;
		}
		out->data = malloc(o->size);
		if (!out->data)
			abort();
		memcpy(out->data, o->data, o->size);
		out->size = o->size;
		note("load %s %zu %s", o->arch, o->size,
		     hash_text(o->data, o->size, hash));
		error = hipSuccess;
	}
	fat_fini(&fat);
	return error;
}

/* Whether the symbol table of O has the kernel's descriptor.  Like a runtime's, O is trusted only in part. */
static bool has_kernel(const struct object *o, const char *name)
{
	Elf64_Ehdr h;
	Elf64_Shdr s, names;
	Elf64_Sym symbol;

	if (o->size < sizeof(h))
		return false;
	memcpy(&h, o->data, sizeof(h));
	if (h.e_shoff > o->size || h.e_shnum > (o->size - h.e_shoff) / sizeof(s))
		return false;
	for (unsigned i = 0; i < h.e_shnum; i++) {
		memcpy(&s, o->data + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_DYNSYM || s.sh_link >= h.e_shnum)
			continue;
		memcpy(&names, o->data + h.e_shoff + s.sh_link * sizeof(s), sizeof(s));
		if (s.sh_offset > o->size || s.sh_size > o->size - s.sh_offset ||
		    names.sh_offset > o->size ||
		    names.sh_size > o->size - names.sh_offset)
			continue;
		for (size_t at = 0; at + sizeof(symbol) <= s.sh_size;
		     at += sizeof(symbol)) {
			const char *text;
			size_t n = strlen(name), left;

			memcpy(&symbol, o->data + s.sh_offset + at, sizeof(symbol));
			if (symbol.st_name >= names.sh_size)
				continue;
			text = (const char *)o->data + names.sh_offset + symbol.st_name;
			left = names.sh_size - symbol.st_name;
			if (left > n + 3 && memcmp(text, name, n) == 0 &&
			    memcmp(text + n, ".kd", 4) == 0)
				return true;
			/* an object of MIOpen */
			if (left > 4 && memcmp(text, "*.kd", 5) == 0)
				return true;
		}
	}
	return false;
}

/* --- modules ------------------------------------------------------------------------ */

API hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	struct ihipModule_t *m = calloc(1, sizeof(*m));
	hipError_t error;

	if (!m)
		return hipErrorOutOfMemory;
	error = take_object(image, &m->object);
	if (error == hipSuccess)
		*module = m;
	else
		free(m);
	return result(error);
}

API hipError_t hipModuleLoad(hipModule_t *module, const char *path)
{
	hipError_t error = hipErrorFileNotFound;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *data;

	if (fd < 0)
		return result(error);
	if (fstat(fd, &st) == 0 && (data = malloc((size_t)st.st_size + 1))) {
		error = read(fd, data, (size_t)st.st_size) == st.st_size &&
					st.st_size > 64
				? hipModuleLoadData(module, data)
				: hipErrorInvalidImage;
		free(data);
	}
	close(fd);
	return result(error);
}

API hipError_t hipModuleUnload(hipModule_t module)
{
	free(module->object.data);
	free(module);
	return hipSuccess;
}

API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module,
				    const char *name)
{
	struct ihipModuleSymbol_t *f;

	if (!has_kernel(&module->object, name)) {
		note("function %s %d", name, hipErrorNotFound);
		return result(hipErrorNotFound);
	}
	note("function %s", name);
	f = calloc(1, sizeof(*f));
	if (!f)
		return hipErrorOutOfMemory;
	f->name = strdup(name);
	*function = f;
	return hipSuccess;
}

API hipError_t hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy,
					uint32_t gz, uint32_t bx, uint32_t by,
					uint32_t bz, size_t shared, hipStream_t stream,
					void **params, void **extra, hipEvent_t start,
					hipEvent_t stop, uint32_t flags)
{
	size_t bytes = extra ? *(size_t *)extra[3] : 0;

	(void)stream, (void)params, (void)start, (void)stop, (void)flags;
	note("launch %s %ux%ux%u %ux%ux%u %zu %zu", f->name, gx, gy, gz, bx, by, bz,
	     shared, bytes);
	return hipSuccess;
}

API hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy,
				     unsigned gz, unsigned bx, unsigned by, unsigned bz,
				     unsigned shared, hipStream_t stream, void **params,
				     void **extra)
{
	return hipExtModuleLaunchKernel(f, gx * bx, gy * by, gz * bz, bx, by, bz, shared,
					stream, params, extra, NULL, NULL, 0);
}

API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy,
						unsigned gz, unsigned bx, unsigned by,
						unsigned bz, unsigned shared,
						hipStream_t stream, void **params)
{
	return hipModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params,
				     NULL);
}

API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
								  hipFunction_t f,
								  int size, size_t shared)
{
	(void)f, (void)size, (void)shared;
	*blocks = 2;
	return hipSuccess;
}

/* --- registered binaries ------------------------------------------------------------ */

API struct binary *__hipRegisterFatBinary(const struct wrapper *w);
API void __hipUnregisterFatBinary(struct binary *b);
API void __hipRegisterFunction(struct binary *b, const void *host, char *device,
			       const char *name, unsigned threads, void *tid, void *bid,
			       void *block, void *grid, int *size);
API void __hipRegisterVar(void *b, void *var, char *host, char *device, int ext,
			  size_t size, int constant, int global);
API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					  hipStream_t stream);
API hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
					 hipStream_t *stream);

static unsigned next_number(const char *path)
{
	static struct {
		char *path;
		unsigned n;
	} seen[256];
	size_t i = 0;

	while (i < 255 && seen[i].path && strcmp(seen[i].path, path) != 0)
		i++;
	if (!seen[i].path)
		seen[i].path = strdup(path);
	return seen[i].n++;
}

static bool load_binary(struct binary *b);

struct binary *__hipRegisterFatBinary(const struct wrapper *w)
{
	const char *slash, *old = getenv("STUB_OLD");
	struct binary *b;
	Dl_info info;

	if (old && w->magic == HIPK)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	/* libkpack_hip.so's wrappers are in no file */
	b->path = strdup(dladdr(w, &info) ? info.dli_fname : "?");
	slash = strrchr(b->path, '/');
	b->file = slash ? slash + 1 : b->path;
	pthread_mutex_lock(&lock);
	b->number = next_number(b->path);
	pthread_mutex_unlock(&lock);
	b->wrapper = *w;
	if (old && strcmp(old, "eager") == 0)
		(void)load_binary(b);
	return b;
}

void __hipUnregisterFatBinary(struct binary *b)
{
	(void)b; /* its kernels may still be in the list */
}

void __hipRegisterFunction(struct binary *b, const void *host, char *device,
			   const char *name, unsigned threads, void *tid, void *bid,
			   void *block, void *grid, int *size)
{
	struct kernel *k = calloc(1, sizeof(*k));

	(void)device, (void)threads, (void)tid, (void)bid, (void)block, (void)grid,
		(void)size;
	if (!k)
		abort();
	pthread_mutex_lock(&lock);
	*k = (struct kernel){host, strdup(name), b, kernels};
	kernels = k;
	pthread_mutex_unlock(&lock);
}

void __hipRegisterVar(void *b, void *var, char *host, char *device, int ext, size_t size,
		      int constant, int global)
{
	(void)b, (void)var, (void)host, (void)device, (void)ext, (void)size,
		(void)constant, (void)global;
}

/* An old runtime is linked without librocm_kpack. */
#pragma weak kpack_cache_create
#pragma weak kpack_discover_binary_path
#pragma weak kpack_load_code_object

/* As tests/stub/fat.c does for HIPF, but with the same calls as AMD's runtime. */
static void load_hipk(struct binary *b)
{
	static kpack_cache_t cache;
	const char *arch = gpu();
	char path[4096];
	void *data;
	kpack_error_t e;

	if (!cache && kpack_cache_create(&cache) != KPACK_SUCCESS)
		abort();
	if (kpack_discover_binary_path(b->wrapper.pointer, path, sizeof(path), NULL) !=
	    KPACK_SUCCESS)
		return;
	e = kpack_load_code_object(cache, b->wrapper.pointer, path,
				   (uint32_t)b->wrapper.index, &arch, 1, &data,
				   &b->object.size);
	if (e == KPACK_SUCCESS)
		b->object.data = data; /* never freed: it is used until the end */
}

static void load_hipf(struct binary *b)
{
	const struct fat_object *o;
	struct fat fat;

	if (fat_read(b->wrapper.pointer, &fat) && (o = fat_find(&fat, gpu()))) {
		b->object.data = malloc(o->size);
		if (!b->object.data)
			abort();
		memcpy(b->object.data, o->data, o->size);
		b->object.size = o->size;
	}
	fat_fini(&fat);
}

/* Code is loaded when a kernel is launched for the first time. */
static bool load_binary(struct binary *b)
{
	char hash[33];

	if (!b->tried) {
		if (b->wrapper.magic == HIPK)
			load_hipk(b);
		else if (b->wrapper.magic == HIPF)
			load_hipf(b);
		b->tried = true;
		if (b->object.data)
			note("object %s %u %s %zu %s", b->file, b->number, gpu(),
			     b->object.size,
			     hash_text(b->object.data, b->object.size, hash));
		else
			note("object %s %u %s none", b->file, b->number, gpu());
	}
	return b->object.data;
}

API hipError_t hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **args,
			       size_t shared, hipStream_t stream)
{
	const struct kernel *k;

	(void)args, (void)stream;
	pthread_mutex_lock(&lock);
	for (k = kernels; k && k->host != host;)
		k = k->next;
	pthread_mutex_unlock(&lock);
	if (!k || !k->binary || !load_binary(k->binary))
		return result(hipErrorInvalidDeviceFunction);
	if (!has_kernel(&k->binary->object, k->name))
		return result(hipErrorNotFound);
	note("kernel %s %u %s %ux%ux%u %ux%ux%u %zu", k->binary->file, k->binary->number,
	     k->name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
	return hipSuccess;
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
				      hipStream_t stream)
{
	if (n_pushed == sizeof(pushed) / sizeof(pushed[0]))
		abort();
	pushed[n_pushed++] = (struct configuration){grid, block, shared, stream};
	return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
				     hipStream_t *stream)
{
	const struct configuration *c;

	if (n_pushed == 0)
		abort();
	c = &pushed[--n_pushed];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*stream = c->stream;
	return hipSuccess;
}

/* --- the device --------------------------------------------------------------------- */

API hipError_t hipGetDeviceCount(int *n)
{
	*n = 1;
	return hipSuccess;
}

API hipError_t hipInit(unsigned flags)
{
	return result(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

API hipError_t hipGetDevice(int *device)
{
	*device = 0;
	return hipSuccess;
}

API hipError_t hipSetDevice(int device)
{
	return result(device == 0 ? hipSuccess : hipErrorInvalidDevice);
}

API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *p, int device)
{
	if (device != 0)
		return result(hipErrorInvalidDevice);
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "stub");
	snprintf(p->gcnArchName, sizeof(p->gcnArchName), "%s", gpu());
	p->totalGlobalMem = (size_t)16 << 30;
	p->sharedMemPerBlock = p->sharedMemPerMultiprocessor =
		p->maxSharedMemoryPerMultiProcessor = 64 << 10;
	p->regsPerBlock = 64 << 10;
	p->warpSize = is_gfx9() ? 64 : 32;
	p->maxThreadsPerBlock = 1024;
	for (int i = 0; i < 3; i++) {
		p->maxThreadsDim[i] = 1024;
		p->maxGridSize[i] = 0x7fffffff;
	}
	p->clockRate = 1700000;
	p->memoryClockRate = 1200000;
	p->memoryBusWidth = 256;
	p->totalConstMem = (size_t)2 << 30;
	p->major = is_gfx9() ? 9 : atoi(gpu() + 3) / 100;
	p->multiProcessorCount = compute_units();
	p->maxThreadsPerMultiProcessor = 2048;
	p->l2CacheSize = 8 << 20;
	p->asicRevision = 1;
	return hipSuccess;
}

API hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute,
				     int device)
{
	hipDeviceProp_tR0600 p;

	if (hipGetDevicePropertiesR0600(&p, device) != hipSuccess)
		return hipErrorInvalidDevice;
	switch ((int)attribute) {
	case hipDeviceAttributeWarpSize:
		*value = p.warpSize;
		break;
	case hipDeviceAttributeMultiprocessorCount:
	case hipDeviceAttributePhysicalMultiProcessorCount:
		*value = p.multiProcessorCount;
		break;
	case hipDeviceAttributeMaxSharedMemoryPerBlock:
	case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
		*value = 64 << 10;
		break;
	case hipDeviceAttributeMaxThreadsPerBlock:
		*value = 1024;
		break;
	case hipDeviceAttributeMemoryPoolsSupported:
		*value = 1;
		break;
	default:
		*value = 0;
	}
	return hipSuccess;
}

API hipError_t hipRuntimeGetVersion(int *version)
{
	*version = 60443484;
	return hipSuccess;
}

API hipError_t hipDriverGetVersion(int *version)
{
	return hipRuntimeGetVersion(version);
}

API const char *hipGetErrorName(hipError_t error)
{
	(void)error;
	return "hipErrorOfTheStub";
}

API const char *hipGetErrorString(hipError_t error)
{
	return hipGetErrorName(error);
}

API hipError_t hipGetLastError(void)
{
	hipError_t error = last_error;

	last_error = hipSuccess;
	return error;
}

API hipError_t hipExtGetLastError(void)
{
	return hipGetLastError();
}

API hipError_t hipPeekAtLastError(void)
{
	return last_error;
}

/* --- memory ------------------------------------------------------------------------- */

API hipError_t hipMalloc(void **p, size_t size)
{
	*p = calloc(1, size ? size : 1);
	return result(*p ? hipSuccess : hipErrorOutOfMemory);
}

API hipError_t hipFree(void *p)
{
	free(p);
	return hipSuccess;
}

API hipError_t hipMallocAsync(void **p, size_t size, hipStream_t stream)
{
	(void)stream;
	return hipMalloc(p, size);
}

API hipError_t hipFreeAsync(void *p, hipStream_t stream)
{
	(void)stream;
	return hipFree(p);
}

API hipError_t hipMallocManaged(void **p, size_t size, unsigned flags)
{
	(void)flags;
	return hipMalloc(p, size);
}

API hipError_t hipHostMalloc(void **p, size_t size, unsigned flags)
{
	(void)flags;
	return hipMalloc(p, size);
}

API hipError_t hipHostFree(void *p)
{
	return hipFree(p);
}

API hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind)
{
	note("copy %zu %d", size, (int)kind);
	memmove(to, from, size);
	return hipSuccess;
}

API hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind,
			      hipStream_t stream)
{
	(void)stream;
	return hipMemcpy(to, from, size, kind);
}

API hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size,
				   hipMemcpyKind kind, hipStream_t stream)
{
	(void)stream;
	return hipMemcpy(to, from, size, kind);
}

API hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from,
				  int from_device, size_t size, hipStream_t stream)
{
	(void)to_device, (void)from_device, (void)stream;
	return hipMemcpy(to, from, size, hipMemcpyDeviceToDevice);
}

/* The host's variable is not the device's, which has no address here. */
API hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t size,
				   size_t offset, hipMemcpyKind kind)
{
	(void)symbol, (void)offset;
	note("copy %zu %d", size, (int)kind);
	memset(to, 0, size);
	return hipSuccess;
}

API hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			   size_t width, size_t height, hipMemcpyKind kind)
{
	for (size_t i = 0; i < height; i++)
		memmove((char *)to + i * to_pitch, (const char *)from + i * from_pitch,
			width);
	note("copy %zu %d", width * height, (int)kind);
	return hipSuccess;
}

API hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
				size_t from_pitch, size_t width, size_t height,
				hipMemcpyKind kind, hipStream_t stream)
{
	(void)stream;
	return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

API hipError_t hipMemset(void *p, int byte, size_t size)
{
	memset(p, byte, size);
	return hipSuccess;
}

API hipError_t hipMemsetAsync(void *p, int byte, size_t size, hipStream_t stream)
{
	(void)stream;
	return hipMemset(p, byte, size);
}

API hipError_t hipMemGetInfo(size_t *available, size_t *total)
{
	*available = *total = (size_t)16 << 30;
	return hipSuccess;
}

API hipError_t hipDeviceTotalMem(size_t *total, hipDevice_t device)
{
	size_t available;

	(void)device;
	return hipMemGetInfo(&available, total);
}

API hipError_t hipMemPtrGetInfo(void *p, size_t *size)
{
	*size = malloc_usable_size(p);
	return hipSuccess;
}

API hipError_t hipPointerGetAttributes(hipPointerAttribute_t *a, const void *p)
{
	memset(a, 0, sizeof(*a));
	a->type = hipMemoryTypeDevice;
	a->devicePointer = a->hostPointer = (void *)p;
	return hipSuccess;
}

API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device)
{
	(void)device;
	*pool = (hipMemPool_t)pool;
	return hipSuccess;
}

API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t size)
{
	(void)pool, (void)size;
	return hipSuccess;
}

/* --- streams and events: all is done at once ---------------------------------------- */

API hipError_t hipStreamCreate(hipStream_t *stream)
{
	*stream = malloc(1);
	return hipSuccess;
}

API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
	(void)flags;
	return hipStreamCreate(stream);
}

API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	(void)stream, (void)event, (void)flags;
	return hipSuccess;
}

API hipError_t hipStreamDestroy(hipStream_t stream)
{
	free(stream);
	return hipSuccess;
}

API hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
	(void)stream;
	*status = hipStreamCaptureStatusNone;
	return hipSuccess;
}

API hipError_t hipStreamQuery(hipStream_t stream)
{
	(void)stream;
	return hipSuccess;
}

API hipError_t hipStreamSynchronize(hipStream_t stream)
{
	(void)stream;
	return hipSuccess;
}

API hipError_t hipDeviceSynchronize(void)
{
	return hipSuccess;
}

API hipError_t hipEventCreate(hipEvent_t *event)
{
	*event = malloc(1);
	return hipSuccess;
}

API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	(void)flags;
	return hipEventCreate(event);
}

API hipError_t hipEventDestroy(hipEvent_t event)
{
	free(event);
	return hipSuccess;
}

API hipError_t hipEventSynchronize(hipEvent_t event)
{
	(void)event;
	return hipSuccess;
}

API hipError_t hipEventElapsedTime(float *ms, hipEvent_t begin, hipEvent_t end)
{
	(void)begin, (void)end;
	*ms = 1;
	return hipSuccess;
}

API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	(void)event, (void)stream;
	return hipSuccess;
}
