/* SPDX-License-Identifier: MIT */
/* Two kernels called as cuTile would call theirs, with the arguments these names state. */
extern "C" __global__ void axpy_Kt1_A1f32_1l0_p16_Sf32_I128(float *p, int n, int s, float a)
{
	if (threadIdx.x < n)
		p[threadIdx.x * s] *= a;
}

extern "C" __global__ void axpy_Kt1_A1f64_1l0_w_Sf64_I128(double *p, long n, long s, double a)
{
	if (threadIdx.x < n)
		p[threadIdx.x * s] *= a;
}
