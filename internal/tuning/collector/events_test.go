// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// frame is a TFRecord.
func frame(data []byte) []byte {
	record := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	record = binary.LittleEndian.AppendUint32(record, checksum(record))
	record = append(record, data...)
	return binary.LittleEndian.AppendUint32(record, checksum(data))
}

// simple is an event with one number, as TensorFlow 1 writes it.
func simple(wall float64, tag string, number float32) []byte {
	value := protowire.AppendTag(nil, valueTag, protowire.BytesType)
	value = protowire.AppendString(value, tag)
	value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
	value = protowire.AppendFixed32(value, math.Float32bits(number))
	return summary(wall, value)
}

// tensor is an event with a tensor.
func tensor(wall float64, tag string, message []byte) []byte {
	value := protowire.AppendTag(nil, valueTag, protowire.BytesType)
	value = protowire.AppendString(value, tag)
	value = protowire.AppendTag(value, valueTensor, protowire.BytesType)
	value = protowire.AppendBytes(value, message)
	return summary(wall, value)
}

func summary(wall float64, value []byte) []byte {
	event := protowire.AppendTag(nil, eventSummary, protowire.BytesType)
	event = protowire.AppendBytes(event, protowire.AppendBytes(protowire.AppendTag(nil, summaryValue, protowire.BytesType), value))
	event = protowire.AppendTag(event, eventWallTime, protowire.Fixed64Type)
	return protowire.AppendFixed64(event, math.Float64bits(wall))
}

// folder is a directory of event files, with the observer of a trial of it.
type folder struct {
	tb       testing.TB
	root     string
	store    observation.Store
	metrics  []string
	change   func(*Config)
	warnings []string
}

func newFolder(tb testing.TB, metrics ...string) *folder {
	return &folder{tb: tb, root: tb.TempDir(), store: memory.New(), metrics: metrics}
}

// observer is that of a collector that was just started.
func (f *folder) observer() Observer {
	f.tb.Helper()
	config := DefaultConfig()
	if f.change != nil {
		f.change(&config)
	}
	c := New(nil, f.store, config)
	spec := &Spec{Trial: trial(), Kind: Events, Path: "/logs/", Metrics: f.metrics, Container: "main"}
	o, err := c.observer(klog.Background(), spec, Subject{
		Pod: &corev1.Pod{}, Container: "main",
		HostDirectory: func(path string) (string, bool) {
			if path != "/logs" {
				f.tb.Errorf("HostDirectory(%q): want /logs", path)
			}
			return f.root, true
		},
		Warn: func(message string) { f.warnings = append(f.warnings, message) },
	})
	if err != nil {
		f.tb.Fatal(err)
	}
	return o
}

func (f *folder) add(file string, p []byte) {
	f.tb.Helper()
	file = filepath.Join(f.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		f.tb.Fatal(err)
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		f.tb.Fatal(err)
	}
	defer out.Close()
	if _, err := out.Write(p); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *folder) look(o Observer) {
	f.tb.Helper()
	if err := o.Look(f.tb.Context(), now()); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *folder) finish(o Observer) {
	f.tb.Helper()
	finish(f.tb, o, now())
}

func (f *folder) want(reason string, stored ...string) {
	f.tb.Helper()
	want(f.tb, f.store, reason, stored)
}

func TestRecordedEventFiles(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		dir     string
		metrics []string
		want    []string
	}{
		"SimpleValues": {
			reason: "tensorboardX writes simple values; histograms and texts are no numbers.",
			dir:    "tensorboardx", metrics: []string{"accuracy", "loss", "weights", "note"},
			want: []string{"loss=1", "accuracy=0.5", "loss=0.5", "accuracy=0.6", "loss=0.33333334", "accuracy=0.7"},
		},
		"Tensors": {
			reason: "tensorboard writes tensors; a directory in the metric's name tells two tags apart.",
			dir:    "tensorboard", metrics: []string{"test/accuracy"},
			want: []string{"test/accuracy=0.6", "test/accuracy=0.7", "test/accuracy=0.8"},
		},
		"ObservedDirectory": {
			reason: "So does the directory that is observed.",
			dir:    "tensorboard/train", metrics: []string{"accuracy"},
			want: []string{"accuracy=0.7", "accuracy=0.8", "accuracy=0.9"},
		},
		"EveryDirectory": {
			reason: "Without a directory in its name, a metric is the tag in all of them.",
			dir:    "tensorboard", metrics: []string{"accuracy"},
			want: []string{"accuracy=0.6", "accuracy=0.7", "accuracy=0.7", "accuracy=0.8", "accuracy=0.8", "accuracy=0.9"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t, tc.metrics...)
			f.root = filepath.Join("testdata", "events", tc.dir)
			f.finish(f.observer())
			f.want(tc.reason, tc.want...)
			if at := stored(t, f.store)[0].Time; at.Unix() != 1_700_000_000 {
				t.Errorf("the first point is of %v, want the time that the event has", at)
			}
			if len(f.warnings) > 0 {
				t.Errorf("warnings: %q", f.warnings)
			}
		})
	}
}

