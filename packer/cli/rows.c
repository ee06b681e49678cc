/* SPDX-License-Identifier: MIT */
/*
 * A row says where in an item its value is, and what it is.  Here the value becomes text, for
 * lines and lists, or JSON; how the items are found, and in which order, is the command's.
 */
#include "rows.h"
#include "core/base/order.h"

static uint64_t number_of(const struct row *r, const void *item)
{
	return kp_number_at((const char *)item + r->at, r->size);
}

static struct kp_span text_of(const struct row *r, const void *item)
{
	const void *place = (const char *)item + r->at;
	const char *text;

	if (r->kind == ROW_SPAN)
		return *(const struct kp_span *)place;
	text = *(const char *const *)place;
	return text ? kp_span_str(text) : (struct kp_span){0};
}

static void print_value(const struct row *r, const void *item)
{
	static const char *const answers[] = {"no", "yes", "unknown"};
	struct kp_span text;

	switch (r->kind) {
	case ROW_TEXT:
	case ROW_SPAN:
		text = text_of(r, item);
		report_span(r->where & ROW_NONE && !text.size ? kp_span_str("-") : text);
		break;
	case ROW_NUMBER:
		report_number(number_of(r, item));
		break;
	case ROW_BOOL:
	case ROW_ANSWER:
		fputs(answers[number_of(r, item)], stdout);
		break;
	case ROW_RATIO:
		printf("%.2f", *(const double *)((const char *)item + r->at));
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

	/* names in a column of their own; a longer name moves its value to the right */
	for (const struct row *r = rows; r < rows + n; r++) {
		if (!(r->where & ROW_LIST) ||
		    (r->where & ROW_OPTIONAL && number_of(r, item) == 0))
			continue;
		printf("  %-13s ", r->name);
		print_value(r, item);
		if (r->unit)
			printf(" %s", r->unit);
		if (r->unit && strcmp(r->unit, "bytes") == 0)
			printf(" (%s)", report_size(number_of(r, item), size));
		putchar('\n');
	}
}

/* jansson leaves out a member without a value. */
void rows_add(json_t *object, const struct row *rows, size_t n, const void *item)
{
	for (const struct row *r = rows; r < rows + n; r++) {
		struct kp_span text;
		json_t *value = NULL;
		uint64_t number;

		if (!(r->where & ROW_JSON))
			continue;
		switch (r->kind) {
		case ROW_TEXT:
		case ROW_SPAN:
			text = text_of(r, item);
			if (text.size || !(r->where & (ROW_NONE | ROW_OPTIONAL)))
				value = report_json_span(text);
			else if (r->where & ROW_NONE)
				value = json_null();
			break;
		case ROW_NUMBER:
			number = number_of(r, item);
			value = json_integer(number > INT64_MAX ? INT64_MAX
								: (json_int_t)number);
			break;
		case ROW_BOOL:
		case ROW_ANSWER:
			number = number_of(r, item);
			value = number > 1 ? json_null() : json_boolean(number);
			break;
		case ROW_RATIO:
			value = json_real(*(const double *)((const char *)item + r->at));
			break;
		case ROW_VALUE:
			value = *(json_t *const *)((const char *)item + r->at);
		}
		json_object_set_new(object, r->name, value);
	}
}

json_t *rows_object(const struct row *rows, size_t n, const void *item)
{
	json_t *object = json_object();

	rows_add(object, rows, n, item);
	return object;
}

json_t *rows_array(const struct row *rows, size_t n, const void *items, size_t count,
		   size_t size)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			array, rows_object(rows, n, (const char *)items + i * size));
	return array;
}
