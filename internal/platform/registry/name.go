// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
)

// maxName bounds a repository's name, in bytes: what clients accept of a
// registry's host and the name together.
const maxName = 255

// The grammars are those of the specification ("Pulling manifests"). No
// component starts with a dot or an underscore, so that neither ".." nor the
// registry's own directories can be named.
var (
	nameForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagForm  = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

func validName(name string) bool { return len(name) <= maxName && nameForm.MatchString(name) }

func checkName(name string) error {
	if !validName(name) {
		return fail(http.StatusBadRequest, NameInvalid, "%.80q is not a repository name: up to %d lower-case letters, digits and single separators", name, maxName)
	}
	return nil
}

func checkTag(tag string) error {
	if !tagForm.MatchString(tag) {
		return fail(http.StatusBadRequest, ManifestInvalid, "%.80q is neither a digest nor a tag", tag)
	}
	return nil
}

// tagFile returns the file name of a tag. Tags that differ in case alone are
// different, which not every file system respects: the name is in lower case,
// and a bitmap after "!" tells which letters are capitals.
func tagFile(tag string) string {
	capitals := make([]byte, (len(tag)+7)/8)
	any := false
	for i := range len(tag) {
		if 'A' <= tag[i] && tag[i] <= 'Z' {
			capitals[i/8] |= 1 << (i % 8)
			any = true
		}
	}
	if !any {
		return tag
	}
	return strings.ToLower(tag) + "!" + hex.EncodeToString(capitals)
}

// tagOf is the inverse of tagFile. It reports whether the file is a tag's.
func tagOf(file string) (string, bool) {
	lower, bitmap, _ := strings.Cut(file, "!")
	capitals, err := hex.DecodeString(bitmap)
	if err != nil || len(capitals) > (len(lower)+7)/8 {
		return "", false
	}
	tag := []byte(lower)
	for i := range tag {
		if i/8 < len(capitals) && capitals[i/8]>>(i%8)&1 == 1 {
			tag[i] -= 'a' - 'A'
		}
	}
	return string(tag), tagForm.Match(tag) && tagFile(string(tag)) == file
}
