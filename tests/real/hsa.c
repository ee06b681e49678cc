/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the HSA runtime, libhsa-runtime64.so.1, over which the real HIP runtimes run without a GPU:
 * they start, load code objects, and launch kernels that compute nothing.  There is a CPU and a GPU, whose
 * memory is mmap's.  What the HIP runtime does with code is logged:
 *
 *   load SIZE XXH3            a code object, from the memory that the HIP runtime has it in
 *   symbol NAME [none]        looked up in its symbol table
 *   dispatch NAME GRID BLOCK  a packet of a queue
 *
 *   STUB_LOG    file to append the lines to
 *   STUB_GPU    target ID of the GPU (gfx1100)
 *   STUB_TRACE  if set, calls that do nothing, and unknown attributes, go to standard error
 *
 * tests/real/hsa-runtimes makes the functions that the runtimes import and are not here: those of which nothing has to
 * come, and others, which fail.
 */
#define _GNU_SOURCE
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <elf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <xxhash.h>

#define OK HSA_STATUS_SUCCESS

/* Handles. */
enum { CPU = 1, GPU = 2 };
enum { CPU_FINE = 1, CPU_KERNARG, CPU_COARSE, GPU_COARSE };
enum { ISA = 1 };

struct code_object {
	const uint8_t *data; /* the caller's */
	size_t size;
};

struct executable {
	struct code_object object;
};

struct symbol {
	char name[512];
	unsigned kind;
	void *address;
	uint32_t size;
};

static const char *gpu(void)
{
	const char *name = getenv("STUB_GPU");

	return name ? name : "gfx1100";
}

static void *zeroed(size_t size)
{
	void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* --- the log ------------------------------------------------------------------------ */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	static FILE *file;
	const char *path = getenv("STUB_LOG");
	va_list args;

	pthread_mutex_lock(&log_lock);
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
	pthread_mutex_unlock(&log_lock);
}

/* For functions that are not here. */
hsa_status_t stub_missing(const char *name);
hsa_status_t stub_missing(const char *name)
{
	if (getenv("STUB_TRACE"))
		fprintf(stderr, "stub: %s\n", name);
	return HSA_STATUS_ERROR;
}

