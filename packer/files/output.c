/* SPDX-License-Identifier: MIT */
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "below.h"
#include "target.h"

static kpack_error_t print_to(const struct below_target *t, struct kpackx_error *why)
{
	int fd = below_target_reopen(t, O_WRONLY | O_TRUNC), status;

	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot open");
	fflush(stdout);
	status = dup2(fd, STDOUT_FILENO);
	close(fd);
	return status < 0 ? kp_fail_errno(why, errno, "cannot open") : KPACK_SUCCESS;
}

kpack_error_t output_open(const char *path, bool *stream, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct below_target t;

	*stream = false;
	if (below_target_open(&t, path) < 0)
		return KPACK_SUCCESS; /* it is no device: what is wrong, is found later */
	*stream = t.fd >= 0 && (!S_ISREG(t.st.st_mode) || t.is_open);
	if (*stream && !below_target_trusted(&t))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "is not written to, because another user may have put it "
			      "there");
	else if (*stream)
		err = print_to(&t, why);
	below_target_close(&t);
	return err;
}
