// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestModels follows docs/model-versions.md.
func TestModels(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.gives(t, "kubectl", "apply", "-f", "examples/models/digits.yaml")
	eventually(t, time.Minute, func() error {
		models := s.gives(t, "kubectl", "get", "models", "digits", "-o", "wide", "--no-headers")
		versions := s.gives(t, "kubectl", "get", "modelversions", "digits-v1", "--no-headers")
		if got := strings.Fields(models); len(got) < 5 || strings.Join(got[:4], " ") != `digits 1 1 {"champion":1}` || got[4] != "True" {
			return fmt.Errorf("the model is shown as %s", models)
		}
		for _, want := range []string{"digits", `["champion","latest"]`, "None", "onnx", "94208", "tune-digits"} {
			if !strings.Contains(versions, want) {
				return fmt.Errorf("the version is shown as %s, without %s", versions, want)
			}
		}
		return nil
	})
	if _, stderr, code := s.diwan("kubectl", "patch", "modelversion", "digits-v1", "--type=merge", "-p", `{"spec":{"uri":"s3://other"}}`); code == 0 || !strings.Contains(stderr, "spec.uri: Forbidden: is immutable: create another version") {
		t.Errorf("a version's files can be changed: %s", stderr)
	}
}
