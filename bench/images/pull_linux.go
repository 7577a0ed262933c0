// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/internal/platform/imagestore"
)

// layers is how many layers the image has that is pulled.
const layers = 5

// pull pulls one image into the store in dir.
func pull(ctx context.Context, dir, image, profile string) error {
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	store, err := imagestore.Open(imagestore.Config{Dir: dir})
	if err != nil {
		return err
	}
	name, err := imagestore.ParseName(image)
	if err != nil {
		return err
	}
	_, err = store.Pull(ctx, name, imagestore.PullOptions{})
	return err
}

// puller is how an image gets into the store in a directory.
type puller struct {
	name string
	args func(dir, image string) []string
}

func pullers() ([]puller, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := []puller{{"imagestore", func(dir, image string) []string {
		return []string{self, "-dir", filepath.Join(dir, "store"), "-pull", image}
	}}}
	for _, driver := range []string{"overlay", "vfs"} {
		all = append(all, puller{"podman, " + driver, func(dir, image string) []string {
			return podman(dir, driver)("pull", "--quiet", "--tls-verify=false", image)
		}})
	}
	return all, nil
}

// measurePull measures a pull into an empty store, the start of the program included.
func measurePull(ctx context.Context, b *bench) (string, error) {
	var files int
	var bytes int64
	var write []func(*layerWriter) error
	for range layers {
		write = append(write, b.mix.take(b.large/layers, &files, &bytes))
	}
	image, err := b.hub.push("bench/large", v1.Config{}, write...)
	if err != nil {
		return "", err
	}
	packed, err := diskUse(filepath.Join(b.hub.dir, "content"))
	if err != nil {
		return "", err
	}
	pullers, err := pullers()
	if err != nil {
		return "", err
	}
	var all []*contestant
	for _, p := range pullers {
		all = append(all, &contestant{name: p.name, turn: func(ctx context.Context) (cost, error) {
			return pullOnce(ctx, filepath.Join(b.dir, "pull"), image, p)
		}})
	}
	if err := alternate(ctx, all, b.pulls, false); err != nil {
		return "", err
	}
	rows := [][]string{{"", "s, median (least)", "times imagestore's", "s until on stable storage", "times imagestore's", "CPU, s", "times imagestore's", "largest process, MB"}}
	seconds := func(all []time.Duration) string {
		return fmt.Sprintf("%.2f (%.2f)", all[len(all)/2].Seconds(), all[0].Seconds())
	}
	for _, c := range all {
		if c.failure != nil {
			continue
		}
		row := []string{c.name}
		for _, of := range []func(cost) time.Duration{wall, synced, cpu} {
			median, least := ratios(c, all[0], of)
			row = append(row, seconds(sorted(c, of)), fmt.Sprintf("%.2f (%.2f)", median, least))
		}
		memory := sorted(c, func(c cost) int64 { return c.memory })
		rows = append(rows, append(row, fmt.Sprintf("%d", slices.Max(memory)/1_000_000)))
	}
	return fmt.Sprintf("%d layers, %d files, %d MB; %d MB in the registry. %d turns each.\n\n%s%s",
		layers, files, bytes/1_000_000, packed.bytes/1_000_000, b.pulls, markdown.Table(rows), failures(all)), nil
}

// pullOnce pulls into an empty directory, and removes it.
func pullOnce(ctx context.Context, dir, image string, p puller) (c cost, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return cost{}, err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	handle, err := os.Open(dir)
	if err != nil {
		return cost{}, err
	}
	defer handle.Close()
	if err := unix.Syncfs(int(handle.Fd())); err != nil { // what earlier turns left to write
		return cost{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	report := dir + ".report"
	defer os.Remove(report)
	began := time.Now()
	if _, err := execute(ctx, slices.Concat([]string{self, "-spent", report, "--"}, p.args(dir, image))...); err != nil {
		return cost{}, err
	}
	c.wall = time.Since(began)
	if err := unix.Syncfs(int(handle.Fd())); err != nil {
		return cost{}, err
	}
	c.synced = time.Since(began)
	text, err := os.ReadFile(report)
	if err != nil {
		return cost{}, err
	}
	if _, err := fmt.Sscan(string(text), &c.cpu, &c.memory); err != nil {
		return cost{}, fmt.Errorf("cannot read what a pull took: %w", err)
	}
	return c, nil
}

// spend runs a program and reports its CPU time in ns, and the peak of its memory in
// bytes. A process counts the memory of the one that started it, until it executes its
// program, as its own; this one is small, that of the benchmark is not.
func spend(ctx context.Context, report string, args []string) error {
	state, err := execute(ctx, args...)
	if err != nil {
		return err
	}
	text := fmt.Sprintln(int64(state.UserTime()+state.SystemTime()), state.SysUsage().(*syscall.Rusage).Maxrss<<10)
	return os.WriteFile(report, []byte(text), 0o644)
}