// TestLiveWriter reads files while they are written, come late, lie below, and
// end in the middle of a record, with a collector that is killed in between.
func TestLiveWriter(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "loss")
	f.change = func(c *Config) { c.WalkInterval, c.Interval = 0, time.Hour }
	o := f.observer()
	f.look(o) // before anything is there
	second := frame(simple(2, "loss", 2))
	f.add("events.out.tfevents.1", append(frame(simple(1, "loss", 1)), second[:20]...))
	f.look(o)
	f.add("run/events.out.tfevents.2.v2", frame(simple(3, "loss", 3)))
	f.add("checkpoint", []byte("no event file"))
	f.look(o)
	o = f.observer() // the first is forgotten with what it had not stored
	f.look(o)
	f.add("events.out.tfevents.1", second[20:])
	f.add("events.out.tfevents.1", frame(simple(4, "loss", 4))[:30])
	f.finish(o)
	f.want("Each number is stored once.", "loss=1", "loss=2", "loss=3")
	f.finish(f.observer())
	f.want("What is read is not read again.", "loss=1", "loss=2", "loss=3")
	if len(f.warnings) > 0 {
		t.Errorf("warnings: %q", f.warnings)
	}
}

func TestDamagedEventFiles(t *testing.T) {
	t.Parallel()
	one, two, three := frame(simple(1, "loss", 1)), frame(simple(2, "loss", 2)), frame(simple(3, "loss", 3))
	flipped := func(p []byte, at int) []byte {
		p = slices.Clone(p)
		p[at] ^= 1
		return p
	}
	huge := binary.LittleEndian.AppendUint64(nil, 1<<60)
	huge = binary.LittleEndian.AppendUint32(huge, checksum(huge))
	tests := map[string]struct {
		reason string
		file   []byte
		want   []string
		warn   string
	}{
		"Data":      {reason: "A damaged record costs itself.", file: slices.Concat(one, flipped(two, 20), three), want: []string{"loss=1", "loss=3"}, warn: fmt.Sprintf("bytes %d to %d", len(one), len(one)+len(two))},
		"Header":    {reason: "A damaged header costs its record.", file: slices.Concat(one, flipped(two, 3), three), want: []string{"loss=1", "loss=3"}, warn: fmt.Sprintf("bytes %d to %d", len(one), len(one)+len(two))},
		"Begin":     {reason: "A file that lost its begin is read from the next record.", file: slices.Concat(one[5:], two), want: []string{"loss=2"}, warn: "bytes 0 to"},
		"Huge":      {reason: "A length that nobody writes is damage.", file: slices.Concat(one, huge, two), want: []string{"loss=1", "loss=2"}, warn: "is corrupt"},
		"Text":      {reason: "A text is no event file.", file: []byte(strings.Repeat("loss=1\n", 1000)), warn: "is corrupt"},
		"Zeros":     {reason: "Nor are zeros, which a crashed machine leaves.", file: slices.Concat(one, make([]byte, 1000)), want: []string{"loss=1"}, warn: fmt.Sprintf("bytes %d to", len(one))},
		"NoEvent":   {reason: "A record may hold something else.", file: slices.Concat(frame([]byte("\xff\xff\xff")), one), want: []string{"loss=1"}, warn: "not a TensorFlow event"},
		"Cut":       {reason: "A last record that was cut is what a killed program leaves.", file: slices.Concat(one, two[:len(two)-1]), want: []string{"loss=1"}},
		"LongAfter": {reason: "A record that is too long is passed by.", file: slices.Concat(one, frame(make([]byte, 5000)), two), want: []string{"loss=1", "loss=2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t, "loss")
			f.change = func(c *Config) { c.MaxRecord = 1000 }
			f.add("a.tfevents", tc.file)
			f.add("b.tfevents", frame(simple(9, "loss", 9)))
			f.finish(f.observer())
			f.want(tc.reason, append(tc.want, "loss=9")...)
			if got := strings.Join(f.warnings, "\n"); !strings.Contains(got, tc.warn) || (got == "") != (tc.warn == "") {
				t.Errorf("warnings: %q, want %q in them", got, tc.warn)
			}
		})
	}
}