static hsa_status_t unknown(const char *what, unsigned attribute)
{
	if (getenv("STUB_TRACE"))
		fprintf(stderr, "stub: %s attribute %#x\n", what, attribute);
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* --- the system and its agents ------------------------------------------------------ */

hsa_status_t hsa_status_string(hsa_status_t status, const char **text)
{
	(void)status;
	*text = "a status of the stub";
	return OK;
}

#define SET(type, value) (*(type *)out = (type)(value), OK)

hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *out)
{
	struct timespec now;

	switch ((unsigned)attribute) {
	case HSA_SYSTEM_INFO_VERSION_MAJOR:
	case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR:
		return SET(uint16_t, 1);
	case HSA_SYSTEM_INFO_VERSION_MINOR:
	case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR:
		return SET(uint16_t, 1);
	case HSA_SYSTEM_INFO_TIMESTAMP:
		clock_gettime(CLOCK_MONOTONIC, &now);
		return SET(uint64_t,
			   (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
		return SET(uint64_t, 1000000000);
	case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
		return SET(uint64_t, UINT64_MAX);
	case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
	case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
	case HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED:
	case HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED:
	case HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED:
	case HSA_AMD_SYSTEM_INFO_XNACK_ENABLED:
		return SET(bool, false);
	}
	return unknown("system", attribute);
}

hsa_status_t hsa_system_extension_supported(uint16_t extension, uint16_t major,
					    uint16_t minor, bool *result)
{
	(void)extension, (void)major, (void)minor;
	*result = false;
	return OK;
}

hsa_status_t hsa_agent_extension_supported(uint16_t extension, hsa_agent_t agent,
					   uint16_t major, uint16_t minor, bool *result)
{
	(void)agent;
	return hsa_system_extension_supported(extension, major, minor, result);
}

static hsa_status_t query_host_address(const void *device, const void **host)
{
	*host = device;
	return OK;
}

hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t major,
						  size_t size, void *table)
{
	hsa_ven_amd_loader_1_03_pfn_t loader = {.hsa_ven_amd_loader_query_host_address =
							query_host_address};

	(void)major;
	memset(table, 0, size);
	if (extension == HSA_EXTENSION_AMD_LOADER)
		memcpy(table, &loader, size < sizeof(loader) ? size : sizeof(loader));
	return OK;
}

hsa_status_t hsa_iterate_agents(hsa_status_t (*f)(hsa_agent_t, void *), void *data)
{
	hsa_status_t status = f((hsa_agent_t){CPU}, data);

	return status == OK ? f((hsa_agent_t){GPU}, data) : status;
}

static const struct {
	unsigned attribute;
	uint32_t value;
} numbers[] = {
	{HSA_AGENT_INFO_FEATURE, HSA_AGENT_FEATURE_KERNEL_DISPATCH},
	{HSA_AGENT_INFO_MACHINE_MODEL, HSA_MACHINE_MODEL_LARGE},
	{HSA_AGENT_INFO_PROFILE, HSA_PROFILE_BASE},
	{HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE,
	 HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR},
	{HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, 1024},
	{HSA_AGENT_INFO_GRID_MAX_SIZE, UINT32_MAX},
	{HSA_AGENT_INFO_FBARRIER_MAX_SIZE, 32},
	{HSA_AGENT_INFO_QUEUES_MAX, 128},
	{HSA_AGENT_INFO_QUEUE_MIN_SIZE, 64},
	{HSA_AGENT_INFO_QUEUE_MAX_SIZE, 131072},
	{HSA_AGENT_INFO_QUEUE_TYPE, HSA_QUEUE_TYPE_MULTI},
	{HSA_AGENT_INFO_NODE, 1},
	{HSA_AMD_AGENT_INFO_CHIP_ID, 0x744c},
	{HSA_AMD_AGENT_INFO_CACHELINE_SIZE, 64},
	{HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, 96},
	{HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY, 2000},
	{HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, 1},
	{HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS, 4},
	{HSA_AMD_AGENT_INFO_BDFID, 0x300},
	{HSA_AMD_AGENT_INFO_MEMORY_WIDTH, 384},
	{HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY, 1200},
	{HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, 32},
	{HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, 4},
	{HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, 6},
	{HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE, 2},
	{HSA_AMD_AGENT_INFO_DOMAIN, 0},
	{HSA_AMD_AGENT_INFO_ASIC_REVISION, 1},
	{HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT, 96},
	{HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID, 145},
	{HSA_AMD_AGENT_INFO_UCODE_VERSION, 1},
	{HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION, 1},
	{HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, 0},
	{HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG, 0},
	{HSA_AMD_AGENT_INFO_IOMMU_SUPPORT, 0},
	{HSA_AMD_AGENT_INFO_NUM_XCC, 1},
	{HSA_AMD_AGENT_INFO_DRIVER_UID, 1},
};

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *out)
{
	switch ((unsigned)attribute) {
	case HSA_AGENT_INFO_NAME:
		snprintf(out, 64, "%.*s", (int)strcspn(gpu(), ":"),
			 agent.handle == GPU ? gpu() : "cpu");
		return OK;
	case HSA_AGENT_INFO_VENDOR_NAME:
		snprintf(out, 64, "%s", agent.handle == GPU ? "AMD" : "CPU");
		return OK;
	case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
		snprintf(out, 64, "stub");
		return OK;
	case HSA_AMD_AGENT_INFO_UUID:
		snprintf(out, 21, "GPU-0000000000000001");
		return OK;
	case HSA_AGENT_INFO_DEVICE:
		return SET(hsa_device_type_t, agent.handle == GPU ? HSA_DEVICE_TYPE_GPU
								  : HSA_DEVICE_TYPE_CPU);
	case HSA_AGENT_INFO_ISA:
		*(hsa_isa_t *)out = (hsa_isa_t){ISA};
		return OK;
	case HSA_AGENT_INFO_WAVEFRONT_SIZE:
		return SET(uint32_t, strncmp(gpu(), "gfx9", 4) == 0 ? 64 : 32);
	case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
		for (int i = 0; i < 3; i++)
			((uint16_t *)out)[i] = 1024;
		return OK;
	case HSA_AGENT_INFO_GRID_MAX_DIM:
		*(hsa_dim3_t *)out = (hsa_dim3_t){INT32_MAX, UINT16_MAX, UINT16_MAX};
		return OK;
	case HSA_AGENT_INFO_CACHE_SIZE:
		memcpy(out, (uint32_t[4]){32 << 10, 6 << 20, 0, 0}, 16);
		return OK;
	case HSA_AGENT_INFO_EXTENSIONS:
		memset(out, 0, 128);
		return OK;
	case HSA_AGENT_INFO_VERSION_MAJOR:
	case HSA_AGENT_INFO_VERSION_MINOR:
		return SET(uint16_t, 1);
	case HSA_AGENT_INFO_FAST_F16_OPERATION:
		return SET(bool, true);
	case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
	case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
		return SET(bool, false);
	case HSA_AMD_AGENT_INFO_HDP_FLUSH:
		memset(out, 0, sizeof(hsa_amd_hdp_flush_t));
		return OK;
	case HSA_AMD_AGENT_INFO_MEMORY_AVAIL:
		return SET(uint64_t, UINT64_C(16) << 30);
	case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
		return SET(uint64_t, 100000000);
	case HSA_AMD_AGENT_INFO_NEAREST_CPU:
		*(hsa_agent_t *)out = (hsa_agent_t){CPU};
		return OK;
	case HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES:
	case HSA_AMD_AGENT_INFO_AQL_EXTENSIONS:
		memset(out, 0, 8);
		return OK;
	case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX:
	case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT:
		return SET(uint64_t, 1 << 30);
	case 0x3000: /* sizes and numbers of images: HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS and so on */
	case 0x3001:
	case 0x3002:
	case 0x3003:
	case 0x3004:
	case 0x3005:
	case 0x3006:
	case 0x3007:
		memset(out, 0, 4);
		return OK;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].attribute == (unsigned)attribute)
			return SET(uint32_t, numbers[i].value);
	return unknown("agent", attribute);
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent,
				    hsa_status_t (*f)(hsa_isa_t, void *), void *data)
{
	(void)agent;
	return f((hsa_isa_t){ISA}, data);
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *out)
{
	char name[128];
	int n = snprintf(name, sizeof(name), "amdgcn-amd-amdhsa--%s", gpu());

	(void)isa;
	if (attribute == HSA_ISA_INFO_NAME_LENGTH)
		return SET(uint32_t, n + 1);
	if (attribute != HSA_ISA_INFO_NAME)
		return unknown("isa", attribute);
	memcpy(out, name, (size_t)n + 1);
	return OK;
}

