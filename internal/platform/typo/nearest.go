// SPDX-License-Identifier: Apache-2.0

package typo

import "strings"

// maxLength is the length in bytes from which a word is no name any more.
const maxLength = 64

// Nearest returns the name that word was probably meant to be, "" if none is
// close to it. Case, hyphens and underscores do not count. Of names that are as
// close, the first is returned.
func Nearest(word string, names []string) string {
	if len(word) > maxLength {
		return ""
	}
	folded, best, nearest := fold(word), tolerance(word)+1, ""
	for _, name := range names {
		if len(name) > maxLength || name == word {
			continue
		}
		if d := distance(folded, fold(name)); d < best && d < len(name) {
			best, nearest = d, name
		}
	}
	return nearest
}

// tolerance is how many mistakes a word may have and still be recognized.
func tolerance(word string) int {
	switch n := len(word); {
	case n < 3:
		return 0
	case n < 6:
		return 1
	case n < 10:
		return 2
	default:
		return 3
	}
}

func fold(name string) []rune {
	return []rune(strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)))
}

// distance is how many characters must be inserted, deleted, replaced or
// swapped with their neighbor to turn a into b.
func distance(a, b []rune) int {
	row := func(n int) []int {
		r := make([]int, len(b)+1)
		for i := range r {
			r[i] = n + i
		}
		return r
	}
	before, last := row(0), row(0)
	for i := range a {
		next := row(i + 1)
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(last[j+1]+1, next[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}
