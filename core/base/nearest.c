/* SPDX-License-Identifier: MIT */
#include "nearest.h"
#include <string.h>

/*
 * The distance is how many letters are to be inserted, removed, replaced or swapped with their
 * neighbour to make NAME of the word; rows[i][k] is that of their first I and K letters.
 */
void kp_nearest_try(struct kp_nearest *nearest, const char *name)
{
	enum { LONGEST = 40 };
	unsigned rows[LONGEST + 1][LONGEST + 1];
	const char *word = nearest->word;
	size_t n = strcspn(word, "="), m = strcspn(name, "=");

	if (n > LONGEST || m > LONGEST)
		return;
	for (size_t i = 0; i <= n; i++)
		for (size_t k = 0; k <= m; k++) {
			unsigned least = (unsigned)(i ? i : k);

			if (i && k) {
				least = rows[i - 1][k - 1] + (word[i - 1] != name[k - 1]);
				if (rows[i - 1][k] + 1 < least)
					least = rows[i - 1][k] + 1;
				if (rows[i][k - 1] + 1 < least)
					least = rows[i][k - 1] + 1;
			}
			if (i > 1 && k > 1 && word[i - 1] == name[k - 2] &&
			    word[i - 2] == name[k - 1] && rows[i - 2][k - 2] + 1 < least)
				least = rows[i - 2][k - 2] + 1;
			rows[i][k] = least;
		}
	/* of a short word most letters would have to change to make any other short one */
	if (rows[n][m] > 1 + n / 6 || (nearest->name && rows[n][m] >= nearest->distance))
		return;
	nearest->name = name;
	nearest->distance = rows[n][m];
}