/* --- memory ------------------------------------------------------------------------- */

hsa_status_t hsa_amd_agent_iterate_memory_pools(
	hsa_agent_t agent, hsa_status_t (*f)(hsa_amd_memory_pool_t, void *), void *data)
{
	hsa_status_t status = OK;

	if (agent.handle == GPU)
		return f((hsa_amd_memory_pool_t){GPU_COARSE}, data);
	for (uint64_t pool = CPU_FINE; pool <= CPU_COARSE && status == OK; pool++)
		status = f((hsa_amd_memory_pool_t){pool}, data);
	return status;
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
					  hsa_amd_memory_pool_info_t attribute, void *out)
{
	static const uint32_t flags[] = {
		[CPU_FINE] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
		[CPU_KERNARG] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED |
				HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
		[CPU_COARSE] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
		[GPU_COARSE] = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
	};

	switch ((unsigned)attribute) {
	case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
		return SET(hsa_amd_segment_t, HSA_AMD_SEGMENT_GLOBAL);
	case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
		return SET(uint32_t, flags[pool.handle]);
	case HSA_AMD_MEMORY_POOL_INFO_SIZE:
	case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
		return SET(size_t, (size_t)16 << 30);
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
		return SET(bool, true);
	case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
		return SET(bool, pool.handle != GPU_COARSE);
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE:
		return SET(size_t, 4096);
	case HSA_AMD_MEMORY_POOL_INFO_LOCATION:
		return SET(uint32_t, pool.handle == GPU_COARSE);
	}
	return unknown("pool", attribute);
}

