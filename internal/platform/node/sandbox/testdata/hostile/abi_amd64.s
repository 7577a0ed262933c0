// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func int80(number, a, b, c uint32) int32
TEXT ·int80(SB), NOSPLIT, $0-20
	MOVL number+0(FP), AX
	MOVL a+4(FP), BX
	MOVL b+8(FP), CX
	MOVL c+12(FP), DX
	XORL SI, SI
	XORL DI, DI
	INT  $0x80
	MOVL AX, ret+16(FP)
	RET
