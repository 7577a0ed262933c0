// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/process"
)

// BenchmarkStart starts a program and waits for its end, with this runtime and as a process.
func BenchmarkStart(b *testing.B) {
	template := specFor(b, "echo", "loss=1")
	for _, dir := range []string{"dev", "proc", "sys", "mnt"} { // as in every image
		if err := os.Mkdir(filepath.Join(template.Root.Layers[0], dir), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	put(b, template.Root.Layers[0], "etc/hosts", "")
	mounts := []container.Mount{{Source: "/etc/hosts", Target: "/etc/hosts"}, {Source: "/tmp", Target: "/mnt", ReadOnly: true}}
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	measure := func(b *testing.B, r container.Runtime, root bool) {
		defer r.Close()
		least := time.Hour // what other work on the machine does not disturb
		for i := 0; b.Loop(); i++ {
			began := time.Now()
			spec := container.Spec{
				ID: container.ID{Pod: fmt.Sprintf("bench-%d-%d", os.Getpid(), i), Name: "c"}, Args: template.Args,
				Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Mounts: mounts, Hostname: "pod",
			}
			if root {
				spec.Root, spec.Security = template.Root, template.Security
			}
			run, err := r.Start(b.Context(), spec, log)
			if err != nil {
				b.Fatal(err)
			}
			<-run.Done()
			if err := run.Remove(); err != nil {
				b.Fatal(err)
			}
			least = min(least, time.Since(began))
		}
		b.ReportMetric(float64(least.Microseconds())/1000, "min-ms/op")
	}
	b.Run("process", func(b *testing.B) {
		r, err := process.New(process.DefaultConfig(filepath.Join(b.TempDir(), "pods")))
		if err != nil {
			b.Fatal(err)
		}
		measure(b, r, false)
	})
	b.Run("sandbox", func(b *testing.B) {
		r, err := New(testConfig(filepath.Join(b.TempDir(), "pods")))
		if err != nil {
			b.Fatal(err)
		}
		measure(b, r, true)
	})
}