hsa_status_t
hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
				   hsa_amd_agent_memory_pool_info_t attribute, void *out)
{
	(void)agent, (void)pool;
	switch ((unsigned)attribute) {
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
		return SET(uint32_t, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
		return SET(uint32_t, 1);
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO:
		memset(out, 0, sizeof(hsa_amd_memory_pool_link_info_t));
		return OK;
	}
	return unknown("link", attribute);
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size,
					  uint32_t flags, void **p)
{
	(void)pool, (void)flags;
	*p = zeroed(size); /* kept until the end */
	return OK;
}

hsa_status_t hsa_amd_memory_lock_to_pool(void *host, size_t size, hsa_agent_t *agents,
					 int n, hsa_amd_memory_pool_t pool,
					 uint32_t flags, void **device)
{
	(void)size, (void)agents, (void)n, (void)pool, (void)flags;
	*device = host;
	return OK;
}

hsa_status_t hsa_amd_pointer_info(const void *p, hsa_amd_pointer_info_t *info,
				  void *(*alloc)(size_t), uint32_t *n,
				  hsa_agent_t **agents)
{
	uint32_t size = info->size;

	(void)p, (void)alloc, (void)n, (void)agents;
	memset(info, 0, size);
	info->size = size;
	return OK;
}

hsa_status_t hsa_memory_copy(void *to, const void *from, size_t size)
{
	memmove(to, from, size);
	return OK;
}

/* --- signals ------------------------------------------------------------------------ */

/* A handler runs on a thread of its own: the HIP runtime may hold its locks when it changes a signal. */
struct handler {
	hsa_signal_t signal;
	hsa_signal_condition_t condition;
	hsa_signal_value_t value;
	hsa_amd_signal_handler call;
	void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static hsa_signal_value_t value_of(hsa_signal_t s)
{
	return __atomic_load_n(&((amd_signal_t *)s.handle)->value, __ATOMIC_SEQ_CST);
}

static void wake(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void add_to(hsa_signal_t s, hsa_signal_value_t n)
{
	__atomic_add_fetch(&((amd_signal_t *)s.handle)->value, n, __ATOMIC_SEQ_CST);
	wake();
}

static bool holds(hsa_signal_t s, hsa_signal_condition_t condition,
		  hsa_signal_value_t value)
{
	hsa_signal_value_t now = value_of(s);

	switch (condition) {
	case HSA_SIGNAL_CONDITION_EQ:
		return now == value;
	case HSA_SIGNAL_CONDITION_NE:
		return now != value;
	case HSA_SIGNAL_CONDITION_LT:
		return now < value;
	default:
		return now >= value;
	}
}

static void wait_for(hsa_signal_t s, hsa_signal_condition_t condition,
		     hsa_signal_value_t value)
{
	pthread_mutex_lock(&lock);
	while (!holds(s, condition, value))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial, uint32_t n,
				   const hsa_agent_t *consumers, uint64_t attributes,
				   hsa_signal_t *out)
{
	amd_signal_t *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);

	(void)n, (void)consumers, (void)attributes;
	if (!s)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	memset(s, 0, sizeof(*s));
	s->kind = AMD_SIGNAL_KIND_USER;
	s->value = initial;
	out->handle = (uint64_t)s;
	return OK;
}

hsa_status_t hsa_signal_create(hsa_signal_value_t initial, uint32_t n,
			       const hsa_agent_t *consumers, hsa_signal_t *out)
{
	return hsa_amd_signal_create(initial, n, consumers, 0, out);
}

hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t s, volatile hsa_signal_value_t **p)
{
	*p = &((amd_signal_t *)s.handle)->value;
	return OK;
}

hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t s)
{
	return value_of(s);
}

void hsa_signal_silent_store_relaxed(hsa_signal_t s, hsa_signal_value_t value)
{
	__atomic_store_n(&((amd_signal_t *)s.handle)->value, value, __ATOMIC_SEQ_CST);
	wake();
}

