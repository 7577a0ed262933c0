// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"testing"

	"diwan.dev/diwan/internal/platform/cli"
)

// TestStatusServer tells Pods of the operator's Service only where they can verify it.
func TestStatusServer(t *testing.T) {
	t.Parallel()
	const url = "https://diwan.kubeflow.svc:443"
	for _, c := range []struct {
		reason  string
		service *cli.Service
		want    string
	}{
		{"there is no Service", nil, ""},
		{"nobody knows who vouches for it", &cli.Service{URL: url, Unverifiable: errors.New("no ca.crt")}, ""},
		{"its authorities are or will be known", &cli.Service{URL: url}, url},
	} {
		if got := statusServer(c.service); got.URL != c.want {
			t.Errorf("%s: the status server is at %q, want %q", c.reason, got.URL, c.want)
		}
	}
}
