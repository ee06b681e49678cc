/* SPDX-License-Identifier: MIT */
/*
 * Which HIP runtimes a system has, and what each does with converted binaries.  The file of a
 * runtime tells by the names in it (what a runtime contains); they are found in trees, in
 * /opt and in the dynamic linker's cache (where they are); commands that would make binaries
 * that none takes refuse it here (judging); and a runtime can be asked by loading it in
 * another process (asking).
 */
#include "runtimes.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/host/marker.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

#define LIBRARY "libamdhip64.so"
#define COMGR "libamd_comgr.so"
#define CACHE "/etc/ld.so.cache"

bool runtime_is_name(const char *name)
{
	size_t n = strlen(LIBRARY);

	return strncmp(name, LIBRARY, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

/*
 * Call FN with the path of each entry of DIR whose name begins with PREFIX; it is no fault if
 * there is no such directory.
 */
static void each_named(const char *dir, const char *prefix,
		       void (*fn)(void *arg, const char *path), void *arg)
{
	struct dirent **names;
	int n = below_scandir(dir, &names, NULL);

	for (int i = 0; i < n; i++) {
		if (strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0) {
			KP_AUTO_FREE char *path =
				xasprintf("%s/%s", dir, names[i]->d_name);

			fn(arg, path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* --- what a runtime contains ---------------------------------------------------- */

/* The call that every runtime has. */
#define CALL "__hipRegisterFatBinary"

/*
 * What a runtime's file may have: the call; names that a runtime with kpack needs, imports,
 * or has in it; the magic of compressed bundles, in a constant or in an instruction's
 * operand; the name that HIP 6 has.
 */
enum { HAS_CALL, HAS_KPACK, HAS_LOADING, HAS_MAGIC, HAS_NAME_6, RUNTIME_SIGNS };
static const char *const runtime_signs[] = {
	CALL, "librocm_kpack.so", "kpack_load_code_object", "CCOB", "libamdhip64.so.6"};

/*
 * The libamd_comgr that Debian patched to fit to LLVM 21 (7.0.2) hashes a compressed
 * bundle's header as a string, up to the first zero byte, to find its code in the cache: all
 * bundles of one version are the same to it.  It reads that header by a call of LLVM's
 * library, which other libamd_comgr with a cache either do not call (7.2.4) or contain.
 */
enum { HAS_CACHE, HAS_LLVM, HAS_SLICE, COMGR_SIGNS };
static const char *const comgr_signs[] = {"AMD_COMGR_CACHE", "libLLVM.so.",
					  "_ZN4llvm12MemoryBuffer12getFileSlice"};

enum { SIGN_MAX = 40, BLOCK = 1 << 20 };

/* Which of N SIGNS are in the file PATH.  Blocks overlap: a sign may be on a border. */
static kpack_error_t find_signs(const char *path, const char *const *signs, size_t n,
				bool *found, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *block = NULL;
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source file;
	struct stat st;

	KP_TRY(below_file_open(path, &fd, &st, why));
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	block = xmalloc(BLOCK + SIGN_MAX);
	for (uint64_t at = 0; at < file.size; at += BLOCK) {
		struct kp_span got;

		KP_TRY(kp_source_head(&file, at, block, BLOCK + SIGN_MAX, &got, why));
		for (size_t i = 0; i < n; i++)
			found[i] |= memmem(got.data, got.size, signs[i],
					   strlen(signs[i])) != NULL;
	}
	return KPACK_SUCCESS;
}

/* --- the list ------------------------------------------------------------------- */

static void runtime_fini(struct hip_runtime *r)
{
	free(r->path);
	free(r->version);
}

/* A file that cannot be read may be a runtime, and stays in the list with its reason. */
void runtimes_add(struct hip_runtimes *list, const char *path)
{
	struct kpackx_error unresolved = {0};
	bool has[RUNTIME_SIGNS] = {false};
	struct hip_runtime r = {.path = below_real(path)};
	const char *name;
	kpack_error_t err;

	if (!r.path) {
		below_fail(&unresolved, "cannot resolve its path");
		r.path = xstrdup(path);
	}
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, r.path) == 0) {
			free(r.path);
			return;
		}
	name = kp_path_name(r.path);
	r.version = xstrdup(runtime_is_name(name) && name[strlen(LIBRARY)]
				    ? name + strlen(LIBRARY) + 1
				    : "");
	err = find_signs(r.path, runtime_signs, RUNTIME_SIGNS, has, &r.why);
	if (!err && !has[HAS_CALL]) { /* no runtime */
		runtime_fini(&r);
		return;
	}
	r.contains = err || unresolved.code               ? RUNTIME_UNKNOWN
		     : has[HAS_KPACK] || has[HAS_LOADING] ? RUNTIME_TAKES
							  : RUNTIME_REFUSES;
	r.decompresses = err || has[HAS_MAGIC];
	r.is_6 = has[HAS_NAME_6] || strtoul(r.version, NULL, 10) == 6;
	if (!err)
		r.why = unresolved;
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] = r;
}

void runtimes_fini(struct hip_runtimes *list)
{
	for (size_t i = 0; i < list->count; i++)
		runtime_fini(&list->items[i]);
	free(list->items);
	*list = (struct hip_runtimes){0};
}

/* --- where they are ------------------------------------------------------------- */

bool runtimes_add_tree(struct hip_runtimes *list, const char *tree)
{
	struct tree_list *walk = tree_list_open(tree);
	struct tree_item item;
	bool whole = true;

	while (tree_list_next(walk, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			whole = false;
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode) &&
			   runtime_is_name(item.name)) {
			runtimes_add(list, item.path);
		}
	}
	tree_list_close(walk);
	return whole;
}

/*
 * For each_named in the directories of an installation, where scripts and static libraries stand
 * as well.
 */
static void add_named(void *list, const char *path)
{
	if (runtime_is_name(kp_path_name(path)))
		runtimes_add(list, path);
}

static void add_installation(void *list, const char *root)
{
	static const char *const dirs[] = {"lib", "lib64"};

	for (size_t i = 0; i < KP_COUNT(dirs); i++) {
		KP_AUTO_FREE char *dir = xasprintf("%s/%s", root, dirs[i]);

		each_named(dir, LIBRARY, add_named, list);
	}
}

/* Followed by u32 number of entries, u32 bytes of strings, and 20 bytes more. */
static const char magic[] = "glibc-ld.so.cache1.1";

enum {
	MAGIC_SIZE = sizeof(magic) - 1,
	HEADER_SIZE = MAGIC_SIZE + 28,
	/* i32 flags, u32 name, u32 path, u32 OS version, u64 capabilities */
	ENTRY_SIZE = 24,
};

/* The machine's byte order: the file is this machine's own. */
static uint32_t number_at(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

/* The string whose offset is at P; NULL: it does not end in CACHE. */
static const char *string_at(struct kp_span cache, const uint8_t *p)
{
	uint32_t offset = number_at(p);

	if (offset >= cache.size || !memchr(cache.data + offset, 0, cache.size - offset))
		return NULL;
	return (const char *)cache.data + offset;
}

bool loader_cache_walk(struct kp_span cache,
		       void (*fn)(const char *name, const char *path, void *arg),
		       void *arg)
{
	const uint8_t *at =
		cache.size ? memmem(cache.data, cache.size, magic, MAGIC_SIZE) : NULL;
	size_t n;

	/* offsets count from the table's own beginning */
	if (!at || (size_t)(cache.data + cache.size - at) < HEADER_SIZE)
		return false;
	cache = (struct kp_span){at, (size_t)(cache.data + cache.size - at)};
	n = number_at(cache.data + MAGIC_SIZE);
	if (n > (cache.size - HEADER_SIZE) / ENTRY_SIZE)
		return false;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *entry = cache.data + HEADER_SIZE + i * ENTRY_SIZE;
		const char *name = string_at(cache, entry + 4);
		const char *path = string_at(cache, entry + 8);

		if (name && path)
			fn(name, path, arg);
	}
	return true;
}

static void add_cached(const char *name, const char *path, void *arg)
{
	if (runtime_is_name(name))
		runtimes_add(arg, path);
}

void runtimes_add_system(struct hip_runtimes *list)
{
	const char *root = secure_getenv("ROCM_PATH");
	KP_AUTO_FREE uint8_t *data = NULL;
	struct kpackx_error why;
	size_t size;

	if (root && *root)
		add_installation(list, root);
	each_named("/opt", "rocm", add_installation, list);
	/* musl has no cache */
	if (!below_file_load(CACHE, SIZE_MAX, "the loader's cache", &data, &size, &why))
		(void)loader_cache_walk((struct kp_span){data, size}, add_cached, list);
}

char *helper_find(void)
{
	/* from the program's directory: as built, and as installed */
	static const char *const places[] = {"", "/../libexec/kpackfs", "/../lib/kpackfs",
					     "/../lib64/kpackfs"};
	KP_AUTO_FREE char *program = below_real("/proc/self/exe");
	char *found = NULL;
	int error = ENOENT;

	if (!program)
		return NULL;
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < KP_COUNT(places) && !found; i++) {
		KP_AUTO_FREE char *path =
			xasprintf("%s%s/libkpack_hip.so", program, places[i]);

		if (below_access(path, R_OK) == 0)
			found = below_real(path);
		if (!found && errno != ENOENT && errno != ENOTDIR && error == ENOENT)
			error = errno;
	}
	if (!found)
		errno = error;
	return found;
}

/* --- judging -------------------------------------------------------------------- */

/*
 * One that takes converted binaries, or may, is enough: which one a program loads is its own
 * choice.
 */
bool runtimes_judge(struct hip_runtimes *list, const char *input, bool refuse)
{
	char path[4096];

	if (!list->count)
		runtimes_add_system(list);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].contains != RUNTIME_REFUSES)
			return true; /* it takes them, or may */
	if (!list->count)
		return true;
	kp_text_escape(kp_span_str(list->items[0].path), path, sizeof(path));
	report_error(
		input,
		refuse ? "not converted, because the HIP runtime %s refuses "
			 "converted binaries: with --runtime any they are converted, "
			 "and need libkpack_hip(7) or 'kpack run' to have GPU code; "
			 "'kpack thin' saves space without converting them"
		       : "warning: the HIP runtime %s refuses converted binaries: "
			 "they need libkpack_hip(7) or 'kpack run' to have GPU code",
		path);
	return false;
}

