/* SPDX-License-Identifier: MIT */
/*
 * dpkg's file has a paragraph for each package.  It comes from the system,
 * but its names are printed for command lines, so that only names as dpkg allows them pass.
 * A package "base" has its code in packages that enhance it, "base-gfx1100"; which of them a
 * GPU lacks follows from the fields of both.
 */
#include "installed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/base/order.h"
#include "packer/cli/xalloc.h"

/* --- dpkg's file ---------------------------------------------------------------- */

/* Step to the next word of *LIST; what stands in parentheses is none. */
static bool next_word(const char **list, const char **word, size_t *size)
{
	for (;;) {
		*list += strspn(*list, " \t\n,|");
		*word = *list;
		if (**list == '(') {
			*list += strcspn(*list, ")");
			*list += **list == ')';
			continue;
		}
		*size = strcspn(*list, " \t\n,|(");
		*list += *size;
		return *size > 0;
	}
}

static void fini_package(struct gpu_installed_package *p)
{
	free(p->name);
	free(p->gpus);
	free(p->suggests);
	free(p->base);
}

/* Cut the first line, without its end, from *TEXT. */
static struct kp_span next_line(struct kp_span *text)
{
	const uint8_t *end = memchr(text->data, '\n', text->size);
	struct kp_span line = {text->data, end ? (size_t)(end - text->data) : text->size};

	*text = kp_span_tail(*text, line.size + (end != NULL));
	return line;
}

/*
 * The first field NAME of a package's PARAGRAPH, on the heap; NULL: it is empty, or there is none.
 * A line that begins with a blank continues the field before it.  Lines with a NUL are not dpkg's.
 */
static char *field_of(struct kp_span paragraph, const char *name)
{
	size_t n = strlen(name), size;
	char *value = NULL;
	bool inside = false;
	FILE *f = NULL;

	while (paragraph.size) {
		struct kp_span line = next_line(&paragraph);

		if (!line.size || memchr(line.data, '\0', line.size))
			continue;
		if (*line.data != ' ' && *line.data != '\t') {
			if (inside)
				break;
			inside = line.size > n && line.data[n] == ':' &&
				 strncasecmp((const char *)line.data, name, n) == 0;
			line = kp_span_tail(line, inside ? n + 1 : 0);
		}
		while (line.size && strchr(" \t\r", line.data[line.size - 1]))
			line.size--;
		if (!inside || !line.size)
			continue;
		if (!f)
			f = xmemstream(&value, &size);
		fprintf(f, " %.*s", (int)line.size, (const char *)line.data);
	}
	if (f)
		fclose(f);
	return value;
}

/*
 * The first word of the field NAME, on the heap; NULL: none, or none that can be a package's name,
 * because it is printed for command lines.
 */
