// SPDX-License-Identifier: Apache-2.0

package treeguard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const licenceLine = "// SPDX-License-Identifier: Apache-2.0\n"

// root is the module's directory, seen from this package.
const root = "../.."

// forbiddenNames say nothing of what a package provides.
var forbiddenNames = map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "base": true, "misc": true}

// sourcePackage is what the files of one directory declare.
type sourcePackage struct {
	dir   string
	files map[string]*ast.File
}

// sourcePackages parses every Go file of the module that is not a test.
func sourcePackages(t *testing.T) map[string]*sourcePackage {
	t.Helper()
	packages := map[string]*sourcePackage{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if name == "testdata" || name == "node_modules" || name == "bin" || strings.HasPrefix(name, ".") && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		generated := ast.IsGenerated(file)
		if !generated && !strings.HasPrefix(string(text), licenceLine) {
			t.Errorf("%s does not start with %q", path, strings.TrimSpace(licenceLine))
		}
		dir := filepath.Dir(path)
		if packages[dir] == nil {
			packages[dir] = &sourcePackage{dir: dir, files: map[string]*ast.File{}}
		}
		if !generated {
			packages[dir].files[path] = file
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("found %d packages below %s: the walk is broken", len(packages), root)
	}
	return packages
}

func TestPackagesHaveOneDocument(t *testing.T) {
	t.Parallel()
	for dir, pkg := range sourcePackages(t) {
		var documented []string
		for path, file := range pkg.files {
			if forbiddenNames[file.Name.Name] {
				t.Errorf("%s: package %s says nothing of what it provides", path, file.Name.Name)
			}
			if file.Doc == nil {
				continue
			}
			documented = append(documented, path)
			want := "Package " + file.Name.Name + " "
			if file.Name.Name == "main" {
				want = "Command "
			}
			if text := file.Doc.Text(); !strings.HasPrefix(text, want) {
				t.Errorf("%s: the package document starts with %.40q, want %q", path, text, want)
			}
		}
		if len(documented) != 1 {
			t.Errorf("%s has %d package documents %v, want one", dir, len(documented), documented)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, pkg := range sourcePackages(t) {
		for path, file := range pkg.files {
			for _, decl := range file.Decls {
				for _, name := range undocumented(decl) {
					t.Errorf("%s: %s is exported and not documented", path, name)
				}
			}
		}
	}
}

// undocumented lists the exported names of a declaration without a comment.
func undocumented(decl ast.Decl) []string {
	var names []string
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && decl.Doc == nil && receiverExported(decl) {
			names = append(names, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() && decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// receiverExported reports whether a function is reachable from outside: a plain
// function, or a method of an exported type.
func receiverExported(decl *ast.FuncDecl) bool {
	if decl.Recv == nil {
		return true
	}
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}