/* What the libraries libamd_comgr in a runtime's directory say. */
struct comgr {
	bool known, confuses;
};

static void look_at_comgr(void *arg, const char *path)
{
	bool has[COMGR_SIGNS] = {false};
	struct comgr *comgr = arg;

	comgr->known |= !find_signs(path, comgr_signs, COMGR_SIGNS, has, NULL);
	comgr->confuses |= has[HAS_CACHE] && has[HAS_LLVM] && has[HAS_SLICE];
}

/*
 * Here every runtime must be right, because the files are ordinary fat binaries that any program
 * loads.
 */
bool runtimes_judge_compressed(struct hip_runtimes *list)
{
	static const char refuses[] =
		"this HIP runtime does not read compressed bundles: leave out "
		"--compress; or add --runtime any and use HIP 7.2 or later";
	static const char confuses[] =
		"this HIP runtime does not find the kernels of compressed bundles, "
		"because the cache of libamd_comgr 7.0.2 takes one bundle for "
		"another: leave out --compress; use a later libamd_comgr; or add "
		"--runtime any and run all programs with AMD_COMGR_CACHE=0";
	bool fine = true;

	if (!list->count)
		runtimes_add_system(list);
	for (size_t i = 0; i < list->count; i++) {
		const struct hip_runtime *r = &list->items[i];
		struct kp_span parent = kp_path_directory(r->path);
		KP_AUTO_FREE char *dir =
			xasprintf("%.*s", (int)parent.size, (const char *)parent.data);
		struct comgr comgr = {false, false};

		/* a libamd_comgr in the runtime's directory tells; if there is none, it may be
		 * any, as Debian's packages let it be for HIP 6 */
		if (r->decompresses)
			each_named(dir, COMGR, look_at_comgr, &comgr);
		if (r->decompresses && !comgr.confuses && (comgr.known || !r->is_6))
			continue;
		report_error(r->path, "%s", r->decompresses ? confuses : refuses);
		fine = false;
	}
	return fine;
}

