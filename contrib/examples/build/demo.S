/* SPDX-License-Identifier: MIT */
/* What hipcc makes of HIP code, for a machine without it: a bundle, and the wrapper that leads to it. */
	.section .hip_fatbin, "a", @progbits
	.p2align 12
bundle:	.incbin "demo.bundle"
	.section .hipFatBinSegment, "aw", @progbits
	.p2align 3
	.long 0x48495046, 1
	.quad bundle, 0
	.section .note.GNU-stack, "", @progbits
