/* SPDX-License-Identifier: MIT */
/* Write an archive again, without some of its entries. */
#ifndef PACKER_PRUNE_REWRITE_H
#define PACKER_PRUNE_REWRITE_H

#include "prune.h"

/*
 * Replace A by the archive of the entries that stay, with its owner, permissions and
 * attributes, or remove it if there are none; with DRY, only find the new size.  The file
 * is replaced as a whole.  Errors of merge_plan_new, merge_plan_write and publishing.
 */
kpack_error_t prune_rewrite(struct prune_archive *a, bool dry, struct kpackx_error *why);

#endif
