// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"sync"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/containerlog"
	"diwan.dev/diwan/internal/platform/node/server"
)

var _ server.Backend = (*Node)(nil)

// worker finds the worker of a Pod by name; nil when there is none.
func (n *Node) worker(namespace, pod string) *worker {
	for _, w := range n.allWorkers() {
		if p := w.current(); p.Namespace == namespace && p.Name == pod {
			return w
		}
	}
	return nil
}

// closed is the Ended of logs whose container is no longer there.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Log finds the output of a container's last run, or of the one before. It
// outlives the Pod.
func (n *Node) Log(_ context.Context, namespace, pod, name string, previous bool) (server.LogFile, error) {
	missing := func(what string) error {
		return fmt.Errorf("%s container %q in pod %q: %w", what, name, pod, server.ErrNotFound)
	}
	if !filepath.IsLocal(filepath.Join(namespace, pod, name)) {
		return server.LogFile{}, missing("unknown")
	}
	runs := n.attempts(namespace, pod, name)
	back := 0
	if previous {
		back = 1
	}
	if len(runs) <= back {
		if previous {
			return server.LogFile{}, missing("previous terminated")
		}
		return server.LogFile{}, missing("no output yet of")
	}
	file := server.LogFile{
		Path:  filepath.Join(n.logDir(namespace, pod, name), strconv.Itoa(runs[back])+".log"),
		Ended: closed(),
	}
	if w := n.worker(namespace, pod); w != nil && !previous {
		w.mu.Lock()
		defer w.mu.Unlock()
		if e := w.containers[name]; e != nil && e.done != nil {
			file.Ended = e.done
		}
	}
	return file, nil
}

// running finds the present run of a container.
func (n *Node) running(namespace, pod, name string) (container.Run, string, error) {
	w := n.worker(namespace, pod)
	if w == nil {
		return nil, "", fmt.Errorf("pod %q does not run on this node: %w", pod, server.ErrNotFound)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.containers[name]
	if e == nil || e.run == nil || e.view.running.IsZero() {
		return nil, "", fmt.Errorf("container %q of pod %q is not running: %w", name, pod, server.ErrNotFound)
	}
	return e.run, string(w.pod.UID), nil
}

// Exec runs a command in a running container.
func (n *Node) Exec(ctx context.Context, namespace, pod, name string, command []string, s server.Streams) error {
	run, _, err := n.running(namespace, pod, name)
	if err != nil {
		return err
	}
	streams := container.Streams{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, TTY: s.TTY}
	if s.Resize != nil {
		sizes := make(chan [2]uint16)
		done := make(chan struct{})
		defer close(done)
		go func() { // ends with the session
			defer close(sizes)
			for {
				select {
				case size, ok := <-s.Resize:
					if !ok {
						return
					}
					select {
					case sizes <- [2]uint16{size.Width, size.Height}:
					case <-done:
						return
					}
				case <-done:
					return
				}
			}
		}()
		streams.Resize = sizes
	}
	return run.Exec(ctx, command, streams)
}

// Attach connects to a running container until it ends. Its output is shown from
// now on.
func (n *Node) Attach(ctx context.Context, namespace, pod, name string, s server.Streams) error {
	run, _, err := n.running(namespace, pod, name)
	if err != nil {
		return err
	}
	file, err := n.Log(ctx, namespace, pod, name, false)
	if err != nil {
		return err
	}
	options := containerlog.Options{Follow: true}
	if spec := run.Spec(); s.Stdin != nil && spec.Stdin || s.Resize != nil && spec.TTY {
		switch input, err := run.Attach(ctx); {
		case errors.Is(err, container.ErrNoInput): // it was closed by the end of an earlier session
		case err != nil:
			return err
		default:
			var end func()
			defer func() {
				if end != nil {
					end()
				}
				input.Close()
			}()
			options.Begun = func() { end = feed(input, spec, s) }
		}
	}
	out := s.Stdout
	if out == nil {
		out = io.Discard
	}
	return containerlog.Copy(ctx, out, file.Path, options, file.Ended)
}

// feed passes a client's input and terminal size on to a container, until it ends
// or end is called.
func feed(input container.Input, spec container.Spec, s server.Streams) (end func()) {
	done := make(chan struct{})
	var sizes sync.WaitGroup
	if s.Resize != nil && spec.TTY {
		sizes.Go(func() {
			for {
				select {
				case size, ok := <-s.Resize:
					if !ok {
						return
					}
					input.Resize(size.Width, size.Height) // fails once the terminal is gone
				case <-done:
					return
				}
			}
		})
	}
	if s.Stdin != nil && spec.Stdin {
		go func() { // ends with the client's stream
			io.Copy(input, s.Stdin)
			if !spec.TTY {
				input.Close()
			}
		}()
	}
	return func() {
		close(done)
		sizes.Wait()
	}
}

// DialPort connects to a port of a Pod.
func (n *Node) DialPort(ctx context.Context, namespace, pod string, port uint16) (net.Conn, error) {
	w := n.worker(namespace, pod)
	if w == nil {
		return nil, fmt.Errorf("pod %q does not run on this node: %w", pod, server.ErrNotFound)
	}
	return n.cfg.Network.Dial(ctx, string(w.current().UID), port)
}

// Usage measures the running containers.
func (n *Node) Usage(ctx context.Context) ([]server.Usage, error) {
	var all []server.Usage
	for _, w := range n.allWorkers() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for name, run := range w.runs() {
			used, err := run.Usage()
			if err != nil {
				return nil, err
			}
			pod := w.current()
			all = append(all, server.Usage{
				Namespace: pod.Namespace, Pod: pod.Name, PodUID: string(pod.UID), Container: name,
				Started: run.Started(), CPU: used.CPU, Memory: used.Memory,
			})
		}
	}
	return all, nil
}

// runs are the present runs by container.
func (w *worker) runs() map[string]container.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := map[string]container.Run{}
	for name, e := range w.containers {
		if e.run != nil && !e.view.running.IsZero() {
			runs[name] = e.run
		}
	}
	return runs
}
