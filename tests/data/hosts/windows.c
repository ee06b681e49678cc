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
