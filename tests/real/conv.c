/* SPDX-License-Identifier: MIT */
/*
 * Call MIOpen as an application does, and print what each call returns.
 *
 *   conv LIBRARY [COMMAND]
 *
 * COMMAND is run by the shell when half of the calls are done.
 */
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
typedef struct miopenTensorArgument_t miopenTensorArgument_t; /* as in C++ */
#include <miopen/miopen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "call.h"

#define BYTES (256u << 20) /* of the largest tensor */
#define SOLUTIONS 16

static miopenHandle_t handle;
static void *in, *weights, *out, *work;
static const float one = 1, zero;

static miopenTensorDescriptor_t tensor(miopenDataType_t type, const int *n)
{
	miopenTensorDescriptor_t t;

	CALL(miopenCreateTensorDescriptor)(&t);
	CALL(miopenSet4dTensorDescriptor)(t, type, n[0], n[1], n[2], n[3]);
	return t;
}

struct convolution {
	int in[4]; /* batch, channels, height, width */
	int outputs, kernel, pad, stride;
};

/* all but the last are in the databases that Debian ships */
static const struct convolution convolutions[] = {
	{{8, 48, 35, 35}, 64, 5, 2, 1},   {{100, 128, 28, 28}, 128, 3, 1, 1},
	{{128, 16, 54, 54}, 64, 3, 1, 1}, {{64, 2064, 7, 7}, 192, 1, 0, 1},
	{{512, 3, 10, 10}, 5, 3, 1, 1},   {{32, 64, 19, 19}, 64, 3, 1, 1},
	{{256, 992, 7, 7}, 128, 1, 0, 1}, {{16, 8, 9, 17}, 24, 3, 0, 1},
};

/* What a call may use of the descriptors of a convolution. */
struct problem {
	miopenTensorDescriptor_t x, w, y;
	miopenConvolutionDescriptor_t c;
};

static void find_and_run(const struct problem *p)
{
	miopenConvAlgoPerf_t found[4];
	size_t bytes = 0;
	int n = 0, status;

	status = CALL(miopenConvolutionForwardGetWorkSpaceSize)(handle, p->w, p->x, p->c,
								p->y, &bytes);
	printf("  work space: %d, %zu\n", status, bytes);
	status = CALL(miopenFindConvolutionForwardAlgorithm)(
		handle, p->x, in, p->w, weights, p->c, p->y, out, 4, &n, found, work,
		bytes, false);
	printf("  find: %d, %d\n", status, n);
	for (int i = 0; status == 0 && i < n; i++) {
		printf("  %d, %zu", (int)found[i].fwd_algo, found[i].memory);
		printf(": %d\n", (int)CALL(miopenConvolutionForward)(
					 handle, &one, p->x, in, p->w, weights, p->c,
					 found[i].fwd_algo, &zero, p->y, out, work,
					 found[i].memory));
	}
}

static void run_solutions(const struct problem *p)
{
	miopenConvSolution_t found[SOLUTIONS];
	size_t n = 0;
	int status;

	status = CALL(miopenConvolutionForwardGetSolution)(handle, p->w, p->x, p->c, p->y,
							   SOLUTIONS, &n, found);
	printf("  solutions: %d, %zu\n", status, n);
	for (size_t i = 0; status == 0 && i < n; i++) {
		printf("  %llu, %zu", (unsigned long long)found[i].solution_id,
		       found[i].workspace_size);
		printf(": %d",
		       (int)CALL(miopenConvolutionForwardCompileSolution)(
			       handle, p->w, p->x, p->c, p->y, found[i].solution_id));
		printf(", %d\n",
		       (int)CALL(miopenConvolutionForwardImmediate)(
			       handle, p->w, weights, p->x, in, p->c, p->y, out, work,
			       found[i].workspace_size, found[i].solution_id));
	}
}

