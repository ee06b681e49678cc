/* SPDX-License-Identifier: MIT */
/*
 * The signatures that names of cuTile kernels encode (kpackx_demangle): printed for
 * people, as JSON, and as facts in an archive's metadata.
 *
 * JSON and facts have the same form, a map:
 *   symbol       the kernel's name
 *   function     name of the Python function
 *   convention   "cutile_python_v1" ...
 *   python       KernelSignature([...], CallingConvention....) in one line
 *   arguments    array of maps, in order of the launch: "name", "type" (of C), "bytes",
 *                "meaning", "parameter" (its number), and for a list's buffer "words":
 *                the number of 64-bit words for each element
 * For a name that begins like a signature and is invalid, the map has "symbol", and
 * "error" with the place and the reason.
 */
#ifndef PACKER_LIBRARY_CUTILE_SIGNATURE_H
#define PACKER_LIBRARY_CUTILE_SIGNATURE_H

#include "core/format/format.h"
#include "facts.h"
#include "packer/cli/report.h"

/*
 * Print the signature on stdout with MARGIN before each line: the Python text, one
 * parameter per line, then the C arguments; or the reason why the name is rejected.
 * Print nothing for kernels that are not cuTile's.
 */
void signature_print(const char *kernel, const char *margin);

/* Add "signatures", an array of the maps above, if OBJECT has cuTile kernels. */
void signature_facts(struct facts *f, const struct kp_object *object);

/* Limit of bytes for the signatures of one object in JSON; real ones take some thousand. */
#define SIGNATURE_JSON_MAX (16 << 20)

/*
 * The map above; NULL: not a cuTile kernel, or out of memory.  Its size is subtracted
 * from *LEFT.  If it is larger than that, *LEFT becomes 0 and the map has "symbol" and
 * "error".
 */
json_t *signature_json(const char *kernel, size_t *left);

#endif
