// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// TestMisspeltObjective tells what was reported where the objective was not.
func TestMisspeltObjective(t *testing.T) {
	t.Parallel()
	const never = `the objective metric is "accuracy", which was not reported; what was reported: `
	for _, c := range []struct {
		reason, output string
		spec           Spec
		want           []string
	}{
		{"a name that is close", "epoch=1 acuracy=0.5\nacuracy=0.6\n", Spec{}, []string{never + `epoch, acuracy; did you mean "acuracy"?`}},
		{"a name that is not", "acc = 0.5\n", Spec{}, []string{never + "acc"}},
		{"in JSON", `{"timestamp": 1, "Accuracy": "0.5", "loss": 3, "model": "a", "deep": {"b": 1}}` + "\n", Spec{Format: JSON}, []string{never + `Accuracy; did you mean "Accuracy"?`}},
		{"found by a filter", "acuracy: 0.5\n", Spec{Filters: []string{`(\w+): ([0-9.]+)`}}, []string{never + `acuracy; did you mean "acuracy"?`}},
		{"the objective comes late", "acuracy=0.5\naccuracy=0.6\n", Spec{}, nil},
		{"nothing is reported", "hello\nmodel=resnet\n", Spec{}, nil},
		{"only as far as it costs nothing", strings.Repeat("hello\n", maxSearched) + "acuracy=0.5\n", Spec{}, nil},
	} {
		c.spec.Metrics = []string{"accuracy", "loss"}
		units, p, others, err := c.spec.lines(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		s := &Stream{
			config: quietConfig(), store: memory.New(), trial: trial(), source: "main", log: klog.Background(),
			parser: p, units: units, others: others,
		}
		told := warnings(s)
		mustWrite(t, s, 0, c.output)
		mustFinish(t, s)
		if diff := cmp.Diff(c.want, append([]string(nil), *told...)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.reason, diff)
		}
	}
}

// TestObjectiveFromBefore does not complain of a stream that resumes where another one found the objective.
func TestObjectiveFromBefore(t *testing.T) {
	t.Parallel()
	store := memory.New()
	err := store.Append(t.Context(), trial(), observation.Batch{
		Source: "main", To: 7, Points: []observation.Point{{Time: time.Unix(1, 0), Metric: "loss", Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(t, store, quietConfig())
	told := warnings(s)
	mustWrite(t, s, 7, "los=2\n")
	mustFinish(t, s)
	if len(*told) > 0 {
		t.Errorf("the warnings are %q", *told)
	}
}

// TestOthersAreBounded remembers some names of many.
func TestOthersAreBounded(t *testing.T) {
	t.Parallel()
	o := newOthers([]string{"loss"})
	for i := range 1000 {
		o.other(fmt.Appendf(nil, "%0200d", i), []byte("1"))
	}
	if text := o.complaint(); len(o.names) != maxOthers || len(text) > 600 {
		t.Errorf("%d names are remembered, and the text has %d bytes", len(o.names), len(text))
	}
}
