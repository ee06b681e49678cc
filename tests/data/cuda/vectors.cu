// Kernels of which ptxas tells registers, shared memory, stack and parameters.
struct pair {
	char a;
	double d;
	short s[3];
};

__device__ __noinline__ float twice(float x)
{
	return x + x * x;
}

extern "C" __global__ void plain(float *p, float f)
{
	p[threadIdx.x] = twice(f);
}

extern "C" __global__ void __launch_bounds__(96) shared(float *p, char c)
{
	__shared__ float s[1250];

	s[threadIdx.x] = p[threadIdx.x];
	__syncthreads();
	p[threadIdx.x] = s[(threadIdx.x + c) % 1250];
}

template <class T> __global__ void stack(float *p, int i, pair b, T c)
{
	volatile float x[100];

	for (int k = 0; k < 100; k++)
		x[k] = p[k];
	p[0] = x[i] + b.d + c;
}
template __global__ void stack<char>(float *, int, pair, char);
