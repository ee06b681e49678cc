/* SPDX-License-Identifier: MIT */
/* Asking a runtime what it does with the wrapper of a converted binary. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/text.h"
#include "core/elf/marker.h"
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

/* Write the reason of the dynamic linker to the pipe FD, which has room for it. */
static void write_reason(int fd)
{
	const char *reason = dlerror();

	if (reason && write(fd, reason, strlen(reason)) < 0)
		return; /* it is missing in the message */
}

/* In the child: a runtime may print, and must not end what the user sees. */
static int answer_of(const char *path, int reason)
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
	if (!library) {
		write_reason(reason);
		return ANSWER_NO_LOADING;
	}
	found = dlsym(library, "__hipRegisterFatBinary");
	if (!found || !w.pointer)
		return ANSWER_NO_CALL;
	memcpy(&add, &found, sizeof(add));
	return add(&w) ? ANSWER_TAKES : ANSWER_REFUSES;
}

/* The child ended with STATUS; the pipe REASON may have the dynamic linker's reason. */
static void set_failure(struct hip_runtime *runtime, int status, int reason)
{
	char bytes[400], text[600] = "";
	const char *what = "the process ended by itself";
	ssize_t n;

	if (!WIFEXITED(status))
		what = "the process ended by a signal";
	else if (WEXITSTATUS(status) == ANSWER_NO_CALL)
		what = "it has no __hipRegisterFatBinary";
	else if (WEXITSTATUS(status) == ANSWER_NO_LOADING) {
		what = "it cannot be loaded here";
		n = read(reason, bytes, sizeof(bytes));
		if (n > 0)
			kp_text_escape((struct kp_span){(uint8_t *)bytes, (size_t)n},
				       text, sizeof(text));
	}
	kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR, "%s%s%s", what, *text ? ": " : "",
		text);
}

static void ask_child(struct hip_runtime *runtime, const int reason[2])
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(answer_of(runtime->path, reason[1]));
	if (child < 0 || waitpid(child, &status, 0) != child)
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR, "no process to ask it in");
	else if (WIFEXITED(status) && WEXITSTATUS(status) == ANSWER_TAKES)
		runtime->asked = RUNTIME_TAKES;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == ANSWER_REFUSES)
		runtime->asked = RUNTIME_REFUSES;
	else
		set_failure(runtime, status, reason[0]);
}

void runtime_ask(struct hip_runtime *runtime)
{
	int reason[2];

	runtime->was_asked = true;
	runtime->asked = RUNTIME_UNKNOWN;
	if (!below_is_firm(runtime->path)) {
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR,
			"is not loaded, because a user other than root can write it, or "
			"put "
			"another file in its place");
		return;
	}
	/* nonblocking: processes that the runtime started may keep it open */
	if (pipe2(reason, O_CLOEXEC | O_NONBLOCK)) {
		kp_fail_errno(&runtime->why, errno, "no pipe to ask it by");
		return;
	}
	ask_child(runtime, reason);
	close(reason[0]);
	close(reason[1]);
}
