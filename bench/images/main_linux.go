// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// bench is what the measurements share.
type bench struct {
	dir           string // an empty directory
	hub           *hub
	mix           *mix
	starts, pulls int
	large         int64 // size of the image that is pulled, in bytes
}

// measurements by name, in their order; each returns a section in Markdown.
var measurements = []struct {
	name    string
	measure func(context.Context, *bench) (string, error)
}{
	{"start", measureStart},
	{"pull", measurePull},
	{"disk", measureDisk},
}

func main() {
	b := bench{}
	parent := flag.String("dir", os.TempDir(), "where the stores are; needs 10 GB")
	from := flag.String("from", "/usr", "the directory whose files are in the images")
	flag.IntVar(&b.starts, "starts", 41, "turns of start")
	flag.IntVar(&b.pulls, "pulls", 5, "turns of pull")
	large := flag.Int64("size", 500, "size of the image that is pulled, in MB")
	one := flag.String("pull", "", "pull an image into -dir; for this program's own use")
	spent := flag.String("spent", "", "run a program and report to this file what it took; for this program's own use")
	profile := flag.String("profile", "", "with -pull: write a CPU profile to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b.large = *large * 1_000_000
	var err error
	switch {
	case *spent != "":
		err = spend(ctx, *spent, flag.Args())
	case *one != "":
		err = pull(ctx, *parent, *one, *profile)
	default:
		err = b.run(ctx, *parent, *from, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run runs the named measurements, or all.
func (b *bench) run(ctx context.Context, parent, from string, names []string) (err error) {
	if b.dir, err = os.MkdirTemp(parent, "images-*"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // for users of containers
		return err
	}
	defer func() { err = errors.Join(err, removeAll(b.dir)) }()
	if b.mix, err = newMix(from); err != nil {
		return err
	}
	if b.hub, err = serve(filepath.Join(b.dir, "registry")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.hub.close()) }()
	fmt.Printf("# images\n\nOn %d cores.\n", runtime.NumCPU())
	for _, m := range measurements {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.name)
		section, err := m.measure(ctx, b)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", m.name, err)
		}
		fmt.Printf("\n## %s\n\n%s", m.name, section)
	}
	return nil
}
