// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/platform/node/containerlog"
)

func TestMain(m *testing.M) {
	// The SPDY library waits on its own for the end of closed connections.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// authority is a certificate authority of one test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	pair := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue makes a certificate, signed by itself for an authority without one.
func (a *authority) issue(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) client(name string, usage x509.ExtKeyUsage) tls.Certificate {
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// machineBackend is a node whose only Pod "pod" has a container "main" in this process's place.
type machineBackend struct {
	log   LogFile
	mu    sync.Mutex
	ended int // exec sessions whose context ended
}

func (b *machineBackend) Pods() []*corev1.Pod {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}}
}

func (b *machineBackend) Log(_ context.Context, _, pod, container string, previous bool) (LogFile, error) {
	if pod != "pod" || container != "main" || previous {
		return LogFile{}, fmt.Errorf("container %s of Pod %s: %w", container, pod, ErrNotFound)
	}
	return b.log, nil
}

func (b *machineBackend) Exec(ctx context.Context, _, pod, container string, command []string, s Streams) error {
	if pod != "pod" || container != "main" {
		return fmt.Errorf("container %s of Pod %s: %w", container, pod, ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		b.mu.Lock()
		b.ended++
		b.mu.Unlock()
	}
	return err
}

func (b *machineBackend) Attach(_ context.Context, _, _, _ string, s Streams) error {
	_, err := io.WriteString(s.Stdout, "attached\n")
	if err == nil && s.Stdin != nil {
		_, err = io.Copy(s.Stdout, s.Stdin)
	}
	return err
}

func (b *machineBackend) DialPort(ctx context.Context, _, _ string, port uint16) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func (b *machineBackend) Usage(context.Context) ([]Usage, error) {
	return []Usage{
		{Namespace: "ns", Pod: "pod", PodUID: "u", Container: "side", CPU: time.Second, Memory: 20, Started: time.Unix(100, 0)},
		{Namespace: "ns", Pod: "pod", PodUID: "u", Container: "main", CPU: 2 * time.Second, Memory: 10, Started: time.Unix(100, 0)},
	}, nil
}

// node is a served backend and its good client.
type node struct {
	*machineBackend
	authority *authority
	url       string
	client    *http.Client
	good      tls.Certificate
	logs      *containerlog.Writer
	end       chan struct{} // ends the container
	stop      func()
}

func serve(t *testing.T) *node {
	t.Helper()
	a := newAuthority(t)
	path := filepath.Join(t.TempDir(), "0.log")
	w, err := containerlog.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	n := &node{authority: a, logs: w, end: make(chan struct{})}
	n.machineBackend = &machineBackend{log: LogFile{Path: path, Ended: n.end}}
	cfg := Default()
	cfg.NodeName, cfg.Backend, cfg.Authority, cfg.Clients = "diwan", n.machineBackend, a.pool(), []string{"kube-apiserver"}
	cfg.Certificate = a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	n.url = "https://" + l.Addr().String()
	n.good = a.client("kube-apiserver", x509.ExtKeyUsageClientAuth)
	n.client = n.with(t, n.good)
	return n
}

func (n *node) with(t *testing.T, certificates ...tls.Certificate) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.authority.pool(), Certificates: certificates}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// rest is the configuration of a client like kube-apiserver.
func (n *node) rest(t *testing.T) *rest.Config {
	t.Helper()
	key, err := x509.MarshalECPrivateKey(n.good.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return &rest.Config{Host: n.url, TLSClientConfig: rest.TLSClientConfig{
		CAData:   encode("CERTIFICATE", n.authority.cert.Raw),
		CertData: encode("CERTIFICATE", n.good.Certificate[0]),
		KeyData:  encode("EC PRIVATE KEY", key),
	}}
}

func (n *node) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := n.client.Get(n.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestOnlyTheAPIServerIsServed(t *testing.T) {
	t.Parallel()
	n := serve(t)
	stranger := newAuthority(t)
	tests := []struct {
		reason string
		client *http.Client
		want   int
	}{
		{"the API server", n.client, http.StatusOK},
		{"no certificate", n.with(t), http.StatusUnauthorized},
		{"another name", n.with(t, n.authority.client("mallory", x509.ExtKeyUsageClientAuth)), http.StatusUnauthorized},
		{"a server's certificate", n.with(t, n.authority.client("kube-apiserver", x509.ExtKeyUsageServerAuth)), http.StatusUnauthorized},
		{"another authority", n.with(t, stranger.client("kube-apiserver", x509.ExtKeyUsageClientAuth)), http.StatusUnauthorized},
	}
	for _, tt := range tests {
		for _, path := range []string{"/healthz", "/pods", "/containerLogs/ns/pod/main", "/exec/ns/pod/main?command=id&output=1", "/nowhere"} {
			want := tt.want
			if want == http.StatusOK && strings.HasPrefix(path, "/exec") {
				want = http.StatusBadRequest // it is no upgrade
			}
			if want == http.StatusOK && path == "/nowhere" {
				want = http.StatusNotFound
			}
			resp, err := tt.client.Get(n.url + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: GET %s gives %d, want %d", tt.reason, path, resp.StatusCode, want)
			}
		}
	}
}

func TestPodsAndStatistics(t *testing.T) {
	t.Parallel()
	n := serve(t)
	for path, wants := range map[string][]string{
		"/healthz":       {"ok"},
		"/pods":          {`"kind":"PodList"`, `"name":"pod"`},
		"/stats/summary": {`"nodeName":"diwan"`, `"name":"main"`, `"usageCoreNanoSeconds":3000000000`, `"workingSetBytes":30`},
		"/metrics/resource": {
			`container_cpu_usage_seconds_total{container="main",namespace="ns",pod="pod"} 2`,
			`container_memory_working_set_bytes{container="side",namespace="ns",pod="pod"} 20`,
			"node_cpu_usage_seconds_total", "resource_scrape_error 0",
		},
	} {
		code, body := n.get(t, path)
		for _, want := range wants {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: got %d %s, want it to contain %s", path, code, body, want)
			}
		}
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	n := serve(t)
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var size int64
	for i := range 3 {
		k, err := fmt.Fprintf(n.logs.File(), "line %d\n", i)
		if err != nil {
			t.Fatal(err)
		}
		size += int64(k)
		if err := n.logs.Mark(size, epoch.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		query string
		code  int
		want  string
	}{
		{"", 200, "line 0\nline 1\nline 2\n"},
		{"?tailLines=1", 200, "line 2\n"},
		{"?tailLines=0", 200, ""},
		{"?limitBytes=3", 200, "lin"},
		{"?sinceTime=2026-01-02T03:05:00Z&stream=All", 200, "line 1\nline 2\n"},
		{"?sinceSeconds=1", 200, ""},
		{"?tailLines=1&timestamps=true", 200, "2026-01-02T03:06:05.000000000Z line 2\n"},
		{"?tailLines=-1", 422, "tailLines: want an integer from 0 on, got \"-1\"\n"},
		{"?limitBytes=0", 422, "limitBytes: want an integer from 1 on, got \"0\"\n"},
		{"?sinceSeconds=1&sinceTime=2026-01-02T03:05:00Z", 422, "sinceSeconds and sinceTime: at most one may be given\n"},
		{"?follow=maybe", 422, "follow: want true or false, got \"maybe\"\n"},
		{"?stream=Stderr", 422, "stream: this node keeps standard output and error in one log, so only All can be shown\n"},
		{"?previous=true", 404, "container main of Pod pod: not found\n"},
	}
	for _, tt := range tests {
		if code, body := n.get(t, "/containerLogs/ns/pod/main"+tt.query); code != tt.code || body != tt.want {
			t.Errorf("%s: got %d %q, want %d %q", tt.query, code, body, tt.code, tt.want)
		}
	}
}

func TestFollowedLogEndsWithTheContainer(t *testing.T) {
	t.Parallel()
	n := serve(t)
	resp, err := n.client.Get(n.url + "/containerLogs/ns/pod/main?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Fprint(n.logs.File(), "first\n")
	first := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	fmt.Fprint(n.logs.File(), "last")
	close(n.end)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "last" {
		t.Errorf("got %q, %v, want the last bytes and the end", rest, err)
	}
}

func TestStopEndsFollowers(t *testing.T) {
	t.Parallel()
	n := serve(t)
	resp, err := n.client.Get(n.url + "/containerLogs/ns/pod/main?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n.stop()
	if _, err := io.Copy(&bytes.Buffer{}, resp.Body); err == nil {
		t.Error("a follower that was cut off believes that it saw the end")
	}
}
