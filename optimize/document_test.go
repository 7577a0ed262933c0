// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"os"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
)

// TestDocumentNamesEverything checks that the users' page names each algorithm
// and each of its settings.
func TestDocumentNamesEverything(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range optimize.Known() {
		for _, name := range append(a.Settings, a.Name) {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/algorithms.md does not name `%s`, of algorithm %s", name, a.Name)
			}
		}
	}
}
