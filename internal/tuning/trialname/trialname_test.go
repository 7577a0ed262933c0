// SPDX-License-Identifier: Apache-2.0

package trialname_test

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"diwan.dev/diwan/internal/tuning/trialname"
)

func TestNamesAreDistinctAndInvertible(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^digits-[0-9a-z]{8}$`)
	const count = 20_000
	seen := make(map[string]int, count)
	for i := range count {
		name := trialname.Of("digits", "4a2f", i)
		if !shape.MatchString(name) {
			t.Fatalf("name %q has not Katib's shape", name)
		}
		if j, ok := seen[name]; ok {
			t.Fatalf("trials %d and %d share the name %q", i, j, name)
		}
		seen[name] = i
	}
	for name, want := range seen {
		if got, ok := trialname.Index("digits", "4a2f", name, count); !ok || got != want {
			t.Fatalf("Index(%q) = %d, %v; want %d", name, got, ok, want)
		}
	}
}

func TestIndexIsTheInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		uid := types.UID(rapid.String().Draw(t, "uid"))
		experiment := rapid.StringMatching(`[a-z]([-.a-z0-9]{0,60}[a-z0-9])?`).Draw(t, "experiment")
		index := rapid.IntRange(0, 1<<40).Draw(t, "index")
		name := trialname.Of(experiment, uid, index)
		if got, ok := trialname.Index(experiment, uid, name, index+1); !ok || got != index {
			t.Fatalf("Index(%q) = %d, %v; want %d", name, got, ok, index)
		}
		if _, ok := trialname.Index(experiment, uid, name, index); ok {
			t.Fatalf("Index accepts index %d where only %d exist", index, index)
		}
	})
}

func TestLongNames(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	long := "image-classification-on-the-large-set.of-many-kinds-of-things"
	for _, c := range []struct{ reason, name, prefix string }{
		{"Katib's longest stays as it is", long[:40], long[:40]},
		{"one more is cut", long[:41], "image-classification-on-the-lar-vm2dgv8a"},
		{"another ending is another name", long[:42], "image-classification-on-the-lar-nlbl6t1o"},
	} {
		if got := trialname.Prefix(c.name); got != c.prefix {
			t.Errorf("%s: Prefix(%q) = %q, want %q", c.reason, c.name, got, c.prefix)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		experiment := rapid.StringMatching(`[a-z]([a-z0-9]|[a-z0-9][-.][a-z0-9]){20,30}`).Draw(t, "experiment")
		if name := trialname.Of(experiment, "u", 3); len(name) > 49 || !shape.MatchString(name) {
			t.Fatalf("experiment %q has a trial %q", experiment, name)
		}
	})
}

func TestForeignNamesHaveNoIndex(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, reason string }{
		{"other-00000000", "another experiment's"},
		{"digits-0000000", "seven characters"},
		{"digits-0000000A", "a character outside the digits"},
		{"digits-zzzzzzzz", "a code far beyond the count"},
	} {
		if i, ok := trialname.Index("digits", "4a2f", c.name, 10); ok {
			t.Errorf("%s: Index(%q) = %d, want none", c.reason, c.name, i)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	for i := range b.N {
		trialname.Of("digits", "4a2f9d8e-0000-0000-0000-000000000000", i)
	}
}
