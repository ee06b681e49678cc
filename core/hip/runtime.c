/* SPDX-License-Identifier: MIT */
/*
 * The HIP runtime that a call would have reached without this library: the order of the original
 * reference is the global scope, then that of the caller.
 */
#include "hip.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define ADD "__hipRegisterFatBinary"
#define DROP "__hipUnregisterFatBinary"
#define LIBRARY "libamdhip64.so"
#define KPACK_LIBRARY "librocm_kpack.so"
#define HELPER "libkpack_hip.so"

static struct link_map *object_of(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* The address that an entry of MAP's dynamic section states; some systems do not relocate it. */
static const char *address_in(const struct link_map *map, ElfW(Addr) address)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): a dynamic section has numbers */
	return (const char *)(address < map->l_addr ? map->l_addr + address : address);
}

/* Whether an entry TAG of MAP's dynamic section states a name that begins with NAME. */
static bool states_name(const struct link_map *map, ElfW(Sxword) tag, const char *name)
{
	const char *strings = NULL;

	if (!map || !map->l_ld)
		return false;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			strings = address_in(map, d->d_un.d_ptr);
	for (const ElfW(Dyn) *d = map->l_ld; strings && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag &&
		    strncmp(strings + d->d_un.d_val, name, strlen(name)) == 0)
			return true;
	return false;
}

/*
 * Whether MAP is this library or another copy of it, which passes calls on to what
 * RTLD_NEXT finds, as this one does; another way back to it would never end.
 */
static bool is_helper(const struct link_map *map)
{
	return map->l_ld == _DYNAMIC || states_name(map, DT_SONAME, HELPER);
}

/* The symbol NAME as HANDLE finds it, unless that leads back; *IN: the object it is in. */
static void *find_symbol(void *handle, const char *name, struct link_map **in)
{
	void *found = dlsym(handle, name);

	if (!found) {
		(void)dlerror(); /* the program must not see this failure */
		return NULL;
	}
	*in = object_of(found);
	return handle != RTLD_NEXT && *in && is_helper(*in) ? NULL : found;
}

static bool take_runtime(void *handle, struct runtime *out)
{
	struct link_map *in = NULL, *other = NULL;
	void *add = find_symbol(handle, ADD, &in);
	void *drop = find_symbol(handle, DROP, &other);

	memcpy(&out->add, &add, sizeof(add));
	memcpy(&out->drop, &drop, sizeof(drop));
	/* a runtime that contains kpack's library is served like an old one */
	out->takes_kpack = add && states_name(in, DT_NEEDED, KPACK_LIBRARY);
	return add != NULL;
}

/* Search the loaded object NAME and what it needs. */
static bool take_from(const char *name, struct runtime *out)
{
	void *handle = *name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	bool found;

	if (!handle) {
		(void)dlerror();
		return false;
	}
	found = take_runtime(handle, out);
	dlclose(handle); /* the caller needs it, so it stays */
	return found;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *base = slash ? slash + 1 : info->dlpi_name;
	char **found = arg;

	(void)size;
	if (strncmp(base, LIBRARY, strlen(LIBRARY)) != 0)
		return 0;
	*found = strdup(info->dlpi_name);
	return 1;
}

/* A look-up of the object of an address searches all symbols, so few are made. */
void runtime_find(const void *caller, struct runtime *out)
{
	const struct link_map *map;
	char *name = NULL;

	*out = (struct runtime){0};
	/* RTLD_NEXT is the global scope if this library was preloaded */
	if (take_runtime(RTLD_NEXT, out))
		return;
	/* the object that the code or data at CALLER is in, and what it needs */
	map = object_of(caller);
	if (map && take_from(map->l_name, out))
		return;
	/* one that no scope shows, as that of a library that needs this one first */
	dl_iterate_phdr(find_library, &name);
	if (name)
		(void)take_from(name, out);
	free(name);
}
