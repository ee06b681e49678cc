/* SPDX-License-Identifier: MIT */
/* Use the code of each container that kernel.hip was compiled to.  Print what each call returns. */
#include <stddef.h>
#include <stdio.h>

int hipInit(unsigned flags);
int hipGetDeviceCount(int *n);
int hipMalloc(void **p, size_t size);
int hipDeviceSynchronize(void);
void use_a(int *p, int answers[2]);
void use_b(int *p, int answers[2]);
void use_c(int *p, int answers[2]);

int main(void)
{
	void (*const use[])(int *, int[2]) = {use_a, use_b, use_c};
	void *p = NULL;
	int n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("hipInit: %d\n", hipInit(0));
	printf("hipGetDeviceCount: %d\n", hipGetDeviceCount(&n));
	printf("hipMalloc: %d\n", hipMalloc(&p, 4096));
	for (int i = 0; i < 3; i++) {
		int answers[2];

		use[i](p, answers);
		printf("container %d: %d %d\n", i, answers[0], answers[1]);
	}
	printf("hipDeviceSynchronize: %d\n", hipDeviceSynchronize());
	return n != 1;
}
