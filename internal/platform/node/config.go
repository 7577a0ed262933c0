// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/imagepull"
	"diwan.dev/diwan/internal/platform/node/network"
)

// Config configures a node. Start from DefaultConfig and set the required
// fields.
type Config struct {
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Dir is the node's state, an absolute path that one process uses at a time:
	// Dir/pods/<uid> and Dir/content. Required.
	Dir string
	// LogDir is the directory of the containers' logs:
	// <namespace>/<pod>/<container>/<attempt>.log, and in <container>.previous those
	// of the previous Pod with this name. They outlive the Pod. Required.
	LogDir string
	// Client speaks to the API server. It should not throttle itself, and speak
	// protobuf. Required.
	Client kubernetes.Interface
	// Network gives Pods addresses. The caller closes it after Run. Required.
	Network network.Network
	// Images finds the meaning of images. Required.
	Images image.Resolver
	// Observers decides which containers are observed. nil: none.
	Observers Observers
	// Decorators give containers what their manifests only ask for.
	Decorators []Decorator
	// Hosts keeps the hosts files of Pods. nil: containers see the host's.
	Hosts Hosts
	// Runtimes run containers, by handler: image.RuntimeProcess, and image.RuntimeImage where
	// this machine can. Default: processes.
	Runtimes map[string]container.Runtime
	// NoImages says why there is no runtime for images, with the remedy.
	NoImages error
	// Puller provides the images for image.RuntimeImage.
	Puller *imagepull.Puller
	// RuntimeClassHandler finds the handler of a RuntimeClass. Default: asks the
	// API server.
	RuntimeClassHandler func(ctx context.Context, class string) (string, error)

	// APIServer is the address of the API server as Pods reach it; it becomes
	// KUBERNETES_SERVICE_HOST and _PORT. Empty: the Service "kubernetes" says it.
	APIServer string
	// RootCA is the API server's authority, PEM. Set, it saves reading the
	// ConfigMap kube-root-ca.crt.
	RootCA []byte
	// Port is where this node's server listens (package server); 0 is none.
	Port int32
	// Self is the diwan binary, which acts as ssh and sshd in containers that mount
	// keys for them (package podssh), and keeps the input of those with stdin or
	// tty (package keeper). If empty, ssh is the machine's, and containers with
	// stdin or tty do not start.
	Self string
	// PassEnv names variables of this process that containers see unless they
	// set them; a trailing * stands for any ending. See DefaultConfig.
	PassEnv []string

	// CPUs is how many CPUs Pods may request. Default the machine's; if it is
	// more, Pods share them.
	CPUs int64
	// Memory is how many bytes Pods may ask for. 0, the default: the machine's, less
	// 100 MiB; Pods share them where it is more.
	Memory int64
	// MaxPods bounds the Pods on the node. Default max(110, 64 per core): 200
	// parallel trials fit on four cores.
	MaxPods int64
	// PIDs is how many processes and threads a container may have, where this process may
	// make cgroups; 0 is no limit. Default cgroup.DefaultPIDs().
	PIDs int64
	// StatusHold is how long the status Running may wait for a better one, so
	// that a Pod that ends within it costs one write. Default 40 ms.
	StatusHold time.Duration
	// StopGrace bounds the time that containers have to end when the node
	// stops. Default 10 s; a Pod's shorter grace counts.
	StopGrace time.Duration
	// LeaveRunning keeps containers running when the node stops; the next
	// node adopts them.
	LeaveRunning bool
	// StartParallel bounds how many containers are started at a time: beyond the
	// number of cores starts only delay each other. Default 2 per core, at least 4.
	StartParallel int
	// ReadInterval is how often a running container's output is read. Default 100 ms.
	ReadInterval time.Duration
	// KeepLog is how many of the newest bytes of a container's output are kept.
	// Default 50 MiB.
	KeepLog int64
	// LogAge and LogBytes bound the logs of Pods that are gone: older ones, and
	// the oldest ones beyond the sum, are removed. Defaults 14 days, 2 GiB.
	LogAge   time.Duration
	LogBytes int64
	// ImageAge and ImageBytes bound the images that no container needs: those that
	// were not used for longer, and the least recently used ones beyond the sum, are
	// removed every ImageCheck. Defaults 30 days, 50 GiB, 5 min.
	ImageAge   time.Duration
	ImageBytes int64
	ImageCheck time.Duration
	// DiskCheck is how often emptyDirs with a limit and the disk are measured. An
	// emptyDir whose measuring takes long is measured less often. Default 2 s.
	DiskCheck time.Duration
	// DiskFree is the share of the disk that must be free, else the node has
	// DiskPressure and takes no Pods. Default 0.02, and never more than 1 GiB.
	DiskFree float64
	// LeaseDuration is how long the node's lease lasts; it is renewed four times
	// as often. Default 40 s, kubelet's.
	LeaseDuration time.Duration
	// NormalEvents reports each step of a container (Created, Started, Killing)
	// as an event. Default false: only a Started event for containers that live
	// longer than a second, because an event costs as much as a status.
	NormalEvents bool
	// Log logs what the node does and what fails.
	Log logr.Logger
}

