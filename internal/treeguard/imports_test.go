// SPDX-License-Identifier: Apache-2.0

package treeguard

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "diwan.dev/diwan"

// A rule forbids packages below From to depend, however indirectly, on
// packages below any of Not.
type rule struct {
	from   string
	not    []string
	reason string
}

var rules = []rule{
	{
		from:   module + "/optimize",
		not:    []string{"k8s.io", "sigs.k8s.io", module + "/api", module + "/internal"},
		reason: "the search library stands on its own",
	},
	{
		from:   module + "/observation",
		not:    []string{"k8s.io", "sigs.k8s.io", module + "/api", module + "/internal"},
		reason: "the observation store stands on its own",
	},
	{
		from:   module + "/elastic",
		not:    []string{"k8s.io", "sigs.k8s.io", module + "/api", module + "/internal"},
		reason: "membership stands on its own",
	},
	{
		from:   module + "/cmd/diwan-elastic",
		not:    []string{"k8s.io", "sigs.k8s.io"},
		reason: "what goes into images of workers is small",
	},
	{
		from:   module + "/api",
		not:    []string{module + "/internal", module + "/optimize", module + "/observation", "sigs.k8s.io/controller-runtime", "k8s.io/kubernetes"},
		reason: "types are the lowest layer",
	},
	{
		from:   module + "/internal/tuning",
		not:    []string{module + "/internal/training", module + "/internal/scheduling", module + "/internal/diwan"},
		reason: "domains meet only in api",
	},
	{
		from:   module + "/internal/training",
		not:    []string{module + "/internal/tuning", module + "/internal/scheduling", module + "/internal/diwan"},
		reason: "domains meet only in api",
	},
	{
		from:   module + "/internal/models",
		not:    []string{module + "/internal/tuning", module + "/internal/training", module + "/internal/scheduling", module + "/internal/diwan"},
		reason: "domains meet only in api",
	},
	{
		from:   module + "/internal/platform",
		not:    []string{module + "/internal/models", module + "/internal/tuning", module + "/internal/training", module + "/internal/scheduling", module + "/internal/diwan"},
		reason: "the platform knows no domain",
	},
	{
		from:   module + "/internal/platform/operator",
		not:    []string{module + "/internal/platform/laptop", module + "/internal/platform/node", "k8s.io/kubernetes"},
		reason: "the operator does not know where it runs",
	},
	{
		from:   module + "/internal/diwan/manifest",
		not:    []string{module + "/internal/platform/laptop", module + "/internal/platform/node", "k8s.io/kubernetes"},
		reason: "an operator and its reconcilers do not know where they run",
	},
	{
		from:   module + "/internal/platform/node",
		not:    []string{module + "/internal/platform/laptop", module + "/internal/platform/operator", module + "/internal/platform/domain", module + "/api"},
		reason: "the node knows Pods and nothing of domains",
	},
}

// listedPackage is what `go list` says of a package.
type listedPackage struct {
	ImportPath string
	Deps       []string
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-json=ImportPath,Deps", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	seen := map[string]bool{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var pkg listedPackage
		if err := decoder.Decode(&pkg); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if !below(pkg.ImportPath, r.from) {
				continue
			}
			seen[r.from] = true
			for _, dep := range pkg.Deps {
				for _, not := range r.not {
					if below(dep, not) {
						t.Errorf("%s depends on %s: %s", pkg.ImportPath, dep, r.reason)
					}
				}
			}
		}
	}
	for _, r := range rules {
		if !seen[r.from] {
			t.Errorf("no package below %s: the rule guards nothing", r.from)
		}
	}
}

func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// TestLicences looks for the licence file of every module that the binary
// links, and refuses those that bind what links them.
func TestLicences(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}`, module+"/cmd/diwan")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list modules: %v", err)
	}
	known := []string{
		"Apache License", "MIT License", "Permission is hereby granted, free of charge", "Permission to use, copy, modify, and",
		"Redistribution and use in source and binary forms", "Mozilla Public License", "ISC License", "CC0", "This is free and unencumbered software",
	}
	checked := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || checked[fields[0]] {
			continue
		}
		checked[fields[0]] = true
		if text := licence(fields[1]); text == "" {
			t.Errorf("%s has no licence file", fields[0])
		} else if !containsAny(text, known) {
			t.Errorf("%s has an unknown licence: %.80q", fields[0], text)
		}
	}
	if len(checked) < 20 {
		t.Fatalf("checked %d modules: the list is broken", len(checked))
	}
}

// licence reads the licence of the module in dir, or of a directory above it
// for modules that live in a part of a repository.
func licence(dir string) string {
	for range 3 {
		for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "UNLICENSE*", "[Ll]icen[sc]e*"} {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range paths {
				if text, err := os.ReadFile(path); err == nil {
					return string(text)
				}
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func containsAny(text string, parts []string) bool {
	flat := strings.Join(strings.Fields(text), " ")
	for _, part := range parts {
		if strings.Contains(flat, part) {
			return true
		}
	}
	return false
}
