// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestConformance runs the distribution specification's own suite with every feature
// that it knows, those of the next version included. DIWAN_OCI_CONFORMANCE names the
// program, which is built from the specification's repository, folder conformance, at
// a commit after 1.1.1 (967efdc); no release of the module has it.
func TestConformance(t *testing.T) {
	t.Parallel()
	program := os.Getenv("DIWAN_OCI_CONFORMANCE")
	if program == "" {
		t.Skip("DIWAN_OCI_CONFORMANCE does not name the conformance suite's program")
	}
	for _, version := range []string{"1.1", "dev"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			address := serveTest(t, openTest(t))
			results := t.TempDir()
			run := exec.CommandContext(t.Context(), program)
			run.Dir = results
			run.Env = append(os.Environ(),
				"OCI_REGISTRY="+address, "OCI_TLS=disabled", "OCI_VERSION="+version, "OCI_RESULTS_DIR="+results,
				"OCI_USERNAME=anyone", "OCI_PASSWORD="+testToken,
				"OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_API_BLOBS_UPLOAD_CANCEL=true",
				"OCI_API_MANIFESTS_DIGEST_HEADER=true", "OCI_API_MANIFESTS_TAG_PARAM=true",
			)
			out, err := run.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			// The exit status does not tell of tests that were given up or skipped.
			for _, line := range []string{`Result: Pass`, `Disabled\.+: +0\n`, `Skip\.+: +0\n`, `FAIL\.+: +0\n`, `Error\.+: +0\n`, `Total\.+: +(9\d\d|\d{4})\n`} {
				if !regexp.MustCompile(line).Match(out) {
					t.Errorf("the report does not have %q:\n%s", line, out)
				}
			}
		})
	}
}
