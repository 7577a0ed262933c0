// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"strings"
	"testing"
	"time"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	tags := map[string]string{"team": "vision", "a b": "c"}
	for filter, want := range map[string]string{
		``:                                      "yes",
		`name = 'digits'`:                       "yes",
		`name="digits" and run_id = 'r'`:        "yes",
		`name != 'digits'`:                      "no",
		`name LIKE 'dig%'`:                      "yes",
		`name like '%IGITS'`:                    "no",
		`name ILIKE '%IGITS'`:                   "yes",
		`name NOT LIKE 'x%'`:                    "yes",
		`name LIKE 'd_g_t_'`:                    "yes",
		`run_id IN ('a', 'r')`:                  "yes",
		`run_id IN ("a")`:                       "no",
		`version_number > 9`:                    "yes",
		`version_number <= 9`:                   "no",
		`tags.team = 'vision'`:                  "yes",
		"tag.`a b` = 'c'":                       "yes",
		`tags.none != 'x'`:                      "no",
		`name = 'digits' AND tags.team = 'x'`:   "no",
		`name = 'digits' OR name = 'x'`:         "AND and another comparison must follow",
		`name = 'digits' AND`:                   "AND and another comparison must follow",
		`name = `:                               "cannot read the filter",
		`colour = 'red'`:                        "cannot filter by",
		`name IN 'digits'`:                      "IN needs a list",
		`name = ('a')`:                          "IN needs a list",
		`name = 'a' name = 'b'`:                 "AND and another comparison must follow",
		"\x00":                                  "cannot read the filter",
		`name = 'digits' AND name LIKE '%'`:     "yes",
		`source_path = 'it''s'`:                 "AND and another comparison must follow",
		`name = 'digits'   AND   run_id != 'q'`: "yes",
	} {
		conditions, err := parse(filter, "name", "run_id", "version_number", "source_path")
		got := "no"
		switch {
		case err != nil:
			got = err.Error()
		case matches(conditions, tags, func(field string) string {
			return map[string]string{"name": "digits", "run_id": "r", "version_number": "10", "source_path": "s"}[field]
		}):
			got = "yes"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
}

// TestLikeIsFast matches a pattern that takes those for ever who try every way.
func TestLikeIsFast(t *testing.T) {
	t.Parallel()
	done := make(chan bool, 1)
	go func() { done <- like(strings.Repeat("a", 2000), strings.Repeat("%a", 500)+"b") }()
	select {
	case got := <-done:
		if got {
			t.Error("it matches")
		}
	case <-time.After(time.Minute):
		t.Error("no answer within a minute")
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("name = 'a' AND tags.`b` IN ('c', \"d\")")
	f.Fuzz(func(t *testing.T, filter string) {
		conditions, err := parse(filter, "name")
		if err == nil {
			matches(conditions, nil, func(string) string { return "x" })
		}
	})
}
