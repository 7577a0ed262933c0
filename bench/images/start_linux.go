// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/node/capability"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/process"
	"diwan.dev/diwan/internal/platform/node/sandbox"
	"diwan.dev/diwan/internal/platform/node/seccomp"
)

// measureStart measures from a present image to the end of `true`.
func measureStart(ctx context.Context, b *bench) (string, error) {
	dir := filepath.Join(b.dir, "start")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return "", fmt.Errorf("install busybox-static: %w", err)
	}
	name, err := b.hub.push("bench/true", v1.Config{Env: []string{"PATH=/bin"}}, func(w *layerWriter) error {
		for _, dir := range []string{"bin", "dev", "etc", "mnt", "proc", "sys", "tmp"} {
			if err := w.dir(dir); err != nil {
				return err
			}
		}
		if err := w.copy("bin/busybox", busybox); err != nil {
			return err
		}
		return w.link("bin/true", "busybox")
	})
	if err != nil {
		return "", err
	}
	guard, filter, err := security()
	if err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	defer log.Close()

	processes, err := process.New(process.DefaultConfig(filepath.Join(dir, "processes")))
	if err != nil {
		return "", err
	}
	defer processes.Close()
	boxes, err := sandbox.New(sandbox.DefaultConfig(filepath.Join(dir, "boxes")))
	if err != nil {
		return "", err
	}
	defer boxes.Close()
	store, err := imagestore.Open(imagestore.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return "", err
	}
	parsed, err := imagestore.ParseName(name)
	if err != nil {
		return "", err
	}
	if _, err := store.Pull(ctx, parsed, imagestore.PullOptions{}); err != nil {
		return "", err
	}

	serial := 0
	started := func(r container.Runtime, spec container.Spec) error {
		serial++
		spec.ID = container.ID{Pod: fmt.Sprintf("bench-%d-%d", os.Getpid(), serial), Name: "c"}
		spec.Args, spec.Env, spec.Dir, spec.Hostname = []string{"true"}, []string{"PATH=/bin:/usr/bin"}, "/", "pod"
		run, err := r.Start(ctx, spec, log)
		if err != nil {
			return err
		}
		<-run.Done()
		if exit := run.Exit(); exit.Outcome != container.Exited || exit.Code != 0 {
			err = fmt.Errorf("it ended with %+v", exit)
		}
		return errors.Join(err, run.Remove())
	}
	own := &contestant{name: "sandbox", turn: timed(func(context.Context) error {
		image, err := store.Find(parsed)
		if err != nil {
			return err
		}
		layers := image.Dirs()
		slices.Reverse(layers)
		return started(boxes, container.Spec{Root: &container.Root{ImageID: image.ID(), Layers: layers}, Security: guard})
	})}
	plain := &contestant{name: "process", turn: timed(func(context.Context) error { return started(processes, container.Spec{}) })}
	all := []*contestant{own, plain, {name: "fork and exec, no container", turn: timed(command(busybox, "true"))}}

	hidden := newHidden()
	defer hidden.close()
	bundle := filepath.Join(dir, "bundle")
	if err := writeBundle(bundle, busybox, guard, filter); err != nil {
		return "", err
	}
	runc := []string{"runc", "--root", filepath.Join(dir, "runc"), "run", "--bundle", bundle, "bench-runc"}
	crun := func(more ...string) []string {
		return slices.Concat([]string{"crun", "--root", filepath.Join(dir, "crun")}, more, []string{"run", "--bundle", bundle, "bench-crun"})
	}
	all = append(all,
		&contestant{name: "runc run", turn: timed(command(runc...))},
		&contestant{name: "crun run", turn: timed(hidden.in(command(crun()...)))},
		&contestant{name: "crun run without cgroups", turn: timed(hidden.in(command(crun("--cgroup-manager=disabled")...)))},
	)
	for _, p := range []struct {
		name, runtime string
		more          []string
		in            func(func(context.Context) error) func(context.Context) error
	}{
		{"podman run, runc", "runc", nil, func(f func(context.Context) error) func(context.Context) error { return f }},
		{"podman run, crun, without cgroups", "crun", []string{"--cgroups=disabled"}, hidden.in},
	} {
		pod := podman(filepath.Join(dir, "podman-"+p.runtime), "overlay", "--runtime", p.runtime, "--cgroup-manager", "cgroupfs")
		c := &contestant{name: p.name}
		c.failure = p.in(command(pod("pull", "--quiet", "--tls-verify=false", name)...))(ctx)
		// Explicit limits: the default ones are above what a process without CAP_SYS_RESOURCE may set.
		run := pod(slices.Concat([]string{"run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"},
			p.more, []string{name, "true"})...)
		c.turn = timed(p.in(command(run...)))
		all = append(all, c)
	}
	if err := alternate(ctx, all, b.starts, true); err != nil {
		return "", err
	}

	rows := [][]string{{"`true`", "ms, median (least)", "times sandbox's, median (least)", "CPU, ms, median (least)"}}
	for _, c := range all {
		if c.failure != nil {
			continue
		}
		median, least := ratios(c, own, wall)
		rows = append(rows, []string{c.name, millis(sorted(c, wall)), fmt.Sprintf("%.2f (%.2f)", median, least), millis(sorted(c, cpu))})
	}
	var more []time.Duration
	for i := range own.costs {
		more = append(more, own.costs[i].wall-plain.costs[i].wall)
	}
	slices.Sort(more)
	return fmt.Sprintf("%d turns each, after one that does not count.\n\n%s\nA container costs %.1f ms more than a process: the median of the turns' differences. The least times differ by %.1f ms.\n%s",
		b.starts, markdown.Table(rows), ms(more[len(more)/2]), ms(sorted(own, wall)[0]-sorted(plain, wall)[0]), failures(all)), nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func millis(all []time.Duration) string {
	return fmt.Sprintf("%.1f (%.1f)", ms(all[len(all)/2]), ms(all[0]))
}