void hsa_signal_add_relaxed(hsa_signal_t s, hsa_signal_value_t n)
{
	add_to(s, n);
}

void hsa_signal_subtract_relaxed(hsa_signal_t s, hsa_signal_value_t n)
{
	add_to(s, -n);
}

hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t s,
					     hsa_signal_condition_t condition,
					     hsa_signal_value_t value, uint64_t timeout,
					     hsa_wait_state_t state)
{
	(void)timeout, (void)state;
	wait_for(s, condition, value);
	return value_of(s);
}

static void *handle_signal(void *arg)
{
	struct handler *h = arg;

	do
		wait_for(h->signal, h->condition, h->value);
	while (h->call(value_of(h->signal), h->arg));
	free(h);
	return NULL;
}

hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t s,
					  hsa_signal_condition_t condition,
					  hsa_signal_value_t value,
					  hsa_amd_signal_handler call, void *arg)
{
	struct handler *h = malloc(sizeof(*h));
	pthread_t thread;

	if (!h)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*h = (struct handler){s, condition, value, call, arg};
	if (pthread_create(&thread, NULL, handle_signal, h) != 0)
		abort();
	pthread_detach(thread);
	return OK;
}

static void complete(hsa_signal_t s)
{
	if (s.handle)
		add_to(s, -1);
}

static hsa_status_t copy(void *to, const void *from, size_t size, uint32_t n,
			 const hsa_signal_t *before, hsa_signal_t done)
{
	for (uint32_t i = 0; i < n; i++)
		wait_for(before[i], HSA_SIGNAL_CONDITION_LT, 1);
	memmove(to, from, size);
	complete(done);
	return OK;
}

hsa_status_t hsa_amd_memory_async_copy(void *to, hsa_agent_t to_agent, const void *from,
				       hsa_agent_t from_agent, size_t size, uint32_t n,
				       const hsa_signal_t *before, hsa_signal_t done)
{
	(void)to_agent, (void)from_agent;
	return copy(to, from, size, n, before, done);
}

hsa_status_t
hsa_amd_memory_async_copy_on_engine(void *to, hsa_agent_t to_agent, const void *from,
				    hsa_agent_t from_agent, size_t size, uint32_t n,
				    const hsa_signal_t *before, hsa_signal_t done,
				    hsa_amd_sdma_engine_id_t engine, bool force)
{
	(void)to_agent, (void)from_agent, (void)engine, (void)force;
	return copy(to, from, size, n, before, done);
}

hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t to, hsa_agent_t from,
					       uint32_t *engines)
{
	(void)to, (void)from;
	*engines = 1;
	return OK;
}

hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t s,
						 hsa_amd_profiling_dispatch_time_t *time)
{
	(void)agent, (void)s;
	time->start = 1;
	time->end = 2;
	return OK;
}

hsa_status_t
hsa_amd_profiling_get_async_copy_time(hsa_signal_t s,
				      hsa_amd_profiling_async_copy_time_t *time)
{
	(void)s;
	time->start = 1;
	time->end = 2;
	return OK;
}

/* --- queues ------------------------------------------------------------------------- */

/*
 * A thread for each queue processes its packets in order.  It waits for the signals that barriers name: a
 * callback of the program may have to run before the next packet.
 */
struct queue {
	amd_queue_t amd;
};

static void note_dispatch(const hsa_kernel_dispatch_packet_t *p)
{
	const struct symbol *s = (const struct symbol *)p->kernel_object;

	note("dispatch %s %ux%ux%u %ux%ux%u", s->name, p->grid_size_x, p->grid_size_y,
	     p->grid_size_z, p->workgroup_size_x, p->workgroup_size_y,
	     p->workgroup_size_z);
}

static void wait_barrier(const hsa_barrier_and_packet_t *p)
{
	for (int i = 0; i < 5; i++)
		if (p->dep_signal[i].handle)
			wait_for(p->dep_signal[i], HSA_SIGNAL_CONDITION_LT, 1);
}

