// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
)

// maxResident bounds the memory of a server, in MiB, whatever the size of a
// blob: what the test binary needs at rest, twice over.
const maxResident = 64

// TestMemory pushes and pulls a blob of 512 MiB.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak of a process's memory is read from /proc")
	}
	t.Parallel()
	const size = 512 << 20
	server := startChild(t, t.TempDir())
	content := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	hash := sha256.New()
	must(io.Copy(hash, content()))
	digest := fmt.Sprintf("sha256:%x", hash.Sum(nil))

	send := func(method, target string, body io.Reader) *http.Response {
		t.Helper()
		req := must(http.NewRequestWithContext(t.Context(), method, "http://"+server.address+target, body))
		req.SetBasicAuth("anyone", testToken)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	at := send("POST", "/v2/large/blobs/uploads/", nil).Header.Get("Location")
	if res := send("PATCH", at, content()); res.StatusCode != http.StatusAccepted {
		t.Fatal(res.Status)
	}
	if res := send("PUT", at+"?digest="+digest, nil); res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	hash.Reset()
	must(io.Copy(hash, send("GET", "/v2/large/blobs/"+digest, nil).Body))
	if got := fmt.Sprintf("sha256:%x", hash.Sum(nil)); got != digest {
		t.Errorf("pulled %s, pushed %s", got, digest)
	}

	status := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", server.cmd.Process.Pid)))
	peak := must(strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)[1]))) >> 10
	t.Logf("the server's memory had a peak of %d MiB", peak)
	if peak > maxResident {
		t.Errorf("the server had %d MiB in memory, more than %d", peak, maxResident)
	}
}
