// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// watched runs a component on an API of its own until the test ends.
func watched(t *testing.T, start func(informers.SharedInformerFactory) (run func(context.Context))) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	run := start(factory)
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; factory.Shutdown() })
	return client
}

func newLoopbackOf(t *testing.T) *loopback {
	t.Helper()
	l := newLoopback(newPlanOf(t))
	if !l.many {
		t.Skip("this system answers on 127.0.0.1 alone")
	}
	return l
}

// greeter listens on an address and says its name to each caller.
func greeter(t *testing.T, address, name string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			// The greeting follows what the caller says, to its end.
			heard, _ := io.ReadAll(c)
			fmt.Fprintf(c, "%s%s", heard, name)
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// say sends text to an address and returns the answer.
func say(address, text string) (string, error) {
	c, err := net.DialTimeout("tcp4", address, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func TestProxyOnNodePorts(t *testing.T) {
	t.Parallel()
	n := newLoopbackOf(t)
	client := watched(t, func(f informers.SharedInformerFactory) func(context.Context) {
		p, err := NewProxy(f, n, netip.AddrPort{}, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		return p.Run
	})
	a, err := n.Acquire(t.Context(), "a", false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.Acquire(t.Context(), "b", false)
	if err != nil {
		t.Fatal(err)
	}
	target := greeter(t, netip.AddrPortFrom(a.Bind, 0).String(), " a").Port()
	greeter(t, netip.AddrPortFrom(b.Bind, target).String(), " b")
	node := freePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", node)
	if _, err := client.CoreV1().Services("ml").Create(t.Context(), service("ml", "web", "10.200.0.7", corev1.ServicePort{Port: 80, NodePort: node, Protocol: corev1.ProtocolTCP}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := say(address, ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a Service without Pods: got %v, want a refusal", err)
	}
	ends := slice("ml", "web", int32(target), at(a.IP.String(), "", true), at(b.IP.String(), "", true))
	if _, err := client.DiscoveryV1().EndpointSlices("ml").Create(t.Context(), ends, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	eventually(t, "both Pods answer at the node port", func() bool {
		answer, err := say(address, strings.Repeat("x", 100000))
		if err == nil && len(answer) != 100002 {
			t.Errorf("got %d bytes back", len(answer))
		}
		if err == nil {
			seen[answer[len(answer)-1:]] = true
		}
		return seen["a"] && seen["b"]
	})
	ends.Endpoints = ends.Endpoints[1:]
	if _, err := client.DiscoveryV1().EndpointSlices("ml").Update(t.Context(), ends, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only Pod b answers", func() bool {
		for range 4 {
			if answer, err := say(address, ""); err != nil || answer != " b" {
				return false
			}
		}
		return true
	})
	if err := client.CoreV1().Services("ml").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the port is closed", func() bool {
		_, err := say(address, "")
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

func TestProxyOfUDP(t *testing.T) {
	t.Parallel()
	n := newLoopbackOf(t)
	client := watched(t, func(f informers.SharedInformerFactory) func(context.Context) {
		p, err := NewProxy(f, n, netip.AddrPort{}, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		return p.Run
	})
	s, err := n.Acquire(t.Context(), "a", false)
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.Bind, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort([]byte(strings.ToUpper(string(buf[:n]))), from)
		}
	}()
	node := freePort(t)
	svc := service("ml", "echo", "10.200.0.8", corev1.ServicePort{Port: 53, NodePort: node, Protocol: corev1.ProtocolUDP})
	if _, err := client.CoreV1().Services("ml").Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	port := int32(server.LocalAddr().(*net.UDPAddr).Port)
	if _, err := client.DiscoveryV1().EndpointSlices("ml").Create(t.Context(), slice("ml", "echo", port, at(s.IP.String(), "", true)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", node))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "the packet comes back", func() bool {
		buf := make([]byte, 100)
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		conn.Write([]byte("hello"))
		n, err := conn.Read(buf)
		return err == nil && string(buf[:n]) == "HELLO"
	})
}

func TestNamesStayFresh(t *testing.T) {
	t.Parallel()
	n := newLoopbackOf(t)
	var names *Names
	client := watched(t, func(f informers.SharedInformerFactory) func(context.Context) {
		var err error
		if names, err = NewNames(f, n, logr.Discard()); err != nil {
			t.Fatal(err)
		}
		return names.Run
	})
	path := filepath.Join(t.TempDir(), "hosts")
	pod := podNamed("ml", "p")
	pod.UID = "u"
	if err := names.Add(pod, n.host, path); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	contains := func(text string) func() bool {
		return func() bool {
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(got), text)
		}
	}
	if !contains(" p\n")() {
		t.Error("the Pod does not know its own name")
	}
	workers := service("ml", "workers", corev1.ClusterIPNone, corev1.ServicePort{Port: 1})
	if _, err := client.CoreV1().Services("ml").Create(t.Context(), workers, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ends := slice("ml", "workers", 1, at("10.128.0.2", "w-0", true))
	if _, err := client.DiscoveryV1().EndpointSlices("ml").Create(t.Context(), ends, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worker has a name", contains(" w-0.workers\n"))
	if err := client.DiscoveryV1().EndpointSlices("ml").Delete(t.Context(), ends.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worker's name is gone", func() bool { return !contains("w-0.workers")() })
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the hosts file was replaced; mounts of it are stale")
	}
	names.Remove("u")
	names.Remove("unknown")
}