static void wait_value(const hsa_amd_barrier_value_packet_t *p)
{
	if (p->header.AmdFormat == HSA_AMD_PACKET_TYPE_BARRIER_VALUE && p->signal.handle)
		wait_for(p->signal, p->cond, p->value);
}

static bool has_packet(const struct queue *q, const hsa_kernel_dispatch_packet_t *p)
{
	return q->amd.read_dispatch_id <
		       __atomic_load_n(&q->amd.write_dispatch_id, __ATOMIC_SEQ_CST) &&
	       (__atomic_load_n(&p->header, __ATOMIC_ACQUIRE) & 0xff) !=
		       HSA_PACKET_TYPE_INVALID;
}

static void *process(void *arg)
{
	struct queue *q = arg;
	hsa_kernel_dispatch_packet_t *ring = q->amd.hsa_queue.base_address;

	for (;;) {
		hsa_kernel_dispatch_packet_t *p =
			&ring[q->amd.read_dispatch_id & (q->amd.hsa_queue.size - 1)];
		hsa_signal_t done;

		pthread_mutex_lock(&lock);
		while (!has_packet(q, p))
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		switch (p->header & 0xff) {
		case HSA_PACKET_TYPE_KERNEL_DISPATCH:
			note_dispatch(p);
			break;
		case HSA_PACKET_TYPE_BARRIER_AND:
			wait_barrier((const hsa_barrier_and_packet_t *)p);
			break;
		case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
			wait_value((const hsa_amd_barrier_value_packet_t *)p);
			break;
		}
		done = p->completion_signal;
		__atomic_store_n(&p->header, HSA_PACKET_TYPE_INVALID, __ATOMIC_RELEASE);
		__atomic_add_fetch(&q->amd.read_dispatch_id, 1, __ATOMIC_SEQ_CST);
		complete(done);
	}
	return NULL;
}

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
			      void (*callback)(hsa_status_t, hsa_queue_t *, void *),
			      void *data, uint32_t private_size, uint32_t group_size,
			      hsa_queue_t **out)
{
	struct queue *q = zeroed(sizeof(*q));
	hsa_kernel_dispatch_packet_t *ring = zeroed(size * sizeof(*ring));
	pthread_t thread;

	(void)agent, (void)callback, (void)data, (void)private_size, (void)group_size;
	for (uint32_t i = 0; i < size; i++)
		ring[i].header = HSA_PACKET_TYPE_INVALID;
	q->amd.hsa_queue.type = type;
	q->amd.hsa_queue.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
	q->amd.hsa_queue.base_address = ring;
	q->amd.hsa_queue.size = size;
	q->amd.hsa_queue.id = 1;
	hsa_signal_create(0, 0, NULL, &q->amd.hsa_queue.doorbell_signal);
	if (pthread_create(&thread, NULL, process, q) != 0)
		abort();
	pthread_detach(thread);
	*out = &q->amd.hsa_queue;
	return OK;
}

uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t *queue)
{
	return __atomic_load_n(&((const amd_queue_t *)queue)->read_dispatch_id,
			       __ATOMIC_SEQ_CST);
}

uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue)
{
	return hsa_queue_load_read_index_relaxed(queue);
}

uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t *queue)
{
	return __atomic_load_n(&((const amd_queue_t *)queue)->write_dispatch_id,
			       __ATOMIC_SEQ_CST);
}

uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t *queue, uint64_t n)
{
	return __atomic_fetch_add(&((amd_queue_t *)(uintptr_t)queue)->write_dispatch_id,
				  n, __ATOMIC_SEQ_CST);
}

/* A doorbell is a signal, too. */
void hsa_signal_store_relaxed(hsa_signal_t s, hsa_signal_value_t value)
{
	hsa_signal_silent_store_relaxed(s, value);
}

void hsa_signal_store_screlease(hsa_signal_t s, hsa_signal_value_t value)
{
	hsa_signal_silent_store_relaxed(s, value);
}

/* --- code --------------------------------------------------------------------------- */