static void convolve(const struct convolution *c, miopenDataType_t type)
{
	int side = 2 * c->pad - c->kernel;
	int w[4] = {c->outputs, c->in[1], c->kernel, c->kernel};
	int y[4] = {c->in[0], c->outputs, (c->in[2] + side) / c->stride + 1,
		    (c->in[3] + side) / c->stride + 1};
	struct problem p = {tensor(type, c->in), tensor(type, w), tensor(type, y), NULL};

	CALL(miopenCreateConvolutionDescriptor)(&p.c);
	CALL(miopenInitConvolutionDescriptor)
	(p.c, miopenConvolution, c->pad, c->pad, c->stride, c->stride, 1, 1);
	printf("convolution %dx%dx%dx%d %d %d\n", c->in[0], c->in[1], c->in[2], c->in[3],
	       c->outputs, (int)type);
	find_and_run(&p);
	run_solutions(&p);
	CALL(miopenDestroyConvolutionDescriptor)(p.c);
	CALL(miopenDestroyTensorDescriptor)(p.x);
	CALL(miopenDestroyTensorDescriptor)(p.w);
	CALL(miopenDestroyTensorDescriptor)(p.y);
}

/* Layers without weights. */
static void other_layers(miopenDataType_t type)
{
	int n[4] = {4, 16, 32, 32}, half[4] = {4, 16, 16, 16},
	    channels[4] = {1, 16, 1, 1};
	miopenTensorDescriptor_t x = tensor(type, n), y = tensor(type, half),
				 c = tensor(miopenFloat, channels);
	miopenPoolingDescriptor_t pooling;
	miopenActivationDescriptor_t activation;

	CALL(miopenCreatePoolingDescriptor)(&pooling);
	CALL(miopenCreateActivationDescriptor)(&activation);
	for (int mode = miopenPoolingMax; mode <= (int)miopenPoolingAverage; mode++) {
		CALL(miopenSet2dPoolingDescriptor)
		(pooling, (miopenPoolingMode_t)mode, 2, 2, 0, 0, 2, 2);
		printf("pooling: %d\n",
		       (int)CALL(miopenPoolingForward)(handle, pooling, &one, x, in,
						       &zero, y, out, false, NULL, 0));
	}
	for (int mode = miopenActivationLOGISTIC; mode <= (int)miopenActivationELU;
	     mode++) {
		CALL(miopenSetActivationDescriptor)
		(activation, (miopenActivationMode_t)mode, 1, 1, 1);
		printf("activation: %d\n",
		       (int)CALL(miopenActivationForward)(handle, activation, &one, x, in,
							  &zero, x, out));
	}
	printf("softmax: %d\n",
	       (int)CALL(miopenSoftmaxForward)(handle, &one, x, in, &zero, x, out));
	printf("sum: %d\n", (int)CALL(miopenOpTensor)(handle, miopenTensorOpAdd, &one, x,
						      in, &one, x, in, &zero, x, out));
	for (int mode = miopenBNPerActivation; mode <= (int)miopenBNSpatial; mode++)
		printf("batch normalization: %d\n",
		       (int)CALL(miopenBatchNormalizationForwardInference)(
			       handle, (miopenBatchNormMode_t)mode, (void *)&one,
			       (void *)&zero, x, in, x, out, c, weights, weights, weights,
			       weights, 1e-5));
	CALL(miopenDestroyActivationDescriptor)(activation);
	CALL(miopenDestroyPoolingDescriptor)(pooling);
	CALL(miopenDestroyTensorDescriptor)(x);
	CALL(miopenDestroyTensorDescriptor)(y);
	CALL(miopenDestroyTensorDescriptor)(c);
}

static void layers(miopenDataType_t type)
{
	for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++)
		convolve(&convolutions[i], type);
	other_layers(type);
}

int main(int argc, char **argv)
{
	open_library(argc, argv, RTLD_LOCAL);
	in = calloc(1, BYTES);
	weights = calloc(1, BYTES);
	out = calloc(1, BYTES);
	work = calloc(4, BYTES);
	printf("create: %d\n", (int)CALL(miopenCreate)(&handle));
	layers(miopenFloat);
	if (argc > 2 && system(argv[2]) != 0)
		return fprintf(stderr, "%s failed\n", argv[2]), 1;
	layers(miopenHalf);
	layers(miopenBFloat16);
	printf("destroy: %d\n", (int)CALL(miopenDestroy)(handle));
	return 0;
}
