// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package capability

import "errors"

// Available fails: only Linux has capabilities.
func Available() (Set, error) {
	return 0, errors.New("capabilities are a feature of Linux, and this machine runs another system")
}
