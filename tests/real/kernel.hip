/* SPDX-License-Identifier: MIT */
/*
 * A kernel, a variable of the GPU, and a function that uses both; compiled once for each NAME, each in a
 * container of its own, without HIP's headers.
 */
#define PASTE(a, b) a##b
#define NAMED(prefix, name) PASTE(prefix, name)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned n) : x(n), y(1), z(1) {}
};

extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern "C" unsigned __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void * = 0);
extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
extern "C" int hipMemcpyToSymbol(const void *, const void *, unsigned long, unsigned long, int);
extern "C" int hipGetLastError(void);

extern "C" __device__ int NAMED(value_, NAME);
__device__ int NAMED(value_, NAME);

extern "C" __global__ void NAMED(kernel_, NAME)(int *p)
{
	p[0] = NAMED(value_, NAME) + (int)sizeof(p);
}

/* What the runtime answers to the copy and to the launch. */
extern "C" void NAMED(use_, NAME)(int *p, int answers[2])
{
	int n = 1;

	answers[0] = hipMemcpyToSymbol(&NAMED(value_, NAME), &n, sizeof(n), 0, 1);
	NAMED(kernel_, NAME)<<<2, 64>>>(p);
	answers[1] = hipGetLastError();
}
