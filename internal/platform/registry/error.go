// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
)

// Code is an error code of the OCI distribution specification.
type Code string

// The codes of the specification ("Error Codes").
const (
	BlobUnknown         Code = "BLOB_UNKNOWN"
	BlobUploadInvalid   Code = "BLOB_UPLOAD_INVALID"
	BlobUploadUnknown   Code = "BLOB_UPLOAD_UNKNOWN"
	DigestInvalid       Code = "DIGEST_INVALID"
	ManifestBlobUnknown Code = "MANIFEST_BLOB_UNKNOWN"
	ManifestInvalid     Code = "MANIFEST_INVALID"
	ManifestUnknown     Code = "MANIFEST_UNKNOWN"
	NameInvalid         Code = "NAME_INVALID"
	NameUnknown         Code = "NAME_UNKNOWN"
	SizeInvalid         Code = "SIZE_INVALID"
	Unauthorized        Code = "UNAUTHORIZED"
	Denied              Code = "DENIED"
	Unsupported         Code = "UNSUPPORTED"
)

// Error is an error that is the caller's to solve. Any other error of this
// package is a failure of the machine. An Error with status 404 matches
// [fs.ErrNotExist].
type Error struct {
	// Status is the HTTP status that the error is answered with.
	Status  int
	Code    Code
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether the target is [fs.ErrNotExist] and the error means that.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound
}

func fail(status int, code Code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError returns what a client is told of err. The text of other errors names
// paths of this machine and stays here.
func asError(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fail(http.StatusForbidden, Denied, "the registry's disk is full: delete images and collect the garbage, or free other space")
	default:
		return fail(http.StatusInternalServerError, "UNKNOWN", "the registry cannot serve this request; its log says why")
	}
}
