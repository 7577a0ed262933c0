// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// settle is how long changes are gathered before they take effect: the slices
// of a Service with many Pods change several times in a row.
const settle = 20 * time.Millisecond

// Names keeps the hosts files of Pods up to date. A file is rewritten only when a
// Service or an EndpointSlice changes its content, in place, so that it stays the
// same file where it is mounted.
type Names struct {
	network  Network
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	changed  chan struct{}
	log      logr.Logger
	host     []byte

	mu    sync.Mutex
	files map[string]*hostsFile // by Pod UID
}

type hostsFile struct {
	pod  *corev1.Pod
	bind netip.Addr
	path string
	text []byte // what is in the file
}

// NewNames watches through the factory, which the caller starts afterwards.
func NewNames(factory informers.SharedInformerFactory, n Network, log logr.Logger) (*Names, error) {
	changed, err := changes(factory)
	if err != nil {
		return nil, err
	}
	host, err := os.ReadFile("/etc/hosts")
	if err != nil {
		log.Info("Pods cannot resolve the names in this machine's hosts file", "reason", err.Error())
	}
	return &Names{
		network:  n,
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
		changed:  changed,
		log:      log,
		host:     host,
		files:    map[string]*hostsFile{},
	}, nil
}

// changes signals, at most once until it is read, that a Service or an
// EndpointSlice changed.
func changes(factory informers.SharedInformerFactory) (chan struct{}, error) {
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(_, _ any) { signal() },
		DeleteFunc: func(any) { signal() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(),
		factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("cannot watch Services: %w", err)
		}
	}
	return changed, nil
}

// onChange calls do after each group of changes until ctx is done.
func onChange(ctx context.Context, changed <-chan struct{}, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
		select {
		case <-changed: // it came while we waited, and is dealt with now
		default:
		}
		do()
	}
}

// Run keeps the files up to date until ctx is done.
func (n *Names) Run(ctx context.Context) { onChange(ctx, n.changed, n.refresh) }

// Add writes the hosts file of a Pod, which is reachable at bind, and keeps it up
// to date until Remove. An existing file is rewritten in place.
func (n *Names) Add(pod *corev1.Pod, bind netip.Addr, path string) error {
	f := &hostsFile{pod: pod, bind: bind, path: path}
	n.mu.Lock()
	defer n.mu.Unlock()
	directory, err := n.directory()
	if err != nil {
		return err
	}
	if err := f.write(Hosts(pod, bind, directory, n.host)); err != nil {
		return err
	}
	n.files[string(pod.UID)] = f
	return nil
}

// Remove forgets the Pod's file and leaves it on disk. An unknown Pod is no error.
func (n *Names) Remove(podUID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.files, podUID)
}

// directory reads the watched objects.
func (n *Names) directory() (Directory, error) {
	services, err := n.services.List(labels.Everything())
	if err != nil {
		return Directory{}, fmt.Errorf("cannot list Services: %w", err)
	}
	slices, err := n.slices.List(labels.Everything())
	if err != nil {
		return Directory{}, fmt.Errorf("cannot list EndpointSlices: %w", err)
	}
	return Directory{Services: services, Slices: slices, ClusterIPs: n.network.ClusterIPs(), Dialable: n.network.Dialable}, nil
}

// refresh renders each namespace that has Pods once and rewrites the files that differ.
func (n *Names) refresh() {
	n.mu.Lock()
	defer n.mu.Unlock()
	directory, err := n.directory()
	if err != nil {
		n.log.Error(err, "Names of Services are stale")
		return
	}
	shared := map[string][]byte{}
	for _, f := range n.files {
		part, ok := shared[f.pod.Namespace]
		if !ok {
			part = directory.render(f.pod.Namespace)
			shared[f.pod.Namespace] = part
		}
		if err := f.write(renderHosts(f.pod, f.bind, part, n.host)); err != nil {
			n.log.Error(err, "A Pod's hosts file is stale", "namespace", f.pod.Namespace, "pod", f.pod.Name)
		}
	}
}

// write replaces the file's text in place.
func (f *hostsFile) write(text []byte) error {
	if bytes.Equal(text, f.text) {
		return nil
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write hosts file: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteAt(text, 0); err != nil {
		return fmt.Errorf("cannot write hosts file: %w", err)
	}
	if err := file.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("cannot write hosts file: %w", err)
	}
	f.text = text
	return nil
}
