// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"fmt"
)

// Kind classifies why an image cannot be had.
type Kind int

const (
	// Internal is a fault of this machine: its disk, its rights.
	Internal Kind = iota
	// InvalidName: the text is not an image's name.
	InvalidName
	// NotFound: the registry, the archive or the store does not have the image.
	NotFound
	// Unauthorized: the registry refuses the credentials, or that there are none.
	Unauthorized
	// Unavailable: the registry cannot be reached, or answers that it cannot answer.
	Unavailable
	// NoPlatform: the image does not exist for the platform.
	NoPlatform
	// Unsupported: it is something else than an image that this store can run.
	Unsupported
	// Corrupt: what was read does not have its digest, or is malformed or hostile.
	Corrupt
	// TooLarge: it exceeds a bound.
	TooLarge
	// Canceled: the caller's context ended.
	Canceled
)

// String is the kind in a word.
func (k Kind) String() string {
	return [...]string{"Internal", "InvalidName", "NotFound", "Unauthorized", "Unavailable", "NoPlatform", "Unsupported", "Corrupt", "TooLarge", "Canceled"}[k]
}

// Error says why an image cannot be had.
type Error struct {
	Kind Kind
	// Name is the image's name, or what else was asked for.
	Name string
	Err  error
}

// Error names the image and the cause.
func (e *Error) Error() string {
	if e.Kind == InvalidName {
		return fmt.Sprintf("%q is not an image's name: %s", e.Name, e.Err)
	}
	return fmt.Sprintf("cannot get the image %s: %s", e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reason is kubelet's and CRI's word for the error, for the reason of a waiting container
// (k8s.io/kubernetes pkg/kubelet/images/types.go, k8s.io/cri-api pkg/errors).
func (e *Error) Reason() string {
	switch e.Kind {
	case InvalidName:
		return "InvalidImageName"
	case Unavailable:
		return "RegistryUnavailable"
	default:
		return "ErrImagePull"
	}
}

// KindOf is the kind of err, Internal if it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var c *classified
	if errors.As(err, &c) {
		return c.kind
	}
	return Internal
}

// classified is a cause with its kind, on its way to an Error.
type classified struct {
	kind Kind
	err  error
}

func (c *classified) Error() string { return c.err.Error() }
func (c *classified) Unwrap() error { return c.err }

// failf makes an error of a kind.
func failf(kind Kind, format string, args ...any) error {
	return &classified{kind: kind, err: fmt.Errorf(format, args...)}
}

// as gives err a kind unless it has one.
func as(kind Kind, err error) error {
	if err == nil || KindOf(err) != Internal {
		return err
	}
	return &classified{kind: kind, err: err}
}