// TestAnyRecordPieces cuts a file with damage and long records into random
// pieces and starts over at random moments: the records that are found are those
// of the whole file, and every offset is told as damaged at most once a life.
func TestAnyRecordPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var file []byte
		var want []string
		for i := range rapid.IntRange(0, 12).Draw(rt, "records") {
			text := fmt.Sprint("record ", i)
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				file = append(file, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "garbage")...)
			case 1:
				file = append(file, frame(make([]byte, 300))...)
			default:
				file = append(file, frame([]byte(text))...)
				want = append(want, text)
			}
		}
		var got []string
		r := &records{max: 200}
		at := 0
		for at < len(file) {
			end := rapid.IntRange(at, len(file)).Draw(rt, "end")
			r.add(file[at:end], func(data []byte) { got = append(got, string(data)) })
			at = end
			if r.next() != int64(at) || r.start() > r.next() {
				rt.Fatalf("after %d bytes: start %d, next %d", at, r.start(), r.next())
			}
			if rapid.IntRange(0, 3).Draw(rt, "restart") == 0 {
				at = int(r.start())
				r = &records{max: 200}
				r.begin(int64(at))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestTensors(t *testing.T) {
	t.Parallel()
	kind := func(n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, tensorKind, protowire.VarintType), n)
	}
	content := func(message []byte, p ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(message, tensorContent, protowire.BytesType), p)
	}
	listed := func(message []byte, name protowire.Number, p ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(message, name, protowire.BytesType), p)
	}
	shape := func(message []byte, size ...uint64) []byte {
		var dims []byte
		for _, n := range size {
			dim := protowire.AppendVarint(protowire.AppendTag(nil, dimSize, protowire.VarintType), n)
			dims = protowire.AppendBytes(protowire.AppendTag(dims, shapeDim, protowire.BytesType), dim)
		}
		return protowire.AppendBytes(protowire.AppendTag(message, tensorShape, protowire.BytesType), dims)
	}
	tests := map[string]struct {
		reason string
		tensor []byte
		want   string
	}{
		"FloatContent":  {reason: "TensorFlow 2 writes the bytes of the number.", tensor: content(shape(kind(1)), 0, 0, 0, 0x3f), want: "0.5"},
		"FloatList":     {reason: "Others list it.", tensor: listed(kind(1), 5, 0, 0, 0, 0x3f), want: "0.5"},
		"Unpacked":      {reason: "A list may not be packed.", tensor: protowire.AppendFixed32(protowire.AppendTag(kind(1), 5, protowire.Fixed32Type), math.Float32bits(-2)), want: "-2"},
		"Zero":          {reason: "Zero may be left out.", tensor: shape(kind(1)), want: "0"},
		"Double":        {reason: "Doubles have their own list.", tensor: listed(kind(2), 6, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f), want: "1"},
		"NaN":           {reason: "A diverged run shows.", tensor: content(kind(1), 0, 0, 0xc0, 0x7f), want: "NaN"},
		"Int32":         {reason: "A negative int takes ten bytes.", tensor: listed(kind(3), 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), want: "-1"},
		"Int64Content":  {reason: "An int may be written as bytes.", tensor: content(kind(9), 7, 0, 0, 0, 0, 0, 0, 0), want: "7"},
		"Half":          {reason: "Mixed precision writes halves.", tensor: listed(kind(19), 13, 0x80, 0x78), want: "1"},
		"HalfSubnormal": {reason: "The least of them too.", tensor: content(kind(19), 1, 0), want: "5.9604645e-08"},
		"BFloat16":      {reason: "And the other half.", tensor: content(kind(14), 0x80, 0x3f), want: "1"},
		"OneElement":    {reason: "A vector of one is a number.", tensor: content(shape(kind(1), 1, 1), 0, 0, 0, 0x3f), want: "0.5"},
		"Vector":        {reason: "A longer one is not.", tensor: content(shape(kind(1), 2), 0, 0, 0, 0x3f, 0, 0, 0, 0x3f)},
		"Empty":         {reason: "Nor is an empty one, which marks hyperparameters.", tensor: shape(kind(1), 0)},
		"Text":          {reason: "A text is no number.", tensor: listed(kind(7), 8, '1')},
		"WrongSize":     {reason: "Bytes must fit the type.", tensor: content(kind(1), 0, 0)},
		"TwoInAList":    {reason: "A list of two is no number.", tensor: listed(kind(1), 5, 0, 0, 0, 0, 0, 0, 0, 0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, scalars, err := readEvent(tensor(1.5, "loss", tc.tensor))
			if err != nil || at.UnixNano() != 1_500_000_000 {
				t.Fatalf("%s readEvent: at %v, error %v", tc.reason, at, err)
			}
			got := ""
			if len(scalars) == 1 {
				got = scalars[0].value
			}
			if got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		metrics  []string
		dir, tag string
		want     []string
	}{
		"Name":         {reason: "A metric is the tag of its name.", metrics: []string{"loss"}, dir: "/logs", tag: "loss", want: []string{"loss"}},
		"Other":        {reason: "A tag that only begins like it is another.", metrics: []string{"loss"}, dir: "/logs", tag: "loss_of_packets"},
		"Slash":        {reason: "PyTorch's tags have slashes.", metrics: []string{"train/loss"}, dir: "/logs", tag: "train/loss", want: []string{"train/loss"}},
		"Directory":    {reason: "TensorFlow's lie in directories.", metrics: []string{"train/loss"}, dir: "/logs/train", tag: "loss", want: []string{"train/loss"}},
		"Directories":  {reason: "Of several levels.", metrics: []string{"a/train/loss"}, dir: "/logs/a/train", tag: "loss", want: []string{"a/train/loss"}},
		"WrongOne":     {reason: "Another directory is another metric.", metrics: []string{"train/loss"}, dir: "/logs/test", tag: "loss"},
		"HalfAName":    {reason: "So is one whose name only ends like it.", metrics: []string{"train/loss"}, dir: "/logs/pretrain", tag: "loss"},
		"WholePath":    {reason: "A path may begin with a slash.", metrics: []string{"/logs/train/loss"}, dir: "/logs/train", tag: "loss", want: []string{"/logs/train/loss"}},
		"Number":       {reason: "TensorFlow 1 numbers a tag that is taken.", metrics: []string{"loss"}, dir: "/logs", tag: "loss_1", want: []string{"loss"}},
		"OwnNumber":    {reason: "Unless the number is part of a metric.", metrics: []string{"loss", "loss_1"}, dir: "/logs", tag: "loss_1", want: []string{"loss_1"}},
		"OnlyANumber":  {reason: "A number alone is a name.", metrics: []string{""}, dir: "/", tag: "_1"},
		"Both":         {reason: "A tag may be two metrics.", metrics: []string{"loss", "train/loss"}, dir: "/logs/train", tag: "loss", want: []string{"loss", "train/loss"}},
		"MetricInPath": {reason: "A tag is not found by its last part.", metrics: []string{"loss"}, dir: "/logs", tag: "train/loss"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, matching(tc.metrics, tc.dir, tc.tag)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissingObjective(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "loss", "accuracy")
	f.finish(f.observer())
	f.add("x.tfevents", slices.Concat(frame(simple(1, "train/loss", 1)), frame(simple(1, "accuracy", 1))))
	f.finish(f.observer())
	f.add("x.tfevents", frame(simple(2, "loss", 1)))
	f.finish(f.observer())
	f.finish(f.observer()) // has read nothing itself
	want := []string{
		"no event file in /logs",
		"1 event files in /logs: none has a number under the objective's tag loss, but under: train/loss",
	}
	if diff := cmp.Diff(want, f.warnings); diff != "" {
		t.Errorf("warnings: -want, +got:\n%s", diff)
	}
}

func TestTooManyEventFiles(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "loss")
	f.change = func(c *Config) { c.MaxFiles = 2 }
	for i := range 4 {
		f.add(fmt.Sprintf("%d.tfevents", i), frame(simple(float64(i), "loss", float32(i))))
	}
	f.finish(f.observer())
	f.want("Some files are read.", "loss=0", "loss=1")
	if len(f.warnings) != 1 || !strings.Contains(f.warnings[0], "more than 2 event files") {
		t.Errorf("warnings: %q", f.warnings)
	}
}

func TestEventFilesInterrupted(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "loss")
	f.add("train/1.tfevents", frame(simple(1, "loss", 1)))
	f.finish(f.observer())
	if err := f.observer().Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.add("train/2.tfevents", frame(simple(2, "loss", 2)))
	f.finish(f.observer())
	f.want("What an interrupted run wrote is forgotten.", "loss=2")
}

func TestEventFileWrittenAnew(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "loss")
	f.add("a.tfevents", slices.Concat(frame(simple(1, "loss", 1)), frame(simple(2, "loss", 2))))
	o := f.observer()
	f.look(o)
	if err := os.Truncate(filepath.Join(f.root, "a.tfevents"), 0); err != nil {
		t.Fatal(err)
	}
	f.add("a.tfevents", frame(simple(3, "loss", 3)))
	f.finish(o)
	f.want("A file that is written anew has its new content.", "loss=3")
}

