// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// TestLinksStayWithin has the program of a container put links where its metrics are
// read. Those that lead out of the Pod's directory are not followed.
func TestLinksStayWithin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		link, to string // below the Pod's directory, or absolute
		want     int
		failing  bool
	}{
		"a file":                       {want: 1},
		"a file that is a link within": {link: "var/log/katib/metrics.log", to: "other.log", want: 1},
		"a file that leads out":        {link: "var/log/katib/metrics.log", to: "OUT/secret.log", failing: true},
		"a directory that leads out":   {link: "var/log/katib", to: "OUT", failing: true},
		"a relative way out":           {link: "var/log/katib/metrics.log", to: "../../../../out/secret.log", failing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir, out := filepath.Join(top, "pod"), filepath.Join(top, "out")
			add(t, filepath.Join(out, "secret.log"), "loss=666\n")
			add(t, filepath.Join(out, "metrics.log"), "loss=666\n")
			switch {
			case tc.link == "":
				add(t, filepath.Join(dir, "var/log/katib/metrics.log"), "loss=1\n")
			default:
				to := tc.to
				if rest, ok := strings.CutPrefix(to, "OUT"); ok {
					to = out + rest
				}
				add(t, filepath.Join(dir, "var/log/katib/other.log"), "loss=1\n")
				link := filepath.Join(dir, tc.link)
				if err := os.RemoveAll(link); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, link); err != nil {
					t.Fatal(err)
				}
			}
			store := memory.New()
			c := collector.New(known{"trial": trial("File", nil)}, store, collector.DefaultConfig())
			run := subject(pod(map[string]string{v1beta1.LabelTrial: "trial"}), "main", 0, dir)
			run.Within = dir
			observer, err := c.Observe(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			defer observer.Close()
			if err := observer.Finish(t.Context(), time.Now()); (err != nil) != tc.failing {
				t.Errorf("Finish: got error %v, want one: %v", err, tc.failing)
			}
			if tc.failing {
				// What it may remove is the link, not what that leads to.
				_ = observer.Discard(t.Context())
				if _, err := os.Stat(filepath.Join(out, "secret.log")); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(filepath.Join(out, "metrics.log")); err != nil {
					t.Error(err)
				}
			}
			points, err := store.Points(t.Context(), observation.Trial{Namespace: "team", Name: "trial"}, observation.Query{})
			if err != nil || len(points) != tc.want {
				t.Errorf("%d points, %v; want %d", len(points), err, tc.want)
			}
		})
	}
}
