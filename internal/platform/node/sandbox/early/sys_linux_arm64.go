// SPDX-License-Identifier: Apache-2.0

package early

const (
	sysSetns   = 268
	sysSeccomp = 277
)
