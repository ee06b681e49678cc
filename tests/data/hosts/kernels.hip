#define __global__ __attribute__((global))
#ifndef NAME
#define NAME scale
#endif
struct dim3 {
	unsigned x, y, z;
};
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, __SIZE_TYPE__, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, __SIZE_TYPE__ *, void **);
extern "C" __global__ void NAME(float *a, const float *b, float f)
{
	int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
	a[i] = b[i] * f;
}
