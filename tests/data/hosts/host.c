/* A host program or library with one wrapper; PAYLOAD: it reads what stands behind its image. */
#include <stdint.h>

struct wrapper {
	uint32_t magic, version;
	const void *binary;
	void *unused;
};
extern const char __hip_fatbin[];
__attribute__((section(".hipFatBinSegment"), used)) struct wrapper wrapper = {
	0x48495046, 1, __hip_fatbin, 0};
static char zeros[10000];
int tail = 7;
int answer(void)
{
	return 42;
}
char *more(void)
{
	return zeros + tail;
}

#ifdef MAIN
void _start(void)
{
	__asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
}
#endif
