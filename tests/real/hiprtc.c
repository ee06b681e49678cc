/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the runtime's compiler, with tests/real/hip.c.  A program becomes a code
 * object that computes nothing: it has the names of the source's kernels in its symbol table,
 * and the hash of the source and the options.  Logged is
 *
 *   compile NAME ARCH KERNEL...
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hiprtc.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "object.h"

#define API __attribute__((visibility("default")))

/* of tests/real/hip.c */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

struct _hiprtcProgram {
	char *source, *name;
	void *code;
	size_t size;
};

/* Find "__global__ ... NAME(", whose dots may be another call: __launch_bounds__(...). */
static bool add_kernels(struct image *o, const char *source)
{
	while ((source = strstr(source, "__global__"))) {
		const char *end, *begin;

		source += strlen("__global__");
		for (end = source; (end = strchr(end, '(')); end++) {
			const char *last = end;

			while (last > source && isspace((unsigned char)last[-1]))
				last--;
			begin = last;
			while (begin > source &&
			       (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
				begin--;
			if (last == begin || strncmp(begin, "__launch", 8) == 0)
				continue;
			if (!add_kernel(o, begin, (size_t)(last - begin)))
				return false;
			source = end;
			break;
		}
	}
	return o->sections[1].sh_size > sizeof(Elf64_Sym);
}

API hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *source,
				     const char *name, int n, const char **headers,
				     const char **names)
{
	(void)n, (void)headers, (void)names;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return HIPRTC_ERROR_OUT_OF_MEMORY;
	(*out)->source = strdup(source);
	(*out)->name = strdup(name ? name : "?");
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcCompileProgram(hiprtcProgram p, int n, const char **options)
{
	struct image *o = calloc(1, sizeof(*o));
	char *text = join_options((size_t)n, options);
	uint32_t flags = 0;
	const char *arch = find_arch(text, &flags);

	if (!o)
		abort();
	if (!arch && getenv("STUB_GPU")) { /* by default it is for the machine's GPU */
		char target[64];

		snprintf(target, sizeof(target), "=%s", getenv("STUB_GPU"));
		arch = find_arch(target, &flags);
	}
	init_image(o, flags, p->source, text);
	/* macros name MIOpen's kernels */
	if (!arch || !(strstr(text, "-DMIOPEN_") ? add_kernel(o, "*", 1)
						 : add_kernels(o, p->source))) {
		note("compile %s %s failed", p->name, arch ? arch : "?");
		free(text);
		free(o);
		return HIPRTC_ERROR_COMPILATION;
	}
	free(text);
	note("compile %s %s %s", p->name, arch, o->names + 1);
	p->code = o;
	p->size = sizeof(*o);
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcDestroyProgram(hiprtcProgram *p)
{
	free((*p)->source);
	free((*p)->name);
	free((*p)->code);
	free(*p);
	*p = NULL;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetCodeSize(hiprtcProgram p, size_t *size)
{
	*size = p->size;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetCode(hiprtcProgram p, char *code)
{
	memcpy(code, p->code, p->size);
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram p, size_t *size)
{
	(void)p;
	*size = 1;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetProgramLog(hiprtcProgram p, char *log)
{
	(void)p;
	*log = '\0';
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcVersion(int *major, int *minor)
{
	*major = 9;
	*minor = 0;
	return HIPRTC_SUCCESS;
}

API const char *hiprtcGetErrorString(hiprtcResult result)
{
	return result == HIPRTC_SUCCESS ? "success" : "an error of the stand-in";
}
