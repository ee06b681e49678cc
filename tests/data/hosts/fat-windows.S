/* SPDX-License-Identifier: MIT */
	.section .hip_fatbin,"dr"
	.globl fat_one, fat_two
	.p2align 12
fat_one:
	.incbin BUNDLE
	.p2align 12
fat_two:
	.incbin BUNDLE
