// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/internal/platform/registry"
)

// bench is what the measurements share.
type bench struct {
	dir      string // an empty directory
	programs string
	diwan    string
	files    int
	size     int64 // of a file
	rounds   int
}

func main() {
	b := bench{}
	parent := flag.String("dir", os.TempDir(), "where the models are; needs ten times the size")
	flag.StringVar(&b.programs, "programs", "", "directory of modctl, kit and oras; those that are missing are left out")
	flag.StringVar(&b.diwan, "diwan", "", "the program diwan (default it is built)")
	flag.IntVar(&b.files, "files", 50, "files of the model")
	megabytes := flag.Int64("size", 2000, "size of the model, in MB")
	flag.IntVar(&b.rounds, "rounds", 3, "runs of each program, in turns")
	flag.Parse()
	b.size = *megabytes * 1_000_000 / int64(b.files)
	if err := b.run(*parent); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// steps are what is measured, in this order. 2 is for the second version.
var steps = []string{"save", "push", "pull", "export", "save 2", "push 2", "pull 2", "export 2"}

// cost is what a step took.
type cost struct {
	seconds, cpu float64
	memory       int64 // peak resident, in kB
}

// program is one of those that are compared: the commands of a step, nil if it has none. v is v1 or v2.
type program struct {
	name     string
	commands func(step, dir, work, ref string) [][]string
	env      func(home string) []string
}

func (b *bench) all() []program {
	bin := func(name string) string { return filepath.Join(b.programs, name) }
	return []program{
		{"diwan", func(step, dir, work, ref string) [][]string {
			switch step {
			case "save":
				return [][]string{{b.diwan, "model", "save", "-q", dir, ref, "--home", work + "/a"}}
			case "push":
				return [][]string{{b.diwan, "model", "push", "-q", ref, "--home", work + "/a"}}
			case "pull":
				return [][]string{{b.diwan, "model", "pull", "-q", ref, "--home", work + "/b"}}
			}
			return [][]string{{b.diwan, "model", "export", "-q", ref, "-d", work + "/out", "--home", work + "/b"}}
		}, func(string) []string { return nil }},
		{"diwan --link", func(step, dir, work, ref string) [][]string {
			if step != "export" {
				return nil
			}
			return [][]string{
				{b.diwan, "model", "save", "-q", dir, ref, "--home", work + "/a"}, // not measured: the last one is
				{b.diwan, "model", "export", "-q", "--link", ref, "-d", work + "/out", "--home", work + "/a"},
			}
		}, func(string) []string { return nil }},
		{"modctl", func(step, dir, work, ref string) [][]string {
			switch step {
			case "save":
				return [][]string{{bin("modctl"), "build", "--raw", "-t", ref, "-f", dir + "/../Modelfile", dir, "--storage-dir", work + "/a", "--no-progress"}}
			case "push":
				return [][]string{{bin("modctl"), "push", "--plain-http", ref, "--storage-dir", work + "/a", "--no-progress"}}
			case "pull":
				return [][]string{{bin("modctl"), "pull", "--plain-http", ref, "--storage-dir", work + "/b", "--no-progress"}}
			}
			return [][]string{{bin("modctl"), "extract", ref, "--output", work + "/out", "--storage-dir", work + "/b", "--no-progress"}}
		}, func(string) []string { return nil }},
		{"kit", func(step, dir, work, ref string) [][]string {
			switch step {
			case "save":
				return [][]string{{bin("kit"), "pack", dir, "-f", dir + "/../Kitfile", "-t", ref, "--config", work + "/a"}}
			case "push":
				return [][]string{{bin("kit"), "push", "--plain-http", ref, "--config", work + "/a"}}
			case "pull":
				return [][]string{{bin("kit"), "pull", "--plain-http", ref, "--config", work + "/b"}}
			}
			return [][]string{{bin("kit"), "unpack", ref, "-o", "-d", work + "/out", "--config", work + "/b"}}
		}, func(string) []string { return []string{"KITOPS_UPDATE_NOTIFICATIONS=false"} }},
		{"oras (from and to a folder)", func(step, dir, work, ref string) [][]string {
			switch step {
			case "push":
				command := []string{bin("oras"), "push", "--plain-http", "--disable-path-validation", "--no-tty", ref}
				for i := range b.files {
					command = append(command, fileName(i))
				}
				return [][]string{command}
			case "pull":
				return [][]string{{bin("oras"), "pull", "--plain-http", "--no-tty", ref, "-o", work + "/out"}}
			}
			return nil
		}, func(string) []string { return nil }},
	}
}

func fileName(i int) string { return fmt.Sprintf("model-%02d.safetensors", i) }

func (b *bench) run(parent string) (err error) {
	if b.dir, err = os.MkdirTemp(parent, "bench-models-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.diwan == "" {
		b.diwan = filepath.Join(b.dir, "diwan")
		build := exec.Command("go", "build", "-o", b.diwan, "./cmd/diwan")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return err
		}
	}
	if err := b.write(); err != nil {
		return err
	}
	var chosen []program
	for _, p := range b.all() {
		first := p.commands("push", "", "", "")
		if first == nil {
			first = p.commands("export", "", "", "")
		}
		if _, err := os.Stat(first[0][0]); err == nil {
			chosen = append(chosen, p)
		}
	}
	costs := map[string]map[string][]cost{}
	for round := range b.rounds {
		for i := range chosen {
			p := chosen[(i+round)%len(chosen)]
			if costs[p.name] == nil {
				costs[p.name] = map[string][]cost{}
			}
			if err := b.measure(p, costs[p.name]); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	fmt.Print(b.report(chosen, costs))
	return nil
}

// write makes the two versions: a tenth of the second one's files are others.
func (b *bench) write() error {
	source := rand.NewChaCha8([32]byte{1})
	var kitfile, modelfile strings.Builder
	kitfile.WriteString("manifestVersion: 1.0.0\npackage: {name: bench}\nmodel:\n  name: bench\n")
	modelfile.WriteString("NAME bench\nFORMAT safetensors\n")
	for i := range b.files {
		name := fileName(i)
		if i == 0 {
			fmt.Fprintf(&kitfile, "  path: %s\n  parts:\n", name)
		} else {
			fmt.Fprintf(&kitfile, "  - path: %s\n", name)
		}
		fmt.Fprintf(&modelfile, "MODEL %s\n", name)
		for v := 1; v <= 2; v++ {
			path := filepath.Join(b.dir, fmt.Sprintf("v%d", v), "m", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if v == 2 && i%10 != 0 { // as a training would leave it: the same file
				if err := os.Link(filepath.Join(b.dir, "v1", "m", name), path); err != nil {
					return err
				}
				continue
			}
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			_, err = io.CopyN(f, source, b.size)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
	}
	for v := 1; v <= 2; v++ {
		dir := filepath.Join(b.dir, fmt.Sprintf("v%d", v))
		err := errors.Join(os.WriteFile(dir+"/Kitfile", []byte(kitfile.String()), 0o644), os.WriteFile(dir+"/Modelfile", []byte(modelfile.String()), 0o644))
		if err != nil {
			return err
		}
	}
	syscall.Sync()
	time.Sleep(3 * time.Second) // so that no file is as new as the run
	return nil
}

// measure runs all steps of one program, with a registry of its own.
func (b *bench) measure(p program, costs map[string][]cost) error {
	work := filepath.Join(b.dir, "work")
	defer os.RemoveAll(work)
	for _, d := range []string{"a", "b", "out"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			return err
		}
	}
	hub, err := registry.Open(registry.Config{Dir: filepath.Join(work, "registry"), Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil }})
	if err != nil {
		return err
	}
	defer hub.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = hub.Serve(ctx, listener) })
	defer serving.Wait()
	defer cancel()
	for _, step := range steps {
		kind, version := strings.TrimSuffix(step, " 2"), "v1"
		if step != kind {
			version = "v2"
		}
		dir := filepath.Join(b.dir, version, "m")
		commands := p.commands(kind, dir, work, listener.Addr().String()+"/bench/model:"+version)
		if commands == nil {
			continue
		}
		syscall.Sync()
		var last cost
		for _, command := range commands {
			if last, err = execute(command, dir, append(p.env(work), "HOME="+work, "TMPDIR="+work)); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
		if kind == "export" || p.name[0] == 'o' && kind == "pull" {
			if err := b.check(dir, filepath.Join(work, "out")); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
			if err := os.RemoveAll(filepath.Join(work, "out")); err != nil {
				return err
			}
		}
		costs[step] = append(costs[step], last)
	}
	return nil
}

// check compares sizes: every program checks digests itself.
func (b *bench) check(want, got string) error {
	for i := range b.files {
		info, err := os.Stat(filepath.Join(got, fileName(i)))
		if err != nil {
			return err
		}
		if info.Size() != b.size {
			return fmt.Errorf("%s has %d bytes", info.Name(), info.Size())
		}
	}
	return nil
}

func execute(command []string, dir string, env []string) (cost, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start).Seconds()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(command[:min(4, len(command))], " "), err, output.String())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{took, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), usage.Maxrss}, nil
}

func (b *bench) report(programs []program, costs map[string]map[string][]cost) string {
	var out strings.Builder
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&out, "# models\n\n`diwan model` beside modctl, kit and oras: a model of %d files, %d MB together, on a loopback registry (the laptop's).\nThe second version has a tenth of the files changed. Repeat with `go run ./bench/models -programs DIR`, where DIR has the\nother programs.\n\nRuns in turns: %d; median seconds (processor seconds; peak memory in MB). Load of the machine at the end: %s.\n\n", b.files, b.size*int64(b.files)/1_000_000, b.rounds, strings.Join(strings.Fields(string(load))[:1], ""))
	rows := [][]string{append([]string{""}, steps...)}
	for _, p := range programs {
		row := []string{p.name}
		for _, step := range steps {
			row = append(row, median(costs[p.name][step]))
		}
		rows = append(rows, row)
	}
	out.WriteString(markdown.Table(rows))
	return out.String()
}

func median(all []cost) string {
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.seconds, b.seconds) })
	m := all[len(all)/2]
	memory := int64(0)
	for _, c := range all {
		memory = max(memory, c.memory)
	}
	return fmt.Sprintf("%.2f (%.2f; %d)", m.seconds, m.cpu, memory*1024/1_000_000)
}
