// SPDX-License-Identifier: Apache-2.0

package treeguard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// source is what `go list` says of a package that is to be type-checked.
type source struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// TestMacOS type-checks the program diwan for macOS. That takes a small part of the
// time of a second build: functions of other modules are looked into only where
// their package has other files than on Linux, for which all is compiled.
func TestMacOS(t *testing.T) {
	t.Parallel()
	linux := map[string]source{}
	for _, p := range sources(t, "linux", "amd64") {
		linux[p.ImportPath] = p
	}
	checker := types.Config{Sizes: types.SizesFor("gc", "arm64")}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for _, p := range sources(t, "darwin", "arm64") { // dependencies come first
		if p.ImportPath == "unsafe" {
			continue
		}
		if p.Error != nil {
			t.Fatalf("%s: %s", p.ImportPath, p.Error.Err)
		}
		own := p.Module != nil && p.Module.Main
		config := checker
		config.IgnoreFuncBodies = !own && slices.Equal(p.GoFiles, linux[p.ImportPath].GoFiles)
		config.FakeImportC = true
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		config.Importer = importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if pkg := checked[path]; pkg != nil {
				return pkg, nil
			}
			return nil, fmt.Errorf("cannot find %s", path)
		})
		files, err := parse(fset, p)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := config.Check(p.ImportPath, fset, files, nil)
		if err != nil {
			t.Fatalf("on macOS: %v", err)
		}
		checked[p.ImportPath] = pkg
	}
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }

// sources lists the packages that the program is made of on a platform.
func sources(t *testing.T, goos, goarch string) (all []source) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", module+"/cmd/diwan")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p source
		if err := decoder.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// parse parses the files of a package.
func parse(fset *token.FileSet, p source) ([]*ast.File, error) {
	files := make([]*ast.File, len(p.GoFiles))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range p.GoFiles {
		group.Go(func() (err error) {
			if !strings.HasPrefix(name, "/") {
				name = filepath.Join(p.Dir, name)
			}
			files[i], err = parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			return err
		})
	}
	return files, group.Wait()
}
