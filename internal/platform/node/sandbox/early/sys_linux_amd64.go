// SPDX-License-Identifier: Apache-2.0

package early

const (
	sysSetns   = 308
	sysSeccomp = 317
)
