// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

// now is when the lines of these tests are read.
func now() time.Time { return time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC) }

func point(metric, value string) observation.Point {
	return observation.Point{Time: now(), Metric: metric, Value: value}
}

func pointAt(at time.Time, metric, value string) observation.Point {
	return observation.Point{Time: at, Metric: metric, Value: value}
}

func TestParse(t *testing.T) {
	t.Parallel()
	stamp := time.Date(2024, 1, 2, 3, 4, 5, 600000000, time.UTC)
	tests := map[string]struct {
		reason  string
		format  Format
		metrics []string
		filters []string
		line    string
		want    []observation.Point
	}{
		"Plain": {
			reason: "name=value is the default form; other metrics are left out.",
			line:   "epoch=3 loss=0.25 accuracy = .9 other=1",
			want:   []observation.Point{point("loss", "0.25"), point("accuracy", ".9")},
		},
		"SeveralTimes": {
			reason: "All matches of a line count.",
			line:   "loss=1 loss=2",
			want:   []observation.Point{point("loss", "1"), point("loss", "2")},
		},
		"OtherName": {
			reason: "A name is compared whole.",
			line:   "val_loss=1 loss2=3 -loss=4",
		},
		"Empty": {
			reason: "A metric without a value has none.",
			line:   "loss= accuracy=- loss=high",
		},
		"Stamped": {
			reason: "A line may begin with its time.",
			line:   "2024-01-02T03:04:05.6Z INFO     loss=0.25",
			want:   []observation.Point{pointAt(stamp, "loss", "0.25")},
		},
		"StampedInZone": {
			reason: "The zone of a time is heeded.",
			line:   "2024-01-02T05:04:05.6+02:00 loss=0.25",
			want:   []observation.Point{pointAt(stamp.In(time.FixedZone("", 7200)), "loss", "0.25")},
		},
		"NotStamped": {
			reason: "Other forms of time are none, as in Katib; the line counts when it is read.",
			line:   "2024-01-02 03:04:05 loss=0.25",
			want:   []observation.Point{point("loss", "0.25")},
		},
		"StampOutOfRange": {
			reason: "Stores keep years of four digits.",
			line:   "9999-12-31T23:59:59-23:00 loss=0.25",
			want:   []observation.Point{point("loss", "0.25")},
		},
		"Filter": {
			reason:  "The user's filter finds the user's form, blanks in names too.",
			metrics: []string{"valid_1 auc"},
			filters: []string{`(\w+\s\w+)\s:\s((-?\d+)(\.\d+)?)`},
			line:    "[LightGBM] valid_1 auc : 0.75",
			want:    []observation.Point{point("valid_1 auc", "0.75")},
		},
		"FilterBraces": {
			reason:  "A filter may have text around its groups.",
			filters: []string{`{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}`},
			line:    "{metricName: loss, metricValue: -1.5} {metricName: accuracy, metricValue: 2}",
			want:    []observation.Point{point("loss", "-1.5"), point("accuracy", "2")},
		},
		"FilterText": {
			reason:  "A value need not be a number.",
			metrics: []string{"Best-Genotype"},
			filters: []string{`([\w-]+)=(Genotype.*)`},
			line:    "Best-Genotype=Genotype(normal=[('skip', 0)]) ",
			want:    []observation.Point{point("Best-Genotype", "Genotype(normal=[('skip', 0)])")},
		},
		"Filters": {
			reason:  "Several filters are tried one after the other.",
			filters: []string{`(\w+): (\d+)`, `(\w+)=(\d+)`},
			line:    "loss=1 accuracy: 2",
			want:    []observation.Point{point("accuracy", "2"), point("loss", "1")},
		},
		"Dictionary": {
			reason:  "The form that transformers print is found by the filter that Katib's SDK sets.",
			filters: []string{`'([\w|-]+)'\s*:\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`},
			line:    "{'loss': 0.5, 'learning_rate': 1e-05}",
			want:    []observation.Point{point("loss", "0.5")},
		},
		"Binary": {
			reason:  "Bytes that are no text become marks, so that any store takes them.",
			filters: []string{`(loss)=(\S+)`},
			line:    "loss=\xff\x001",
			want:    []observation.Point{point("loss", "\uFFFD1")},
		},
		"JSON": {
			reason: "Strings and numbers are values, in the spelling of the program.",
			format: JSON,
			line:   `{"accuracy": 0.90, "loss": "0.25", "other": 1}`,
			want:   []observation.Point{point("loss", "0.25"), point("accuracy", "0.90")},
		},
		"JSONTime": {
			reason: "A time stamp is RFC 3339.",
			format: JSON,
			line:   `{"loss": "1", "timestamp": "2024-01-02T03:04:05.6Z"}`,
			want:   []observation.Point{pointAt(stamp, "loss", "1")},
		},
		"JSONSeconds": {
			reason: "Or seconds, whose fraction is a fraction.",
			format: JSON,
			line:   `{"loss": "1", "timestamp": 1704164645.6}`,
			want:   []observation.Point{pointAt(stamp, "loss", "1")},
		},
		"JSONTimeBad": {
			reason: "Any other time stamp is none.",
			format: JSON,
			line:   `{"loss": "1", "timestamp": {"a": 1e400}}`,
			want:   []observation.Point{point("loss", "1")},
		},
		"JSONTimeHuge": {
			reason: "Nor is one that no calendar has.",
			format: JSON,
			line:   `{"loss": "1", "timestamp": 1e300}`,
			want:   []observation.Point{point("loss", "1")},
		},
		"JSONOther": {
			reason: "Values of other types, and empty ones, are none.",
			format: JSON,
			line:   `{"loss": null, "accuracy": [1]}`,
		},
		"JSONNested": {
			reason:  "Names are those of the object itself, and may hold dots and escapes.",
			format:  JSON,
			metrics: []string{"a.b", `c"d`},
			line:    `{"a": {"b": 1}, "a.b": 2, "c\"d": 3}`,
			want:    []observation.Point{point("a.b", "2"), point(`c"d`, "3")},
		},
		"JSONTwice": {
			reason: "Of a name that comes twice, the last counts.",
			format: JSON,
			line:   `{"loss": 1, "loss": 2}`,
			want:   []observation.Point{point("loss", "2")},
		},
		"JSONSpecials": {
			reason: "Python's json writes NaN and Infinity.",
			format: JSON,
			line:   `{"loss": NaN, "accuracy": -Infinity, "note": "NaN \" Infinity"}`,
			want:   []observation.Point{point("loss", "NaN"), point("accuracy", "-Infinity")},
		},
		"JSONNot": {
			reason: "A line that is not an object is skipped.",
			format: JSON,
			line:   `loading {"loss": 1}`,
		},
		"JSONBroken": {
			reason: "So is one that is broken.",
			format: JSON,
			line:   `{"loss": 1, "accuracy": }`,
		},
		"JSONDeep": {
			reason: "Depth does not cost a stack.",
			format: JSON,
			line:   `{"loss": 1, "x": ` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + "}",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := Spec{Format: tc.format, Metrics: tc.metrics, Filters: tc.filters}
			if spec.Metrics == nil {
				spec.Metrics = []string{"loss", "accuracy"}
			}
			_, p, _, err := spec.lines(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			got := p.parse(nil, []byte(tc.line), now())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// fuzzParser checks that whatever a program prints gives points that a store
// takes.
func fuzzParser(f *testing.F, spec Spec) {
	_, p, _, err := spec.lines(1 << 20)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		points := p.parse(nil, line, now())
		batch := observation.Batch{Source: "main", To: int64(len(line)) + 1, Points: points}
		if err := batch.Check(); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		for _, p := range points {
			if p.Value == "" || p.Metric != "loss" && p.Metric != "accuracy" {
				t.Errorf("%q: point %+v", line, p)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	for _, line := range []string{"loss=1", "2024-01-02T03:04:05Z accuracy = nan", "loss=\xff", "9999-12-31T23:59:59-23:00 loss=1"} {
		f.Add([]byte(line))
	}
	fuzzParser(f, Spec{Metrics: []string{"loss", "accuracy"}, Filters: []string{DefaultFilter, `(\w+):(.*)`}})
}

func FuzzJSON(f *testing.F) {
	for _, line := range []string{`{"loss":1}`, `{"loss":"\u0000","timestamp":1e18}`, `{"accuracy":NaN,"timestamp":"x"}`, `{"loss":1`, `{"a":[{}],"loss":-Infinity}`} {
		f.Add([]byte(line))
	}
	fuzzParser(f, Spec{Format: JSON, Metrics: []string{"loss", "accuracy"}})
}
