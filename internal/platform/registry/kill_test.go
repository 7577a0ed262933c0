// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"diwan.dev/diwan/internal/testing/chance"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// serveEnv makes the test binary serve the registry in the directory that it
// names, until its standard input ends.
const serveEnv = "DIWAN_TEST_SERVE_REGISTRY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		if err := serveProcess(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

func serveProcess(dir string) error {
	r, err := Open(Config{Dir: dir, Authorize: TokenPolicy(testToken, true), Log: func(_ *http.Request, err error) { fmt.Fprintln(os.Stderr, err) }})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println(listener.Addr())
	return errors.Join(r.Serve(ctx, listener), r.Close())
}

// A child is this test binary as a server of a registry.
type child struct {
	cmd     *exec.Cmd
	address string
}

func startChild(t testing.TB, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return &child{cmd, strings.TrimSpace(line)}
}

// A victim is a server that is killed again and again, and what its clients
// know of it.
type victim struct {
	mu      sync.Mutex
	changed *sync.Cond
	address string // empty while there is none
	fuse    atomic.Int64
	burnt   chan struct{}
}

// current waits for a server.
func (v *victim) current() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.address == "" {
		v.changed.Wait()
	}
	return v.address
}

func (v *victim) set(address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.address = address
	v.changed.Broadcast()
}

// burn shortens the fuse by what a client has sent. At its end the server is killed.
func (v *victim) burn(n int) {
	if left := v.fuse.Add(-int64(n)); left <= 0 && left+int64(n) > 0 {
		close(v.burnt)
	}
}

// RoundTrip sends a request and burns the fuse with it: when the server dies is
// so spread over all that clients do.
func (v *victim) RoundTrip(req *http.Request) (*http.Response, error) {
	v.burn(2048)
	if req.Body != nil {
		req = req.Clone(req.Context())
		req.Body = &burningBody{req.Body, v}
	}
	return http.DefaultTransport.RoundTrip(req)
}

type burningBody struct {
	io.ReadCloser
	v *victim
}

func (b *burningBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 16<<10)])
	b.v.burn(n)
	return n, err
}

// TestKill kills the server at random moments while clients push. What was
// acknowledged is whole afterwards, nothing half-written has a name, and an
// upload goes on where it was.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := &victim{burnt: make(chan struct{})}
	v.changed = sync.NewCond(&v.mu)
	rng := chance.New(t)
	seed := rng.Uint64()

	var acknowledged sync.Map // tag → digest
	var finished atomic.Bool
	var clients sync.WaitGroup
	for i := range 3 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() { pushImages(t, v, rng, i, &finished, &acknowledged) })
	}
	resumed := 0
	clients.Go(func() { resumed = pushResuming(t, v, rand.New(rand.NewPCG(seed, 99)), &finished) })

	const kills = 12
	for i := range kills + 1 {
		v.fuse.Store(1<<16 + rng.Int64N(4<<20))
		if i == kills {
			finished.Store(true) // the last server lives
			v.fuse.Store(1 << 62)
		}
		server := startChild(t, dir)
		v.set(server.address)
		if i == kills {
			break
		}
		<-v.burnt
		v.burnt = make(chan struct{})
		v.set("")
		if err := server.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = server.cmd.Wait()
	}
	clients.Wait()
	if resumed == 0 {
		t.Error("no upload was resumed")
	}

	count := 0
	acknowledged.Range(func(tag, digest any) bool {
		count++
		image, err := remote.Image(must(name.ParseReference(v.current() + "/" + tag.(string))))
		if err == nil && must(image.Digest()) != digest {
			err = fmt.Errorf("it is %s, not %s", must(image.Digest()), digest)
		}
		if err == nil {
			err = validate.Image(image)
		}
		if err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		return true
	})
	t.Logf("%d images were acknowledged and the upload resumed %d times over %d kills", count, resumed, kills)
	if count == 0 {
		t.Error("nothing was acknowledged")
	}
	verifyContent(t, dir)
}