// FuzzEvents checks that whatever is in an event file gives points that a store
// takes, and that no position is read twice.
func FuzzEvents(f *testing.F) {
	files, err := filepath.Glob("testdata/events/*/*tfevents*")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, uint16(100))
	}
	f.Add(frame(simple(math.NaN(), "loss", 1)), uint16(3))
	f.Add(frame(tensor(1e300, "loss", []byte{8, 1})), uint16(1))
	f.Fuzz(func(t *testing.T, file []byte, piece uint16) {
		store := memory.New()
		parser := &events{dir: "/logs", seen: newTags([]string{"loss", "accuracy"}), warn: func(error) {}}
		r := &records{max: 1000, damaged: func(from, to int64) {
			if from < 0 || from >= to || to > int64(len(file)) {
				t.Errorf("damaged: %d to %d of %d", from, to, len(file))
			}
		}}
		s := &Stream{config: quietConfig(), store: store, trial: trial(), source: "file", warn: func(string) {}, log: klog.Background(), units: r, parser: parser}
		for at := 0; at < len(file); at += int(piece) + 1 {
			if err := s.Write(t.Context(), int64(at), file[at:min(len(file), at+int(piece)+1)], now()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzEvent checks single records, which a fuzzer cannot give their checksums.
func FuzzEvent(f *testing.F) {
	f.Add(simple(1, "loss", 1))
	f.Add(tensor(2, "accuracy", []byte{8, 1, 34, 4, 0, 0, 0, 63}))
	f.Fuzz(func(t *testing.T, record []byte) {
		p := &events{dir: "/logs", seen: newTags([]string{"loss", "accuracy"}), warn: func(error) {}}
		points := p.parse(nil, record, now())
		batch := observation.Batch{Source: "file", To: int64(len(record)) + 1, Points: points}
		if err := batch.Check(); err != nil {
			t.Errorf("%q: %v", record, err)
		}
	})
}

// TestEventsStayWithin has a container put links where its event files are read.
func TestEventsStayWithin(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	logs := filepath.Join(top, "pod", "logs")
	for _, dir := range []string{logs, filepath.Join(top, "out")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "events.out.tfevents.1"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		root string
		link string // to the directory out; "" is none
		want int
	}{
		"no link":                    {root: logs, want: 1},
		"the directory leads out":    {root: filepath.Join(top, "pod", "a"), link: filepath.Join(top, "pod", "a")},
		"one below leads out":        {root: logs, link: filepath.Join(logs, "b"), want: 1},
		"a directory above is a way": {root: filepath.Join(top, "pod", "c", "deep"), link: filepath.Join(top, "pod", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.link != "" {
				if err := os.Symlink(filepath.Join(top, "out"), tc.link); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(tc.link)
			}
			d := &directory{config: DefaultConfig(), root: tc.root, inside: "/logs", within: filepath.Join(top, "pod"), files: map[string]*tail{}, warn: func(string) {}, stream: func(string) *Stream { return nil }}
			if err := d.walk(); err != nil {
				t.Fatal(err)
			}
			if len(d.files) != tc.want {
				t.Errorf("%d files are found, want %d: %v", len(d.files), tc.want, d.files)
			}
		})
	}
}
