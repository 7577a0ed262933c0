// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var frameworks = flag.String("frameworks", "", "Python interpreters, by commas, whose frameworks make the models of testdata anew")

// TestFrameworksAgree compares what is read with what the frameworks answered about
// the models that they wrote (testdata/make.py).
func TestFrameworksAgree(t *testing.T) {
	t.Parallel()
	compareAnswers(t, "testdata", 35)
}

// TestLiveFrameworksAgree is the same with models that are made now.
func TestLiveFrameworksAgree(t *testing.T) {
	t.Parallel()
	if *frameworks == "" {
		t.Skip("give -frameworks=PYTHON,… to make models with live frameworks")
	}
	for _, python := range strings.Split(*frameworks, ",") {
		dir := t.TempDir()
		out, err := exec.CommandContext(t.Context(), python, "testdata/make.py", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%s testdata/make.py: %v\n%s", python, err, out)
		}
		compareAnswers(t, dir, 1)
	}
}

func compareAnswers(t *testing.T, dir string, atLeast int) {
	answers, err := filepath.Glob(filepath.Join(dir, "*.answer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) < atLeast {
		t.Fatalf("%s has %d answers of frameworks, want at least %d", dir, len(answers), atLeast)
	}
	for _, answer := range answers {
		name := strings.TrimSuffix(answer, ".answer.json")
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(answer)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			sig, err := ReadPath(t.Context(), name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := asMap(t, sig)
			for key, value := range want {
				if diff := gocmp.Diff(restrict(value, value), restrict(got[key], value)); diff != "" {
					t.Errorf("%s (-framework +read):\n%s", key, diff)
				}
			}
			if sig.Size == 0 || len(sig.Files) == 0 {
				t.Errorf("it has %d files of %d bytes", len(sig.Files), sig.Size)
			}
		})
	}
}

// asMap is a signature as its JSON.
func asMap(t testing.TB, sig *Signature) map[string]any {
	t.Helper()
	text, err := json.Marshal(sig)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// restrict leaves of objects the names that the answer has, and sorts lists of named
// things: frameworks do not keep the order of the file.
func restrict(value, answer any) any {
	switch value := value.(type) {
	case map[string]any:
		asked, _ := answer.(map[string]any)
		kept := map[string]any{}
		for key := range asked {
			if item, has := value[key]; has {
				kept[key] = restrict(item, asked[key])
			}
		}
		return kept
	case []any:
		asked, _ := answer.([]any)
		sorted := slices.SortedFunc(slices.Values(value), byName)
		asked = slices.SortedFunc(slices.Values(asked), byName)
		for i := range sorted {
			if i < len(asked) {
				sorted[i] = restrict(sorted[i], asked[i])
			}
		}
		return sorted
	}
	return value
}

func byName(a, b any) int {
	name := func(v any) string {
		m, _ := v.(map[string]any)
		text, _ := m["name"].(string)
		return text
	}
	return cmp.Compare(name(a), name(b))
}
