// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is a `diwan up` process on a home of its own.
type server struct {
	home   string
	cmd    *exec.Cmd
	config *rest.Config
	client dynamic.Interface
	ready  time.Duration
}

// newServer runs `diwan up` with arguments on a new home. end stops it, if it still runs, and
// removes the home.
func newServer(ctx context.Context, arguments ...string) (s *server, end func(), err error) {
	home, err := os.MkdirTemp("", "diwan-bench-")
	if err != nil {
		return nil, nil, err
	}
	if s, err = startServer(ctx, home, arguments...); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(home))
	}
	return s, func() {
		s.stop()
		os.RemoveAll(home)
	}, nil
}

// startServer runs `diwan up` on home and returns when it says that it is ready.
func startServer(ctx context.Context, home string, arguments ...string) (*server, error) {
	arguments = slices.Concat([]string{"up", "--home", home}, arguments, strings.Fields(os.Getenv("DIWAN_UP")))
	s := &server{home: home, cmd: exec.CommandContext(ctx, cmp.Or(os.Getenv("DIWAN"), "bin/diwan"), arguments...)}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = os.Stderr
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready") {
			s.ready = time.Since(began)
			break
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if s.ready == 0 {
		return nil, fmt.Errorf("diwan up ended before it was ready: %w", s.cmd.Wait())
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", home+"/kubeconfig"); err != nil {
		return nil, err
	}
	s.config.QPS = -1
	s.client, err = dynamic.NewForConfig(s.config)
	return s, err
}

// stop ends the server and returns how long that took.
func (s *server) stop() time.Duration {
	began := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	return time.Since(began)
}

// memory is the resident memory of the server in MB: by VmRSS all of it, by
// RssFile that of files that it maps.
func (s *server) memory(which string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, which+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// cpu is the CPU time that the server has used.
func (s *server) cpu() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond
	return time.Duration(user+system) * tick
}
