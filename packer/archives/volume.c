/* SPDX-License-Identifier: MIT */
#include "volume.h"
#include <stdio.h>
#include <stdlib.h>

void volume_fini(struct volume *v)
{
	kp_store_fini(&v->store);
	free(v->file);
}