// Hosts keeps the hosts files of Pods.
type Hosts interface {
	// Add writes the hosts file of a Pod to path and keeps it up to date. The
	// Pod has its addresses in its status.
	Add(pod *corev1.Pod, bind netip.Addr, path string) error
	// Remove forgets the Pod's file; the file itself stays.
	Remove(podUID string)
}

// DefaultConfig is the configuration of a node on the state directory home.
func DefaultConfig(home string) Config {
	return Config{
		Dir:    filepath.Join(home, "node"),
		LogDir: filepath.Join(home, "logs"),
		PassEnv: []string{
			"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
			"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_*", "CUDA_*", "NVIDIA_*",
			"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		},
		CPUs:          int64(runtime.NumCPU()),
		MaxPods:       max(110, 64*int64(runtime.NumCPU())),
		PIDs:          cgroup.DefaultPIDs(),
		StatusHold:    40 * time.Millisecond,
		StopGrace:     10 * time.Second,
		StartParallel: max(4, 2*runtime.NumCPU()),
		ReadInterval:  100 * time.Millisecond,
		KeepLog:       50 << 20,
		LogAge:        14 * 24 * time.Hour,
		LogBytes:      2 << 30,
		ImageAge:      30 * 24 * time.Hour,
		ImageBytes:    50 << 30,
		ImageCheck:    5 * time.Minute,
		DiskCheck:     2 * time.Second,
		DiskFree:      0.02,
		LeaseDuration: 40 * time.Second,
		Log:           logr.Discard(),
	}
}

// check says what is missing.
func (c *Config) check() error {
	missing := func(field string) error { return fmt.Errorf("cannot create a node: Config.%s is required", field) }
	switch {
	case c.NodeName == "":
		return missing("NodeName")
	case !filepath.IsAbs(c.Dir):
		return errors.New("cannot create a node: Config.Dir must be an absolute path")
	case !filepath.IsAbs(c.LogDir):
		return errors.New("cannot create a node: Config.LogDir must be an absolute path")
	case c.Client == nil:
		return missing("Client")
	case c.Network == nil:
		return missing("Network")
	case c.Images == nil:
		return missing("Images")
	case c.Runtimes[image.RuntimeImage] != nil && c.Puller == nil:
		return missing("Puller")
	case c.StatusHold < 0 || c.ReadInterval <= 0 || c.DiskCheck <= 0 || c.ImageCheck <= 0 || c.LeaseDuration < time.Second:
		return errors.New("cannot create a node: a duration in the Config is out of range; start from DefaultConfig")
	case c.StartParallel < 1 || c.CPUs < 1 || c.Memory < 0 || c.MaxPods < 1 || c.PIDs < 0 || c.KeepLog < 1:
		return errors.New("cannot create a node: a limit in the Config is too small; start from DefaultConfig")
	}
	if c.APIServer != "" {
		if _, _, err := net.SplitHostPort(c.APIServer); err != nil {
			return fmt.Errorf("cannot create a node: Config.APIServer: %w", err)
		}
	}
	for _, dir := range []string{c.Dir, c.LogDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot create a node: %w", err)
		}
	}
	return nil
}
