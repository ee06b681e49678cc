/* SPDX-License-Identifier: MIT */
/* arch= in the words of the log: what is wrong with a list, and which GPU has no code. */
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/base/strbuf.h"
#include "arch_filter.h"
#include "fs/base/log.h"

static bool fail_list(const char *text)
{
	log_about(LOG_ERR, "arch=", text);
	return false;
}

bool arches_add(struct kp_choice *s, const char *list)
{
	struct kpackx_error why = {0};

	return (!kp_choice_add(s, list, &why) &&
		!kp_choice_check(s, KP_CHOICE_ARCHES, &why)) ||
	       fail_list(why.text);
}

static void warn_none(const struct kp_choice *s, const char *place,
		      const struct kpackx_error *why)
{
	log_print(LOG_WARNING, "%s: arch=auto finds no GPU%s%s%s", place,
		  why->code ? ": " : "", why->code ? why->text : "",
		  s->count ? "" : "; only files for every architecture are shown");
}

bool arches_find(struct kp_choice *s, const char *topology)
{
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	bool ok;

	if (!s->find || s->all)
		return true;
	kp_gpus_read(topology, &gpus, &why);
	for (size_t i = 0; i < gpus.faults.kept; i++)
		log_print(LOG_WARNING, "%s", gpus.faults.items[i].text);
	if (gpus.count == 0)
		warn_none(s, topology ? topology : KP_TOPOLOGY, &why);
	ok = !kp_choice_add_found(s, &gpus, &why) || fail_list(why.text);
	kp_gpus_fini(&gpus);
	return ok;
}

/* Whether A has code that GPU number GPU chooses. */
static bool archive_serves(const struct kp_choice *s, size_t gpu, struct kpack_archive *a)
{
	struct kp_target code;

	if (!s->exact)
		return kp_archive_serves(a, &s->gpus[gpu]);
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (!kp_target_parse(kp_span_str(kp_archive_arch(a, i)), &code, NULL) &&
		    kp_target_eq(&s->gpus[gpu], &code))
			return true;
	return false;
}

void arches_warn(const struct kp_choice *s, struct kpack_archive *const *archives,
		 size_t count)
{
	char text[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < s->named && !s->all; i++) {
		size_t k = 0;

		if (kp_target_neutral(&s->gpus[i]))
			continue;
		while (k < count && !archive_serves(s, i, archives[k]))
			k++;
		if (k < count)
			continue;
		kp_target_format(&s->gpus[i], text);
		log_print(LOG_WARNING, "arch=%s: no archive has a file for it", text);
	}
}

char *arches_line_new(const struct kp_choice *s, const char *separator)
{
	struct kp_compose line = {0};
	char target[KP_TARGET_TEXT_MAX], *text;

	if (kp_choice_is_all(s))
		kp_compose_str(&line, "all");
	for (size_t i = 0; i < s->count && !kp_choice_is_all(s); i++) {
		kp_target_format(&s->gpus[i], target);
		kp_compose_print(&line, "%s%s", i ? separator : "", target);
	}
	if (!line.size || kp_compose_take(&line, &text, NULL))
		return NULL;
	return text;
}
