// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
)

// zipOf is an archive of members with their content, by pairs.
func zipOf(t testing.TB, method uint16, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		to, err := w.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, members[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipRecord describes a member by hand.
type zipRecord struct {
	name             string
	header           uint32
	stored, unpacked uint32
	method           uint16
}

// rawZip is data followed by a directory of these records.
func rawZip(data []byte, count uint16, records ...zipRecord) []byte {
	var directory []byte
	for _, r := range records {
		entry := make([]byte, zipEntrySize)
		little.PutUint32(entry, zipCentral)
		little.PutUint16(entry[10:], r.method)
		little.PutUint32(entry[20:], r.stored)
		little.PutUint32(entry[24:], r.unpacked)
		little.PutUint16(entry[28:], uint16(len(r.name)))
		little.PutUint32(entry[42:], r.header)
		directory = append(append(directory, entry...), r.name...)
	}
	end := make([]byte, zipEndSize)
	little.PutUint32(end, zipEnd)
	little.PutUint16(end[8:], count)
	little.PutUint16(end[10:], count)
	little.PutUint32(end[12:], uint32(len(directory)))
	little.PutUint32(end[16:], uint32(len(data)))
	return append(append(data, directory...), end...)
}

func localHeader(name string) []byte {
	h := make([]byte, zipLocalSize)
	little.PutUint32(h, zipLocal)
	little.PutUint16(h[26:], uint16(len(name)))
	return append(h, name...)
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	file := func(data []byte) fstest.MapFS { return one("m.skops", data) }
	a, b := localHeader("schema.json"), localHeader("b")
	var bomb bytes.Buffer
	w, err := flate.NewWriter(&bomb, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(make([]byte, 5<<20))
	w.Close()
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("m%d", i), "")
	}
	header := int(zipLocalSize)
	refuse(t, []hostile{
		{name: "no directory", files: file([]byte("PK\x03\x04")), want: "no directory"},
		{name: "truncated", files: file(zipOf(t, zip.Store, "schema.json", "{}")[:40]), want: "no directory"},
		{name: "climbs out", files: file(zipOf(t, zip.Store, "../schema.json", "{}")), want: "leads out"},
		{name: "absolute", files: file(zipOf(t, zip.Store, "/schema.json", "{}")), want: "leads out"},
		{name: "backslash", files: file(zipOf(t, zip.Store, `a\..\b`, "{}")), want: "leads out"},
		{name: "twice", files: file(zipOf(t, zip.Store, "schema.json", "{}", "schema.json", "{}")), want: "two members"},
		{name: "overlap", files: file(rawZip(append(bytes.Clone(a), b...), 2,
			zipRecord{name: "schema.json", stored: uint32(len(b) + 10), unpacked: uint32(len(b) + 10)},
			zipRecord{name: "b", header: uint32(len(a))})), want: "overlaps"},
		{name: "overlap of members", files: file(rawZip(append(append(bytes.Clone(a), b...), make([]byte, 100)...), 2,
			zipRecord{name: "schema.json", stored: uint32(len(b)), unpacked: uint32(len(b))},
			zipRecord{name: "b", header: uint32(len(a))})), want: "overlaps"},
		{name: "shared data", files: file(rawZip(append(bytes.Clone(a), make([]byte, 100)...), 2,
			zipRecord{name: "schema.json", stored: 100, unpacked: 100}, zipRecord{name: "b", stored: 100, unpacked: 100})), want: "overlaps"},
		{name: "outside", files: file(rawZip(bytes.Clone(a), 1, zipRecord{name: "schema.json", header: 1 << 31})), want: "outside"},
		{name: "into the directory", files: file(rawZip(bytes.Clone(a), 1, zipRecord{name: "schema.json", stored: 1 << 20, unpacked: 1 << 20})), want: "outside"},
		{name: "many claimed", files: file(rawZip(bytes.Clone(a), 60000, zipRecord{name: "schema.json"})), want: "too few"},
		{name: "no header", files: file(rawZip(append(bytes.Clone(a), make([]byte, header+50)...), 1, zipRecord{name: "schema.json", header: 20})), want: "not where its directory says"},
		{name: "bomb", files: file(rawZip(append(bytes.Clone(a), bomb.Bytes()...), 1,
			zipRecord{name: "schema.json", stored: uint32(bomb.Len()), unpacked: 5 << 20, method: 8})), limit: "Memory"},
		{name: "bomb that understates", files: file(rawZip(append(bytes.Clone(a), bomb.Bytes()...), 1,
			zipRecord{name: "schema.json", stored: uint32(bomb.Len()), unpacked: 100, method: 8})), want: "another size"},
		{name: "bomb that overstates", files: file(rawZip(append(bytes.Clone(a), bomb.Bytes()...), 1,
			zipRecord{name: "schema.json", stored: uint32(bomb.Len()), unpacked: 1 << 31, method: 8})), limit: "Inflated"},
		{name: "method", files: file(rawZip(bytes.Clone(a), 1, zipRecord{name: "schema.json", method: 12})), want: "method 12"},
		{name: "two sizes", files: file(rawZip(append(bytes.Clone(a), 1, 2, 3), 1, zipRecord{name: "schema.json", stored: 3, unpacked: 5})), want: "two sizes"},
		{name: "depth", files: file(zipOf(t, zip.Deflate, "schema.json", strings.Repeat(`{"content":`, 1000))), limit: "Depth"},
	})
	if _, err := Read(t.Context(), file(zipOf(t, zip.Store, many...)), "m.skops", Options{Limits: Limits{Files: 1000}}); err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("2000 members: %v", err)
	}
}
