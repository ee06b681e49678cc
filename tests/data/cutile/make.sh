#!/bin/sh
# SPDX-License-Identifier: MIT
# Make kernels.cubin again; needs CUDA 13.0.
set -eu
cd "$(dirname "$0")"
nvcc -arch=sm_100 -cubin -o kernels.cubin kernels.cu