static char *name_of(struct kp_span paragraph, const char *name)
{
	KP_AUTO_FREE char *value = field_of(paragraph, name);
	const char *list = value ? value : "", *word;
	size_t size;

	if (!next_word(&list, &word, &size) || *word == '-' ||
	    strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789.+-") < size)
		return NULL;
	return xstrndup(word, size);
}

void gpu_installed_parse(struct kp_span status, struct gpu_installed *out)
{
	size_t kept = 0;

	*out = (struct gpu_installed){0};
	while (status.size) {
		struct kp_span paragraph = {status.data, 0};
		struct gpu_installed_package p;
		KP_AUTO_FREE char *wanted = NULL;
		const char *state;

		/* up to an empty line */
		while (status.size && next_line(&status).size)
			paragraph.size = (size_t)(status.data - paragraph.data);
		p = (struct gpu_installed_package){
			.name = name_of(paragraph, "Package"),
			.gpus = field_of(paragraph, "X-Rocm-Gpu-Architecture"),
			.suggests = field_of(paragraph, "Suggests"),
		};
		/* "WANTED ERROR STATE": of which these three are a package that is there as a whole */
		wanted = field_of(paragraph, "Status");
		state = wanted ? strrchr(wanted, ' ') : NULL;
		if (!p.name || !(p.gpus || p.suggests) || !state ||
		    (strcmp(state, " installed") != 0 &&
		     strcmp(state, " triggers-awaited") != 0 &&
		     strcmp(state, " triggers-pending") != 0)) {
			fini_package(&p);
			continue;
		}
		p.base = p.gpus ? name_of(paragraph, "Enhances") : NULL;
		xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
		out->items[out->count++] = p;
	}
	kp_sort(out->items, out->count, KP_BY_TEXT(struct gpu_installed_package, name));
	/* a package may be installed for several machines */
	for (size_t i = 0; i < out->count; i++) {
		if (kept && strcmp(out->items[kept - 1].name, out->items[i].name) == 0)
			fini_package(&out->items[i]);
		else
			out->items[kept++] = out->items[i];
	}
	out->count = kept;
}

void gpu_installed_fini(struct gpu_installed *list)
{
	for (size_t i = 0; i < list->count; i++)
		fini_package(&list->items[i]);
	free(list->items);
	*list = (struct gpu_installed){0};
}

/* --- which packages GPUs need --------------------------------------------------- */

/* Whether P has code that GPU loads: it names its target, or a family of it in any case. */
static bool serves_gpu(const struct gpu_installed_package *p, const struct kp_target *gpu)
{
	const struct gpu_subfamily *s = gpu_subfamily_of(kp_span_str(gpu->processor));
	const char *const families[] = {s ? s->name : "", s ? s->family : "",
					s ? s->series : ""};
	const char *list = p->gpus ? p->gpus : "", *word;
	struct kp_target code;
	size_t n;

	while (next_word(&list, &word, &n)) {
		for (size_t i = 0; i < KP_COUNT(families); i++)
			if (strlen(families[i]) == n &&
			    strncasecmp(families[i], word, n) == 0)
				return true;
		if (!kp_target_parse((struct kp_span){(const uint8_t *)word, n}, &code,
				     NULL) &&
		    kp_target_fit(gpu, &code) != KP_FIT_NONE)
			return true;
	}
	return false;
}

/*
 * What is not known - a family, a future processor - may be for one of the GPUs, and is never
 * reported as useless.
 */
bool gpu_installed_serves(const struct gpu_installed_package *p,
			  const struct kp_choice *gpus)
{
	const char *list = p->gpus ? p->gpus : "", *word;
	struct kp_target code;
	size_t n;

	for (size_t i = 0; i < gpus->count; i++)
		if (serves_gpu(p, &gpus->gpus[i]))
			return true;
	while (next_word(&list, &word, &n))
		if (kp_target_parse((struct kp_span){(const uint8_t *)word, n}, &code,
				    NULL) ||
		    !code.known)
			return true;
	return false;
}

/*
 * P needs a part for GPU if it has parts at all, none of which - and not P itself - has code for
 * GPU.
 */
char *gpu_installed_lacks(const struct gpu_installed *list,
			  const struct gpu_installed_package *p,
			  const struct kp_target *gpu)
{
	char arch[KP_TARGET_TEXT_MAX];
	KP_AUTO_FREE char *code = xasprintf("%s-device-code", p->name);
	const char *suggests = p->suggests ? p->suggests : "", *word;
	bool has_parts = false; /* for GPUs: P suggests them, or one is installed */
	size_t n;

	if (p->base || serves_gpu(p, gpu))
		return NULL;
	while (!has_parts && next_word(&suggests, &word, &n))
		has_parts = n == strlen(code) && memcmp(word, code, n) == 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct gpu_installed_package *part = &list->items[i];

		if (!part->base || strcmp(part->base, p->name) != 0)
			continue;
		if (serves_gpu(part, gpu))
			return NULL;
		has_parts = true;
	}
	kp_target_format(gpu, arch);
	return has_parts ? gpu_package_name(p->name, arch) : NULL;
}
