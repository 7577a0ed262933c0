// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// fuzzLimits are small, so that what is only slow is found.
var fuzzLimits = Limits{Memory: 1 << 20, Items: 100_000, Inflated: 1 << 20, Scanned: 4 << 20, Depth: 50, Files: 100}

// fuzzFormat fuzzes the reader of a format with the files of testdata that match
// patterns as further seeds: whatever a file holds, it is read or refused in words.
func fuzzFormat(f *testing.F, format Format, name string, patterns ...string) {
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds match %s: %v", pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, as := range []Format{format, ""} {
			readAnything(t, name, data, as)
		}
		if _, err := Detect(context.Background(), one(name, data), name, fuzzLimits); err != nil {
			wellFormed(t, err)
			if limit := (*LimitError)(nil); errors.Is(err, ErrUnknownFormat) && errors.As(err, &limit) {
				t.Errorf("it is both unknown and too large: %v", err)
			}
		}
	})
}

// readAnything reads a file that may hold anything, and checks what every signature and
// every error has.
func readAnything(t *testing.T, name string, data []byte, format Format) {
	sig, err := Read(context.Background(), one(name, data), name, Options{Limits: fuzzLimits, Format: format})
	if err != nil {
		wellFormed(t, err)
		return
	}
	asMap(t, sig)
	if sig.Size < int64(len(data)) {
		t.Errorf("the size is %d, the file has %d bytes", sig.Size, len(data))
	}
	if sig.Parameters != nil && *sig.Parameters < 0 {
		t.Errorf("%d parameters", *sig.Parameters)
	}
	for _, tensor := range sig.Tensors {
		if _, err := tensor.Shape.elements(); err != nil && tensor.Shape != nil {
			t.Errorf("a weight: %v", err)
		}
	}
}

// fuzzMember fuzzes one member of an archive of testdata: changes to an archive itself
// seldom get past its directory.
func fuzzMember(f *testing.F, format Format, archive, member string) {
	whole, err := zip.OpenReader(filepath.Join("testdata", archive))
	if err != nil {
		f.Fatal(err)
	}
	defer whole.Close()
	var others []string
	found := false
	for _, m := range whole.File {
		in, err := m.Open()
		if err != nil {
			f.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			f.Fatal(err)
		}
		if m.Name == member {
			f.Add(data)
			found = true
			continue
		}
		others = append(others, m.Name, string(data))
	}
	if !found {
		f.Fatalf("%s has no member %s", archive, member)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readAnything(t, archive, zipOf(t, zip.Store, append([]string{member, string(data)}, others...)...), format)
	})
}
