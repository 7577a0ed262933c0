// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/internal/platform/node/server"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	usage := func(uid string, started time.Time, cpu time.Duration) server.Usage {
		return server.Usage{Namespace: "ns", Pod: "p", PodUID: uid, Container: "main", Started: started, CPU: cpu, Memory: 3 << 20}
	}
	old := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		reason        string
		before, after []server.Usage
		want          map[string]string
	}{
		"rate":      {"half of ten seconds is half a core", []server.Usage{usage("a", old, time.Minute)}, []server.Usage{usage("a", old, time.Minute+5*time.Second)}, map[string]string{"main": "500m 3Mi"}},
		"new":       {"a container that started in between counts from its start", nil, []server.Usage{usage("a", noon.Add(8*time.Second), time.Second)}, map[string]string{"main": "500m 3Mi"}},
		"restarted": {"as does one that started again", []server.Usage{usage("a", old, time.Minute)}, []server.Usage{usage("a", noon.Add(6*time.Second), time.Second)}, map[string]string{"main": "250m 3Mi"}},
		"replaced":  {"and that of another Pod of the name", []server.Usage{usage("a", old, 0)}, []server.Usage{usage("b", noon.Add(6*time.Second), time.Second)}, map[string]string{"main": "250m 3Mi"}},
		"backwards": {"a process that ended without being waited for takes its time along", []server.Usage{usage("a", old, time.Minute)}, []server.Usage{usage("a", old, time.Second)}, map[string]string{"main": "0 3Mi"}},
		"gone":      {"what has ended uses nothing", []server.Usage{usage("a", old, time.Minute)}, nil, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measured := func(at time.Time, all []server.Usage) *measurement {
				m := &measurement{at: at, containers: map[key]server.Usage{}}
				for _, u := range all {
					m.containers[key{u.Namespace, u.Pod, u.Container}] = u
				}
				return m
			}
			got := map[string]string{}
			for k, used := range between(measured(noon, c.before), measured(noon.Add(10*time.Second), c.after)).containers {
				got[k.container] = used.Cpu().String() + " " + used.Memory().String()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