/* --- asking --------------------------------------------------------------------- */

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

/*
 * In a child: register the wrapper of a converted binary whose marker leads to no archive.  A runtime
 * may print, and must not end what the user sees.  The dynamic linker's reason goes to a pipe, which
 * has room for it.
 */
void runtime_ask(struct hip_runtime *runtime)
{
	char *nowhere = (char *)"/nonexistent/none.kpack";
	const struct kp_marker marker = {.kernel_name = (char *)"none",
					 .search_paths = &nowhere,
					 .n_search_paths = 1};
	struct wrapper w = {.magic = KP_WRAPPER_HIPK, .version = KP_WRAPPER_VERSION};
	char bytes[400], text[600] = "";
	const char *failure = NULL;
	int reason[2], status = 0, nothing;
	void *library, *found;
	void *(*add)(const void *);
	uint8_t *made;
	size_t size;
	pid_t child;
	ssize_t n;

	runtime->was_asked = true;
	runtime->asked = RUNTIME_UNKNOWN;
	if (!below_is_firm(runtime->path)) {
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR,
			"is not loaded, because a user other than root can write it, or "
			"put another file in its place");
		return;
	}
	/* nonblocking: processes that the runtime started may keep it open */
	if (pipe2(reason, O_CLOEXEC | O_NONBLOCK)) {
		kp_fail_errno(&runtime->why, errno, "no pipe to ask it by");
		return;
	}
	child = fork();
	if (child == 0) {
		nothing = below_open("/dev/null", O_RDWR, 0);
		if (nothing >= 0) {
			dup2(nothing, STDOUT_FILENO);
			dup2(nothing, STDERR_FILENO);
		}
		alarm(SECONDS_MAX);
		if (!kp_marker_write(&marker, &made, &size, NULL))
			w.pointer = made;
		library = dlopen(runtime->path, RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			const char *said = dlerror();

			if (said && write(reason[1], said, strlen(said)) < 0) {
				/* it is missing in the message */
			}
			_exit(ANSWER_NO_LOADING);
		}
		found = dlsym(library, "__hipRegisterFatBinary");
		if (!found || !w.pointer)
			_exit(ANSWER_NO_CALL);
		memcpy(&add, &found, sizeof(add));
		_exit(add(&w) ? ANSWER_TAKES : ANSWER_REFUSES);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		failure = "no process to ask it in";
	} else if (!WIFEXITED(status)) {
		failure = "the process ended by a signal";
	} else if (WEXITSTATUS(status) == ANSWER_TAKES) {
		runtime->asked = RUNTIME_TAKES;
	} else if (WEXITSTATUS(status) == ANSWER_REFUSES) {
		runtime->asked = RUNTIME_REFUSES;
	} else if (WEXITSTATUS(status) == ANSWER_NO_CALL) {
		failure = "it has no __hipRegisterFatBinary";
	} else if (WEXITSTATUS(status) == ANSWER_NO_LOADING) {
		failure = "it cannot be loaded here";
		n = read(reason[0], bytes, sizeof(bytes));
		if (n > 0)
			kp_text_escape((struct kp_span){(uint8_t *)bytes, (size_t)n},
				       text, sizeof(text));
	} else {
		failure = "the process ended by itself";
	}
	if (failure)
		kp_fail(&runtime->why, KPACK_ERROR_IO_ERROR, "%s%s%s", failure,
			*text ? ": " : "", text);
	close(reason[0]);
	close(reason[1]);
}
