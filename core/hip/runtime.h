/* SPDX-License-Identifier: MIT */
/* The HIP runtime that a call is passed on to. */
#ifndef KP_HIP_RUNTIME_H
#define KP_HIP_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

struct runtime {
	void *(*add)(const void *wrapper); /* __hipRegisterFatBinary; NULL: no runtime */
	void (*drop)(void *handle);        /* __hipUnregisterFatBinary; NULL: none */
	bool takes_kpack;                  /* it loads converted binaries itself */
};

/*
 * Find the runtime that a call from the code or data at CALLER would have reached without
 * this library.  Takes the dynamic linker's lock, so no other lock may be held.
 */
void runtime_find(const void *caller, struct runtime *out);

#endif
