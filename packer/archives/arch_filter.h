/* SPDX-License-Identifier: MIT */
/* The selection of --arch LIST and --arch-exact, and which of its GPUs found anything. */
#ifndef PACKER_ARCHIVES_ARCH_FILTER_H
#define PACKER_ARCHIVES_ARCH_FILTER_H

#include "core/target/choice.h"
#include "operands.h"
#include "packer/cli/options.h"

/* Zeros: everything is selected. */
struct arch_filter {
	struct kp_choice chosen;
	bool *matched; /* per GPU: whether there was code for it */
};

/*
 * Add LIST, whose "auto" is the GPUs of this machine.  INVALID_ARGUMENT: LIST is wrong;
 * ARCH_NOT_FOUND, IO_ERROR: no GPU was found.
 */
kpack_error_t arch_filter_add(struct arch_filter *filter, const char *list,
			      struct kpackx_error *why);

/* The same for an option (OPTION_TAKE) whose argument is the list; SLOT is the filter. */
int arch_filter_take(const struct options *o, const struct option_help *row, void *slot);

/* The rows of a command whose arguments TYPE have a filter MEMBER. */
#define ARCH_FILTER_OPTIONS(type, member) ARCH_FILTER_OPTIONS_TO("", type, member)

/* The same, with TEXT in front of the descriptions: what is done with the code. */
#define ARCH_FILTER_OPTIONS_TO(text, type, member)                                       \
	{0, "arch", "LIST", text "only what these GPUs can load; auto: this machine's",  \
	 OPTION_TAKE(type, member, arch_filter_take)},                                   \
	{                                                                                \
		0, "arch-exact", NULL,                                                   \
			text "only code for the very target IDs of --arch",              \
			OPTION_PLACE(type, member.chosen.exact)                          \
	}

/* The same for any list; OPTION is the option's name. */
int arch_filter_put(struct arch_filter *filter, const struct command_help *help,
		    const char *option, const char *list);

/* A usage fault: --arch-exact has no list. */
void arch_filter_check(const struct arch_filter *filter, const struct command_help *help);
/*
 * A usage fault: a GPU of the list is not known.  Because of a misspelt name, code that is
 * needed would be removed.
 */
void arch_filter_check_known(const struct arch_filter *filter,
			     const struct command_help *help);

/* Whether FILTER selects ARCH, as kp_choice_has; also remembers which GPUs matched. */
bool arch_filter_match(struct arch_filter *filter, struct kp_span arch);

/*
 * Whether code for ARCH can be removed where only code that FILTER selects is needed: it is
 * for a known GPU, and no GPU of the filter loads it.  Also remembers which GPUs matched.
 */
bool arch_filter_drops(struct arch_filter *filter, struct kp_span arch);

/* Match every entry of the archives, then warn of GPUs for which there was none. */
void arch_filter_warn(struct arch_filter *filter, const struct archives *set);
/* Warn of GPUs for which nothing was so far; WHAT is the message's noun: "entry". */
void arch_filter_unmatched(const struct arch_filter *filter, const char *what);
void arch_filter_fini(struct arch_filter *filter);

#endif
