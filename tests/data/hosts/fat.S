	.hidden __hip_fatbin
	.globl __hip_fatbin
	.section .hip_fatbin,"a",@progbits
	.p2align 12
__hip_fatbin:
	.incbin BUNDLE
	.section .note.GNU-stack,"",@progbits
