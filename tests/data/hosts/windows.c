/* SPDX-License-Identifier: MIT */
/* A library, or program, for Windows without C library, as HIP's compiler makes it. */
typedef unsigned long long u64;
struct wrapper {
	unsigned magic, version;
	const void *binary;
	void *unused;
};

extern const char fat_one[], fat_two[];
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper wrapper_one = {
	0x48495046, 1, fat_one, 0};
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper wrapper_two = {
	0x48495046, 1, fat_two, 0};

/* called by the tests, which load the file themselves: without arguments */
__declspec(dllexport) int answer(void)
{
	return 42;
}

__declspec(dllexport) struct wrapper *wrappers(void)
{
	return &wrapper_one;
}

int (*volatile indirect)(void) = answer;

int start(void)
{
	return indirect();
}

#ifdef GUARD
/* /guard:cf: the linker makes tables of addresses; usually the C library has these */
extern u64 __guard_fids_table, __guard_fids_count, __guard_flags;
static void check(void)
{
}
void (*__guard_check_icall_fptr)(void) = check;
void (*__guard_dispatch_icall_fptr)(void) = check;
const u64 _load_config_used[40] = {
	[0] = 320,
	[14] = (u64)&__guard_check_icall_fptr,
	[15] = (u64)&__guard_dispatch_icall_fptr,
	[16] = (u64)&__guard_fids_table,
	[17] = (u64)&__guard_fids_count,
	[18] = (u64)&__guard_flags,
};
#endif

#ifdef MORE
/* a table of imports, thread-local data with a callback, and a frame for the exception directory */
__declspec(dllimport) unsigned GetCurrentProcessId(void);

unsigned _tls_index;
__attribute__((section(".tls"))) char _tls_start[64] = {1};
__attribute__((section(".tls$ZZZ"))) char _tls_end[8];

static void called(void *library, unsigned reason, void *reserved)
{
	(void)library, (void)reason, (void)reserved;
}

void (*_tls_callbacks[])(void *, unsigned, void *) = {called, 0};
const struct {
	const void *start, *end, *index, *callbacks;
	unsigned zeros, flags;
} _tls_used = {_tls_start, _tls_end, &_tls_index, _tls_callbacks, 0, 0};

__declspec(dllexport) int frame(int n)
{
	volatile char buffer[2000];

	for (unsigned i = 0; i < sizeof(buffer); i++)
		buffer[i] = (char)n;
	return buffer[n & 1023] + (int)GetCurrentProcessId();
}
#endif
