/* SPDX-License-Identifier: MIT */
/*
 * Signatures of cuTile's kernels, which their names state (kpackx_demangle): for people, as
 * JSON, and as facts in an archive's metadata.
 *
 * Data has one shape everywhere, a map:
 *   symbol       the kernel's name
 *   function     name of the Python function
 *   convention   "cutile_python_v1" ...
 *   python       KernelSignature([...], CallingConvention....) in one line
 *   parameters   array of maps: "kind" ("scalar", "array", "list", "tuple", "dataclass",
 *                "constant") and what the kind has, defaults left out; integers beyond 64
 *                bits are text, floats have "bits" besides, and no "value" if not finite
 *   arguments    array of maps, in order of the launch: "name", "type" (of C), "bytes",
 *                "meaning", "parameter" (its number), and of a list's buffer "words":
 *                what the 64-bit words of each element hold, in order
 * Of a name that begins a signature and is not valid: symbol and error, which says where and
 * why.
 */
#ifndef PACKER_LIBRARY_CUTILE_SIGNATURE_H
#define PACKER_LIBRARY_CUTILE_SIGNATURE_H

#include <stdbool.h>
#include "core/format/object.h"
#include "facts.h"
#include "packer/cli/report.h"

/* Is KERNEL named like one of cuTile's, "name_Kt1..."? */
bool signature_named(const char *kernel);

/*
 * Print the signature on stdout, each line after MARGIN: the Python text, one parameter a
 * line, then the C arguments; or why the name is rejected.  Nothing for other kernels.
 */
void signature_print(const char *kernel, const char *margin);

/* Add "signatures", an array of the maps above, when OBJECT has kernels of cuTile's. */
void signature_facts(struct facts *f, const struct kp_object *object);

#if KP_WITH_JSON
/* Bytes of JSON that the signatures of one object may take; real ones take some thousand. */
#define SIGNATURE_JSON_MAX (16 << 20)

/*
 * The map above; NULL: no kernel of cuTile's, or out of memory.  Its bytes are taken from
 * *LEFT; when they are more, nothing is left, and the map holds symbol and error.
 */
json_t *signature_json(const char *kernel, size_t *left);
#endif

#endif
