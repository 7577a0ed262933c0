// SPDX-License-Identifier: Apache-2.0

package treeguard

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedPath is a path in backquotes.
var quotedPath = regexp.MustCompile("`([^`]+)`")

// rooms reads the table of docs/architecture.md: which rooms a room may import,
// by path from the module's root.
func rooms(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if inTable = inTable && len(cells) == 5 || line == "| room | what lives there | may import |\n"; !inTable {
			continue
		}
		if room := quotedPath.FindStringSubmatch(cells[1]); room != nil {
			found[room[1]] = nil
			for _, other := range quotedPath.FindAllStringSubmatch(cells[3], -1) {
				found[room[1]] = append(found[room[1]], other[1])
			}
		}
	}
	if len(found) < 10 {
		t.Fatalf("docs/architecture.md has %d rooms: its table cannot be read", len(found))
	}
	return found
}

// roomOf returns the innermost room that holds a package, "" for none.
func roomOf(rooms map[string][]string, path string) string {
	best := ""
	for room := range rooms {
		if below(path, room) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

// TestRoomsImportWhatTheTableSays holds every import within the module to the
// table of docs/architecture.md.
func TestRoomsImportWhatTheTableSays(t *testing.T) {
	t.Parallel()
	rooms := rooms(t)
	for room, others := range rooms {
		for _, path := range append(others, room) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				t.Errorf("docs/architecture.md names %s: %v", path, err)
			}
		}
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	used := map[string]bool{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(pkg.ImportPath, module+"/")
		room := roomOf(rooms, path)
		if room == "" {
			t.Errorf("%s is in no room of docs/architecture.md", path)
			continue
		}
		for _, imported := range pkg.Imports {
			imported, ours := strings.CutPrefix(imported, module+"/")
			if !ours || roomOf(rooms, imported) == room {
				continue
			}
			i := slices.IndexFunc(rooms[room], func(allowed string) bool { return below(imported, allowed) })
			if i < 0 {
				t.Errorf("%s imports %s: docs/architecture.md does not let %s", path, imported, room)
				continue
			}
			used[room+" "+rooms[room][i]] = true
		}
	}
	for room, others := range rooms {
		for _, other := range others {
			if !used[room+" "+other] {
				t.Errorf("docs/architecture.md lets %s import %s, which nothing there does", room, other)
			}
		}
	}
}
