// SPDX-License-Identifier: Apache-2.0

package image

import "strings"

// canonical shortens the names that mean the same on Docker Hub.
func canonical(name string) string {
	name = strings.TrimPrefix(name, "docker.io/")
	return strings.TrimPrefix(name, "library/")
}

// repository is a name without tag and digest.
func repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}

// The ranks of a match, the better one higher.
const (
	noMatch = iota
	globMatch
	repositoryMatch
	exactMatch
)

// match ranks how an entry's image fits the image of a container.
func match(entry, image string) int {
	entry, image = canonical(entry), canonical(image)
	switch tagged, _, _ := strings.Cut(image, "@"); {
	case strings.ContainsAny(entry, "*?"):
		if globs(entry, image) {
			return globMatch
		}
	case entry == repository(entry):
		if entry == repository(image) {
			return repositoryMatch
		}
	case entry == image || entry == tagged:
		return exactMatch
	}
	return noMatch
}

// globs matches * with any characters and ? with one.
func globs(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0: // let the last star take one character more
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
