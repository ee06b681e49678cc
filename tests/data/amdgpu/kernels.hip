// SPDX-License-Identifier: MIT
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
extern "C" __global__ void first(int *p, int n, double d)
{
	__shared__ int s[64];
	int big[100];

	s[n & 63] = n;
	for (int i = 0; i < n; i++)
		big[i % 100] = p[i];
	p[0] = s[p[1] & 63] + big[p[2]] + (int)d;
}
template <class T> __global__ __attribute__((amdgpu_flat_work_group_size(1, 256))) void second(T *p)
{
	*p += 1;
}
template __global__ void second<float>(float *);
