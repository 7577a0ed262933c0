// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rootless

import (
	"errors"
	"os"
)

// User is the user who stands behind the root of a user namespace.
type User struct{ UID, GID int }

// Owner: this system has no user namespaces.
func Owner() (User, bool) { return User{}, false }

// Root reports whether this process is root of the machine.
func Root() bool { return os.Geteuid() == 0 }

// Allowed: this system has no user namespaces.
func Allowed() error { return Enter(nil) }

// Enter: this system has no user namespaces.
func Enter([]int) error { return errors.New("user namespaces require Linux") }
