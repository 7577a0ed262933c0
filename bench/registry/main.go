// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	other "github.com/google/go-containerregistry/pkg/registry"

	"diwan.dev/diwan/internal/platform/registry"
)

const (
	own  = "diwan"
	ggcr = "go-containerregistry"
)

func main() {
	size := flag.Int64("size", 500, "size of the blob in MB")
	runs := flag.Int("runs", 5, "how often each registry is measured")
	dir := flag.String("dir", os.TempDir(), "where the registries have their directories")
	serving := flag.String("serve", "", "serve a registry in -dir; for this program's own use")
	flag.Parse()
	var err error
	if *serving != "" {
		err = serve(*serving, *dir)
	} else {
		err = compare(*size*1_000_000, *runs, *dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

// serve serves a registry until standard input ends.
func serve(which, dir string) error {
	var handler http.Handler
	switch which {
	case own:
		opened, err := registry.Open(registry.Config{
			Dir:       dir,
			Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil },
		})
		if err != nil {
			return err
		}
		defer opened.Close()
		handler = opened.Handler()
	default:
		handler = other.New(other.WithBlobHandler(other.NewDiskBlobHandler(dir)), other.Logger(log.New(io.Discard, "", 0)))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	err = server.Close()
	<-served
	return err
}

// cost is what one run of a registry took.
type cost struct {
	push, pull time.Duration
	cpu        time.Duration // of the server, in user and kernel mode
	memory     int64         // peak of the server's resident memory in bytes
}

func compare(size int64, runs int, dir string) error {
	digest, err := digestOf(data(size))
	if err != nil {
		return err
	}
	costs := map[string][]cost{}
	var floor, synced []time.Duration
	for range runs {
		for _, which := range []string{own, ggcr} {
			c, err := measure(which, dir, size, digest)
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", which, err)
			}
			costs[which] = append(costs[which], c)
		}
		for _, sync := range []bool{false, true} {
			took, err := writeFile(dir, size, sync)
			if err != nil {
				return err
			}
			if sync {
				synced = append(synced, took)
			} else {
				floor = append(floor, took)
			}
		}
	}
	fmt.Printf("One blob of %d MB, %d runs each, in turns; median (least).\n\n", size/1_000_000, runs)
	fmt.Println("| | push, s | pull, s | server's processor, s | server's memory, MB |")
	fmt.Println("|---|---|---|---|---|")
	for _, which := range []string{own, ggcr} {
		fmt.Printf("| %s | %s | %s | %s | %d |\n", which,
			seconds(costs[which], func(c cost) time.Duration { return c.push }),
			seconds(costs[which], func(c cost) time.Duration { return c.pull }),
			seconds(costs[which], func(c cost) time.Duration { return c.cpu }),
			slices.MaxFunc(costs[which], func(a, b cost) int { return int(a.memory - b.memory) }).memory/1_000_000)
	}
	same := func(d time.Duration) time.Duration { return d }
	fmt.Printf("| a file | %s | | | |\n| a file, synced | %s | | | |\n", seconds(floor, same), seconds(synced, same))
	return nil
}

func seconds[T any](all []T, of func(T) time.Duration) string {
	var times []time.Duration
	for _, one := range all {
		times = append(times, of(one))
	}
	slices.Sort(times)
	return fmt.Sprintf("%.2f (%.2f)", times[len(times)/2].Seconds(), times[0].Seconds())
}

// data returns a stream of as many bytes, the same each time. A short random
// block is repeated, so that making the data costs next to nothing.
func data(size int64) io.Reader {
	block := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(block) // cannot fail
	return io.LimitReader(&repeated{block: block}, size)
}

type repeated struct {
	block []byte
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	return n, nil
}

func digestOf(content io.Reader) (string, error) {
	hash := sha256.New()
	_, err := io.Copy(hash, content)
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), err
}

func writeFile(dir string, size int64, sync bool) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "floor-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	start := time.Now()
	_, err = io.Copy(struct{ io.Writer }{file}, data(size))
	if sync && err == nil {
		err = file.Sync()
	}
	took := time.Since(start)
	return took, errors.Join(err, file.Close())
}

// measure starts a registry and has a client push to it and pull from it.
func measure(which, parent string, size int64, digest string) (c cost, err error) {
	dir, err := os.MkdirTemp(parent, "registry-*")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	cmd := exec.Command(self, "-serve", which, "-dir", filepath.Clean(dir))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return cost{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return cost{}, err
	}
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		c, err = exchange("http://"+strings.TrimSpace(line), size, digest)
	}
	stdin.Close()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return cost{}, err
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.memory = int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
	return c, nil
}

func exchange(base string, size int64, digest string) (cost, error) {
	start := time.Now()
	location, err := send("POST", base+"/v2/bench/blobs/uploads/", "", nil, http.StatusAccepted)
	if err != nil {
		return cost{}, err
	}
	if location, err = send("PATCH", absolute(base, location), "", data(size), http.StatusAccepted); err != nil {
		return cost{}, err
	}
	if _, err = send("PUT", absolute(base, location)+"?digest="+digest, "", nil, http.StatusCreated); err != nil {
		return cost{}, err
	}
	manifest := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.example","digest":%q,"size":%d},"layers":[]}`, digest, size)
	if _, err = send("PUT", base+"/v2/bench/manifests/latest", "application/vnd.oci.image.manifest.v1+json", bytes.NewReader([]byte(manifest)), http.StatusCreated); err != nil {
		return cost{}, err
	}
	pushed := time.Now()
	res, err := http.Get(base + "/v2/bench/blobs/" + digest)
	if err != nil {
		return cost{}, err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && n != size {
		err = fmt.Errorf("pulled %d bytes: %s", n, res.Status)
	}
	return cost{push: pushed.Sub(start), pull: time.Since(pushed)}, err
}

func absolute(base, location string) string {
	if strings.HasPrefix(location, "/") {
		return base + location
	}
	return location
}

// send sends a request and returns the location that the answer names.
func send(method, target, contentType string, body io.Reader, want int) (string, error) {
	req, err := http.NewRequest(method, target, body)
	if err != nil {
		return "", err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %.200s", method, target, res.Status, text)
	}
	return res.Header.Get("Location"), err
}
