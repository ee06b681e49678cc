/* SPDX-License-Identifier: MIT */
/*
 * A row says where in an item its value is, and what it is.  Here the value becomes text, for
 * lines and lists, or JSON; how the items are found, and in which order, is the command's.
 */
#include "rows.h"
#include <inttypes.h>

static uint64_t number_of(const struct row *r, const void *place)
{
	switch (r->size) {
	case 1:
		return *(const uint8_t *)place;
	case 2:
		return *(const uint16_t *)place;
	case 4:
		return *(const uint32_t *)place;
	default:
		return *(const uint64_t *)place;
	}
}

static struct kp_span text_of(const struct row *r, const void *place)
{
	const char *text;

	if (r->kind == ROW_SPAN)
		return *(const struct kp_span *)place;
	text = *(const char *const *)place;
	return text ? kp_span_str(text) : (struct kp_span){0};
}

static void print_value(const struct row *r, const void *item)
{
	static const char *const answers[] = {"no", "yes", "unknown"};
	const void *place = (const char *)item + r->at;
	struct kp_span text;

	switch (r->kind) {
	case ROW_TEXT:
	case ROW_SPAN:
		text = text_of(r, place);
		report_span(r->where & ROW_NONE && !text.size ? kp_span_str("-") : text);
		break;
	case ROW_NUMBER:
		report_number(number_of(r, place));
		break;
	case ROW_BOOL:
		fputs(answers[*(const bool *)place], stdout);
		break;
	case ROW_ANSWER:
		fputs(answers[number_of(r, place)], stdout);
		break;
	case ROW_RATIO:
		printf("%.2f", *(const double *)place);
		break;
	}
}

void rows_line(const struct row *rows, size_t n, const void *item, int where,
	       char between)
{
	bool begun = false;

	/* one thread prints, and there can be a line for each of a million entries */
	for (const struct row *r = rows; r < rows + n; r++) {
		if (!(r->where & where))
			continue;
		if (begun)
			putchar_unlocked(between);
		print_value(r, item);
		begun = true;
	}
	putchar_unlocked('\n');
}

void rows_list(const struct row *rows, size_t n, const void *item)
{
	char size[24];

	for (const struct row *r = rows; r < rows + n; r++) {
		if (!(r->where & ROW_LIST))
			continue;
		printf("  %-14s", r->name);
		print_value(r, item);
		if (r->unit)
			printf(" %s", r->unit);
		if (r->unit && strcmp(r->unit, "bytes") == 0)
			printf(" (%s)",
			       report_size(number_of(r, (const char *)item + r->at),
					   size));
		putchar('\n');
	}
}

static json_t *value_of(const struct row *r, const void *item)
{
	const void *place = (const char *)item + r->at;
	struct kp_span text;

	switch (r->kind) {
	case ROW_TEXT:
	case ROW_SPAN:
		text = text_of(r, place);
		return r->where & ROW_NONE && !text.size ? json_null()
							 : report_json_span(text);
	case ROW_NUMBER:
		return json_integer((json_int_t)number_of(r, place));
	case ROW_BOOL:
		return json_boolean(*(const bool *)place);
	case ROW_ANSWER:
		return number_of(r, place) > 1 ? json_null()
					       : json_boolean(number_of(r, place));
	case ROW_RATIO:
		return json_real(*(const double *)place);
	default:
		return *(json_t *const *)place;
	}
}

json_t *rows_object(const struct row *rows, size_t n, const void *item)
{
	json_t *object = json_object();

	for (size_t i = 0; i < n; i++)
		if (rows[i].where & ROW_JSON)
			json_object_set_new(object, rows[i].name,
					    value_of(&rows[i], item));
	return object;
}
