// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/podusage"
)

func TestSumUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		pods   []string // their annotations
		want   string
	}{
		"none":    {"Pods of a cluster tell nothing", []string{"", ""}, "null"},
		"one":     {"a Pod", []string{podusage.Of(90*time.Second, 3<<20).String()}, `{"cpuTime":"1m30s","peakMemory":"3Mi"}`},
		"several": {"time adds up, memory is that of the largest", []string{podusage.Of(time.Second, 3<<20).String(), "", podusage.Of(time.Second, 5<<20).String()}, `{"cpuTime":"2s","peakMemory":"5Mi"}`},
		"time":    {"memory may be unknown", []string{podusage.Of(time.Second, 0).String()}, `{"cpuTime":"1s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []metav1.PartialObjectMetadata
			for _, value := range c.pods {
				pod := metav1.PartialObjectMetadata{}
				if value != "" {
					pod.Annotations = map[string]string{podusage.Annotation: value}
				}
				pods = append(pods, pod)
			}
			got, err := json.Marshal(sumUsage(pods))
			if err != nil || string(got) != c.want {
				t.Errorf("%s: %s (%v), want %s", c.reason, got, err, c.want)
			}
		})
	}
}
