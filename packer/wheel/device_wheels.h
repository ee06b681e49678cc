/* SPDX-License-Identifier: MIT */
/*
 * The device wheels that a wheel is split into: which architecture goes into which device
 * wheel, their names, and which other device wheels each one needs.
 *
 * A device wheel is for a target, with xnack on, off and unstated together, because one
 * GPU may need each of them, and with the processor's steppings (gfx1250-strict), because
 * drivers, extras and AMD's own distributions know only the processor; or it is for a
 * family, if a kernel database has files for a whole family or if the user asks for it.
 */
#ifndef PACKER_WHEEL_SPLIT_DEVICE_WHEELS_H
#define PACKER_WHEEL_SPLIT_DEVICE_WHEELS_H

#include "packer/gpu/families.h"
#include "core/target/target.h"
#include "wheel_name.h"

enum device_wheel_kind {
	DEVICE_WHEEL_TARGET,
	DEVICE_WHEEL_GROUP,  /* of a kernel database: gfx11, gfx110x */
	DEVICE_WHEEL_FAMILY, /* of the user: gfx110X=gfx1100,gfx1101 */
};

struct device_wheel {
	enum device_wheel_kind kind;
	char name[KP_TARGET_TEXT_MAX];   /* "gfx90a:sramecc+", "gfx11", "gfx110X" */
	char suffix[WHEEL_NAME_MAX + 1]; /* NAME as in distributions and extras */
	char dist[WHEEL_NAME_MAX + 1];   /* "amd-torch-device-gfx942" */
	char file[WHEEL_NAME_MAX + 1];   /* "amd_torch_device_gfx942" */
	/* The targets of its code or database files, as from device_wheels_bundle, sorted. */
	char (*arches)[KP_TARGET_TEXT_MAX];
	size_t n_arches;
	struct device_wheel *
		*needs; /* device wheels, by name; see device_wheels_finish */
	size_t n_needs;
};

struct device_wheels {
	const struct families *families; /* borrowed */
	const char *host;                /* the host's distribution; borrowed */
	const char *prefix; /* of device distributions; borrowed; NULL: amd-HOST-device */
	struct device_wheel **items; /* sorted by kind and name once finished */
	size_t count;
};

/* To begin, zero the struct and set the three borrowed members. */
void device_wheels_fini(struct device_wheels *devices); /* accepts a zeroed one */

/*
 * Find the device wheel for code of ARCH alone, or add it.  INVALID_ARGUMENT: its name
 * cannot be part of a distribution's name.
 */
kpack_error_t device_wheels_arch(struct device_wheels *devices, const char *arch,
				 struct device_wheel **out, struct kpackx_error *why);
/* Find the device wheel for FAMILY, whose members are ARCHES, or add it. */
kpack_error_t device_wheels_family(struct device_wheels *devices, const char *family,
				   char (*arches)[KP_TARGET_TEXT_MAX], size_t n,
				   struct device_wheel **out, struct kpackx_error *why);

/*
 * Call it after the last device wheel is added.  Sorts them and finds the other device
 * wheels that each one needs, because their code also runs on its GPUs: those of its
 * families, of its processor with fewer stated features, and of generic targets.
 * INVALID_ARGUMENT: two device wheels have the same distribution name.
 */
kpack_error_t device_wheels_finish(struct device_wheels *devices,
				   struct kpackx_error *why);

/* True if PART has code that GPU can load; unstated features of GPU may be on or off. */
bool device_wheel_serves(const struct device_wheel *device, const char *gpu);

/*
 * ARCH as in a device wheel's name: canonical, without xnack and stepping; accepts
 * "gfx90a-xnack+", too.
 */
void device_wheels_bundle(const char *arch, char out[KP_TARGET_TEXT_MAX]);
/* Spell NAME as in distributions and extras: "gfx90a-sramecc-on".  False: impossible. */
bool device_wheels_suffix(const char *name, char out[WHEEL_NAME_MAX + 1]);

#endif