// timed is a turn that does something, with the CPU time of this process and of its
// children that ended and were waited for.
func timed(do func(context.Context) error) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		before := used()
		began := time.Now()
		err := do(ctx)
		took := time.Since(began)
		return cost{wall: took, cpu: used() - before}, err
	}
}

// used is the CPU time of this process and of children that were waited for.
func used() time.Duration {
	var sum int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if unix.Getrusage(who, &usage) == nil {
			sum += usage.Utime.Nano() + usage.Stime.Nano()
		}
	}
	return time.Duration(sum)
}

func command(args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := execute(ctx, args...)
		return err
	}
}

// security is what a container has that asks for nothing, and its filter in the peers' words.
func security() (*container.Security, *specs.LinuxSeccomp, error) {
	caps := capability.Default()
	machine, err := seccomp.ThisMachine(caps.Names())
	if err != nil {
		return nil, nil, err
	}
	profile, err := seccomp.Default()
	if err != nil {
		return nil, nil, err
	}
	filter, err := profile.Resolve(machine)
	if err != nil {
		return nil, nil, err
	}
	program, err := seccomp.Compile(filter, machine)
	if err != nil {
		return nil, nil, err
	}
	return &container.Security{
		Capabilities: caps, Seccomp: program.Bytes(), SeccompFlags: program.Flags,
		Masked: sandbox.DefaultMasked(), ReadOnly: sandbox.DefaultReadOnly(),
	}, filter, nil
}

// writeBundle writes an OCI bundle with what a sandbox has: the same namespaces, file
// systems, capabilities, filter and masks. Its root is a directory, not an overlay.
func writeBundle(dir, busybox string, guard *container.Security, filter *specs.LinuxSeccomp) error {
	root := filepath.Join(dir, "rootfs")
	for _, name := range []string{"bin", "dev", "etc", "mnt", "proc", "sys", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(busybox)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "bin/busybox"), program, 0o755)
	}
	if err == nil {
		err = os.Symlink("busybox", filepath.Join(root, "bin/true"))
	}
	if err != nil {
		return err
	}
	caps := guard.Capabilities.Names()
	text, err := json.Marshal(specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{
			Args: []string{"true"}, Env: []string{"PATH=/bin"}, Cwd: "/",
			Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		},
		Root:     &specs.Root{Path: "rootfs"},
		Hostname: "pod",
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &specs.Linux{
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}},
			MaskedPaths: guard.Masked, ReadonlyPaths: guard.ReadOnly, Seccomp: filter,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
}
