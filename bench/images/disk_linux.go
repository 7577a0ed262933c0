// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"diwan.dev/diwan/bench/markdown"
)

// Ten images of one base.
const (
	images   = 10
	baseSize = 300_000_000
	topSize  = 10_000_000
)

// measureDisk measures what images with a common base occupy.
func measureDisk(ctx context.Context, b *bench) (string, error) {
	var files int
	var bytes int64
	path := filepath.Join(b.dir, "base.tar.gz")
	if err := writeLayer(path, b.mix.take(baseSize, &files, &bytes)); err != nil {
		return "", err
	}
	base, err := tarball.LayerFromFile(path)
	if err != nil {
		return "", err
	}
	var names []string
	for i := range images {
		path := filepath.Join(b.dir, fmt.Sprintf("top-%d.tar.gz", i))
		if err := writeLayer(path, b.mix.take(topSize, &files, &bytes)); err != nil {
			return "", err
		}
		top, err := tarball.LayerFromFile(path)
		if err != nil {
			return "", err
		}
		name, err := b.hub.pushLayers(fmt.Sprintf("bench/top%d", i), v1.Config{}, base, top)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	pullers, err := pullers()
	if err != nil {
		return "", err
	}
	rows := [][]string{{"", "MB", "times the files' size", "files and directories"}}
	var failed []*contestant
	for _, p := range pullers {
		found, err := pullAll(ctx, filepath.Join(b.dir, "disk"), names, p)
		if err != nil {
			failed = append(failed, &contestant{name: p.name, failure: err})
			continue
		}
		rows = append(rows, []string{
			p.name, fmt.Sprintf("%d", found.bytes/1_000_000), fmt.Sprintf("%.2f", float64(found.bytes)/float64(bytes)), fmt.Sprintf("%d", found.inodes),
		})
	}
	return fmt.Sprintf("%d images; %d files of %d MB in all of their %d layers.\n\n%s%s",
		images, files, bytes/1_000_000, images+1, markdown.Table(rows), failures(failed)), nil
}

// pullAll pulls images one after the other into an empty directory, and removes it.
func pullAll(ctx context.Context, dir string, names []string, p puller) (use, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return use{}, err
	}
	defer removeAll(dir)
	for _, name := range names {
		if _, err := execute(ctx, p.args(dir, name)...); err != nil {
			return use{}, err
		}
	}
	if err := unmountAll(dir); err != nil {
		return use{}, err
	}
	return diskUse(dir)
}

// use is what a directory occupies.
type use struct {
	bytes  int64 // blocks on the disk, in bytes
	inodes int
}

// diskUse counts each file once, however many names it has.
func diskUse(dir string) (use, error) {
	var found use
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		if !seen[stat.Ino] {
			seen[stat.Ino] = true
			found.bytes += stat.Blocks * 512
			found.inodes++
		}
		return nil
	})
	return found, err
}