// pushImages pushes image after image, each until it is acknowledged.
func pushImages(t *testing.T, v *victim, rng *rand.Rand, client int, finished *atomic.Bool, acknowledged *sync.Map) {
	for i := 0; !finished.Load(); i++ {
		image, err := random.Image(1<<10+rng.Int64N(256<<10), 1+rng.Int64N(3), random.WithSource(newSource(rng)))
		if err != nil {
			t.Error(err)
			return
		}
		tag := fmt.Sprintf("client-%d:%d", client, i)
		for {
			ref := must(name.ParseReference(v.current() + "/" + tag))
			err := remote.Write(ref, image, basic, remote.WithTransport(v), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
			if err == nil {
				break
			}
		}
		acknowledged.Store(tag, v1.Hash(must(image.Digest())))
	}
}

// newSource adapts the seeded random numbers to what ggcr wants.
func newSource(rng *rand.Rand) *source { return &source{rng} }

type source struct{ *rand.Rand }

func (s *source) Int63() int64 { return s.Int64() }
func (s *source) Seed(int64)   {}

// pushResuming pushes large blobs in chunks. It returns how often an upload
// went on after a kill.
func pushResuming(t *testing.T, v *victim, rng *rand.Rand, finished *atomic.Bool) (resumed int) {
	client := &http.Client{Transport: v}
	send := func(method, location string, chunk []byte, at int) (*http.Response, error) {
		req := must(http.NewRequest(method, "http://"+v.current()+location, bytes.NewReader(chunk)))
		req.SetBasicAuth("anyone", testToken)
		if chunk != nil {
			req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", at, at+len(chunk)-1))
		}
		res, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return res, err
	}
	for !finished.Load() {
		data := make([]byte, 3<<20)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		location, at, acked := "", 0, 0
		for at < len(data) {
			if location == "" {
				res, err := send("POST", "/v2/resumed/blobs/uploads/", nil, 0)
				if err != nil || res.StatusCode != http.StatusAccepted {
					continue
				}
				location = res.Header.Get("Location")
			}
			chunk := data[at:min(at+100_000, len(data))]
			res, err := send("PATCH", location, chunk, at)
			if err == nil && res.StatusCode == http.StatusAccepted {
				at += len(chunk)
				acked = at
				continue
			}
			// Killed: ask the next server where to go on.
			for {
				if res, err = send("GET", location, nil, 0); err == nil {
					break
				}
			}
			if res.StatusCode != http.StatusNoContent {
				t.Errorf("an upload of which %d bytes were acknowledged is lost: %s", acked, res.Status)
				return resumed
			}
			_, last, _ := strings.Cut(res.Header.Get("Range"), "-")
			if at = must(strconv.Atoi(last)) + 1; at == 1 {
				at = 0
			}
			if at < acked {
				t.Errorf("%d bytes of an upload are left, %d were acknowledged", at, acked)
				return resumed
			}
			if at > 0 {
				resumed++
			}
		}
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		for {
			res, err := send("PUT", location+"?digest="+digest, nil, 0)
			if err == nil && res.StatusCode == http.StatusCreated {
				break
			}
			// The answer may have been lost: then the upload has ended, well.
			if err == nil {
				if head, err := send("HEAD", "/v2/resumed/blobs/"+digest, nil, 0); err == nil {
					if head.StatusCode != http.StatusOK {
						t.Errorf("a resumed upload failed: %s, and its blob is not there", res.Status)
					}
					break
				}
			}
		}
	}
	return resumed
}

// verifyContent checks that all content has the digest that it is named by, and
// that each link leads to content.
func verifyContent(t *testing.T, dir string) {
	t.Helper()
	root := os.DirFS(dir)
	err := fs.WalkDir(root, blobsDir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, file)
		algorithm := path.Base(path.Dir(file))
		if want := digestOf(algorithm, data).hex(); want != entry.Name() {
			t.Errorf("%s has the digest %s", file, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = fs.WalkDir(root, repositoriesDir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch kind := path.Base(path.Dir(path.Dir(file))); kind {
		case "_blobs", "_manifests":
			_, err = fs.Stat(root, path.Join(blobsDir, path.Base(path.Dir(file)), entry.Name()))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
