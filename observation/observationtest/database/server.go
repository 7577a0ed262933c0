// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startTime bounds how long a server may take to accept connections.
const startTime = time.Minute

// Kind is a kind of database server.
type Kind struct {
	// Name is that of the server.
	Name string
	// hint says what to install.
	hint string
	// programs are looked for in PATH and in dirs, which may be patterns.
	programs, dirs []string
	// prepare makes the data directory, serve runs the server. They get the
	// programs' paths, and say what to run.
	prepare func(programs []string, dir string) []string
	serve   func(programs []string, dir string, port int) []string
	// quick are arguments of a server that does not wait for the disk.
	quick []string
	// url is that of the server's first database.
	url func(port int) string
}

// Missing returns which programs of a kind of server are not installed.
type Missing struct{ text string }

// Error implements error.
func (m *Missing) Error() string { return m.text }

// Server is a server that runs.
type Server struct {
	kind     *Kind
	programs []string
	dir      string
	port     int
	options  []string
	lifeline io.Closer       // the server is killed when it closes
	ended    <-chan struct{} // closed when the server has ended
}

// Start makes an empty server and starts it. The error is a [*Missing] where
// it is not installed.
func (k *Kind) Start(ctx context.Context) (*Server, error) { return k.start(ctx, k.quick) }

func (k *Kind) start(ctx context.Context, options []string) (*Server, error) {
	s := &Server{kind: k, options: options}
	for _, program := range k.programs {
		path, err := find(program, k.dirs)
		if err != nil {
			return nil, &Missing{fmt.Sprintf("%s is not installed: %v; %s", k.Name, err, k.hint)}
		}
		s.programs = append(s.programs, path)
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "diwan-database-"); err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// find looks for a program in PATH, and then in the newest of some directories.
func find(program string, dirs []string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range dirs {
		matches, _ := filepath.Glob(filepath.Join(dir, program))
		if err != nil && len(matches) > 0 {
			path, err = matches[len(matches)-1], nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("there is no program %s", program)
	}
	return filepath.EvalSymlinks(path)
}

func (s *Server) create(ctx context.Context) error {
	if err := giveAway(s.dir); err != nil {
		return err
	}
	args := s.kind.prepare(s.programs, s.data())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	s.confine(cmd)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make a database of %s: %w\n%s", s.kind.Name, err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
}

// confine lets a program of the server work in the server's directory as the
// server's user. Temporary files are there too: a MariaDB that starts removes
// those of every MariaDB whose directory it shares, which then crash.
func (s *Server) confine(cmd *exec.Cmd) {
	cmd.Dir, cmd.SysProcAttr = s.dir, unprivileged()
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir)
}

func (s *Server) output() string { return filepath.Join(s.dir, "output") }

// said returns the server's output since its last start.
func (s *Server) said() []byte {
	text, _ := os.ReadFile(s.output())
	return text
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL is that of the server's first database, which is empty. Its user may do
// anything.
func (s *Server) URL() string { return s.kind.url(s.port) }

// Address is the host and port that the server listens on.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Start starts the server again after a Kill or Stop, with the same data on the
// same port, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	deadline := time.Now().Add(startTime)
	for {
		if err := s.launch(); err != nil {
			return err
		}
		err := s.await(ctx, deadline)
		if err == nil {
			return nil
		}
		// What a killed server left may be in the way for a moment.
		s.Kill()
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s does not start: %w\n%s", s.kind.Name, err, s.said())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// lifeline is a shell program that runs its arguments and kills them when its
// standard input ends: so a server dies with the test, however that dies. Once
// the server has ended, nothing is killed: its number may be another's.
const lifeline = `"$@" </dev/null & server=$!; exec 3<&0; (cat <&3 >/dev/null; kill -9 $server 2>/dev/null) & killer=$!; exec 3<&-; wait $server; kill $killer`

func (s *Server) launch() error {
	output, err := os.Create(s.output())
	if err != nil {
		return err
	}
	defer output.Close()
	args := append([]string{"-c", lifeline, "sh"}, s.kind.serve(s.programs, s.data(), s.port)...)
	cmd := exec.Command("/bin/sh", append(args, s.options...)...)
	s.confine(cmd)
	cmd.Stdout, cmd.Stderr = output, output
	if s.lifeline, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() { // Kill waits for it
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context, deadline time.Time) error {
	for {
		err := s.ping(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ping reports whether the server answers.
func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	db, err := open(s.URL())
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

// Kill ends the server as SIGKILL does.
func (s *Server) Kill() {
	_ = s.lifeline.Close()
	<-s.ended
}

// Close stops the server and removes its data. If the server had exited by
// itself, it returns an error with its output.
func (s *Server) Close() error {
	var err error
	select {
	case <-s.ended:
		err = fmt.Errorf("%s had ended by itself; it said:\n%s", s.kind.Name, s.said())
	default:
	}
	s.Kill()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// environment is the variable with the server's address for child processes.
func (k *Kind) environment() string { return "DIWAN_TEST_" + strings.ToUpper(k.Name) }
