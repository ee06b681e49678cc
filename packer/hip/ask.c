/* SPDX-License-Identifier: MIT */
/* Asking a runtime what it does with the wrapper of a converted binary. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/binary/marker.h"
#include "packer/files/below.h"
#include "runtimes.h"

enum {
	ANSWER_TAKES = 10,
	ANSWER_REFUSES,
	ANSWER_NO_LOADING,
	ANSWER_NO_CALL,
	SECONDS_MAX = 60,
};

struct wrapper {
	uint32_t magic, version;
	const void *pointer;
	uint64_t index;
};

/* A marker that leads to no archive. */
static const void *make_marker(void)
{
	char *path = (char *)"/nonexistent/none.kpack";
	struct kp_marker m = {.kernel_name = (char *)"none",
			      .search_paths = &path,
			      .n_search_paths = 1};
	uint8_t *bytes;
	size_t size;

	return kp_marker_write(&m, &bytes, &size, NULL) ? NULL : bytes;
}

/* In the child: a runtime may print, and must not end what the user sees. */
static int answer_of(const char *path)
{
	struct wrapper w = {.magic = KP_WRAPPER_HIPK, .version = KP_WRAPPER_VERSION};
	int nothing = below_open("/dev/null", O_RDWR, 0);
	void *library, *found;
	void *(*add)(const void *);

	if (nothing >= 0) {
		dup2(nothing, STDOUT_FILENO);
		dup2(nothing, STDERR_FILENO);
	}
	alarm(SECONDS_MAX);
	w.pointer = make_marker();
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return ANSWER_NO_LOADING;
	found = dlsym(library, "__hipRegisterFatBinary");
	if (!found || !w.pointer)
		return ANSWER_NO_CALL;
	memcpy(&add, &found, sizeof(add));
	return add(&w) ? ANSWER_TAKES : ANSWER_REFUSES;
}

static const char *failure_text(int status)
{
	if (!WIFEXITED(status))
		return "the process ended by a signal";
	switch (WEXITSTATUS(status)) {
	case ANSWER_NO_LOADING:
		return "it cannot be loaded here";
	case ANSWER_NO_CALL:
		return "it has no __hipRegisterFatBinary";
	default:
		return "the process ended by itself";
	}
}

void runtime_ask(struct hip_runtime *runtime)
{
	pid_t child;
	int status = 0;

	runtime->was_asked = true;
	runtime->asked = RUNTIME_UNKNOWN;
	if (!below_is_firm(runtime->path)) {
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR,
			"is not loaded, because a user other than root can write it, or "
			"put "
			"another file in its place");
		return;
	}
	child = fork();
	if (child == 0)
		_exit(answer_of(runtime->path));
	if (child < 0 || waitpid(child, &status, 0) != child) {
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR, "no process to ask it in");
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == ANSWER_TAKES)
		runtime->asked = RUNTIME_TAKES;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == ANSWER_REFUSES)
		runtime->asked = RUNTIME_REFUSES;
	else
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR, "%s", failure_text(status));
}