hsa_status_t hsa_code_object_reader_create_from_memory(const void *data, size_t size,
						       hsa_code_object_reader_t *out)
{
	struct code_object *o = malloc(sizeof(*o));

	if (!o)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*o = (struct code_object){data, size};
	out->handle = (uint64_t)o;
	return OK;
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader)
{
	free((void *)reader.handle);
	return OK;
}

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile,
				       hsa_default_float_rounding_mode_t mode,
				       const char *options, hsa_executable_t *out)
{
	(void)profile, (void)mode, (void)options;
	out->handle = (uint64_t)calloc(1, sizeof(struct executable));
	return OK;
}

/* The HIP runtime states the size of what is left of its bundle, not of the object, for some. */
static size_t elf_size(const struct code_object *o)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)o->data;
	size_t end = h->e_shoff + (size_t)h->e_shnum * sizeof(Elf64_Shdr);
	const Elf64_Shdr *s = (const Elf64_Shdr *)(o->data + h->e_shoff);

	for (unsigned i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type != SHT_NOBITS && s[i].sh_offset + s[i].sh_size > end)
			end = s[i].sh_offset + s[i].sh_size;
	return end;
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t e, hsa_agent_t agent,
						   hsa_code_object_reader_t reader,
						   const char *options,
						   hsa_loaded_code_object_t *loaded)
{
	struct executable *x = (struct executable *)e.handle;
	XXH128_hash_t hash;

	(void)agent, (void)options;
	x->object = *(struct code_object *)reader.handle;
	if (x->object.size < sizeof(Elf64_Ehdr) ||
	    memcmp(x->object.data, ELFMAG, 4) != 0 ||
	    elf_size(&x->object) > x->object.size)
		return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
	x->object.size = elf_size(&x->object);
	hash = XXH3_128bits(x->object.data, x->object.size);
	note("load %zu %016" PRIx64 "%016" PRIx64, x->object.size, hash.high64,
	     hash.low64);
	if (loaded)
		loaded->handle = e.handle;
	return OK;
}

static const Elf64_Sym *find_symbol(const struct code_object *o, const char *name)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)o->data;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(o->data + h->e_shoff);

	for (unsigned i = 0; i < h->e_shnum; i++) {
		const Elf64_Sym *symbols = (const Elf64_Sym *)(o->data + s[i].sh_offset);

		if (s[i].sh_type != SHT_DYNSYM)
			continue;
		for (size_t n = 0; n < s[i].sh_size / sizeof(*symbols); n++)
			if (strcmp((const char *)o->data + s[s[i].sh_link].sh_offset +
					   symbols[n].st_name,
				   name) == 0)
				return &symbols[n];
	}
	return NULL;
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t e, const char *name,
					       const hsa_agent_t *agent,
					       hsa_executable_symbol_t *out)
{
	const struct code_object *o = &((struct executable *)e.handle)->object;
	const Elf64_Sym *found = o->data ? find_symbol(o, name) : NULL;
	size_t n = strlen(name);
	struct symbol *s;

	(void)agent;
	note("symbol %s%s", name, found ? "" : " none");
	if (!found)
		return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
	s = zeroed(sizeof(
		*s)); /* what a packet names as its kernel; aligned as a descriptor is */
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->kind = n > 3 && strcmp(name + n - 3, ".kd") == 0 ? HSA_SYMBOL_KIND_KERNEL
							    : HSA_SYMBOL_KIND_VARIABLE;
	s->size = (uint32_t)found->st_size;
	s->address = s->kind == HSA_SYMBOL_KIND_KERNEL ? s : zeroed(s->size);
	out->handle = (uint64_t)s;
	return OK;
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol,
					    hsa_executable_symbol_info_t attribute,
					    void *out)
{
	const struct symbol *s = (const struct symbol *)symbol.handle;

	switch ((unsigned)attribute) {
	case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
		return SET(uint32_t, s->kind);
	case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
		return SET(uint32_t, strlen(s->name));
	case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
		memcpy(out, s->name, strlen(s->name));
		return OK;
	case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
		return SET(uint64_t, (uintptr_t)s->address);
	case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
		return SET(uint32_t, s->size);
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
		return SET(uint32_t, 256);
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
		return SET(uint32_t, 64);
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
		return SET(uint32_t, 0);
	case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
		return SET(bool, false);
	}
	return unknown("symbol", attribute);
}
