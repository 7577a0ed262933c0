// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/version"
)

// machine is what this computer has.
type machine struct {
	memory int64 // bytes
	disk   int64 // bytes of the file system that holds the state
	gpus   []string
	info   corev1.NodeSystemInfo
}

// measure looks at the computer once.
func measure(dir string) machine {
	m := machine{memory: memoryBytes(), gpus: findGPUs()}
	m.disk, _ = diskSpace(dir)
	hostname, _ := os.Hostname()
	id := strings.TrimSpace(readFirst("/etc/machine-id", "/var/lib/dbus/machine-id"))
	if id == "" {
		id = hostname
	}
	boot := strings.TrimSpace(readFirst("/proc/sys/kernel/random/boot_id"))
	if boot == "" {
		boot = id
	}
	kernel := strings.TrimSpace(readFirst("/proc/sys/kernel/osrelease"))
	if kernel == "" {
		kernel = runtime.GOOS
	}
	m.info = corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: id, BootID: boot, KernelVersion: kernel, OSImage: osImage(),
		ContainerRuntimeVersion: "process://1", KubeletVersion: version.Get().GitVersion,
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}
	return m
}

// readFirst is the content of the first file that can be read.
func readFirst(paths ...string) string {
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
	}
	return ""
}

func osImage() string {
	for line := range strings.Lines(readFirst("/etc/os-release", "/usr/lib/os-release")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return runtime.GOOS
}

// memoryBytes is the memory of the machine: /proc/meminfo on Linux, sysctl
// elsewhere. A container around this process may have less: then that counts.
func memoryBytes() int64 {
	var total int64
	for line := range strings.Lines(readFirst("/proc/meminfo")) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			total = kib << 10
		}
	}
	if total == 0 {
		if out, err := exec.Command("sysctl", "-n", "hw.memsize").Output(); err == nil {
			total, _ = strconv.ParseInt(string(bytes.TrimSpace(out)), 10, 64)
		}
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(readFirst("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")), 10, 64)
	if err == nil && limit > 0 && (total == 0 || limit < total) {
		total = limit
	}
	return total
}

// diskSpace is the size and the free space of the file system at dir, in bytes.
func diskSpace(dir string) (size, free int64) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0
	}
	return int64(fs.Blocks) * int64(fs.Bsize), int64(fs.Bavail) * int64(fs.Bsize)
}

var gpuDevice = regexp.MustCompile(`^/dev/nvidia([0-9]+)$`)

// findGPUs lists the indices of NVIDIA devices.
func findGPUs() []string {
	var found []string
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
	for _, d := range devices {
		if m := gpuDevice.FindStringSubmatch(d); m != nil {
			found = append(found, m[1])
		}
	}
	return found
}

// capacity returns the machine's capacity as Kubernetes resources.
func (n *Node) capacity() corev1.ResourceList {
	memory := n.machine.memory
	if n.cfg.Memory > 0 {
		memory = n.cfg.Memory
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(n.cfg.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(n.machine.disk, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(n.cfg.MaxPods, resource.DecimalSI),
	}
	if len(n.machine.gpus) > 0 {
		list[gpuResource] = *resource.NewQuantity(int64(len(n.machine.gpus)), resource.DecimalSI)
	}
	return list
}

// allocatable returns what Pods may request: everything but kubelet's default
// reservation of 100 MiB of memory and 10 % of the disk. Configured memory is
// entirely theirs.
func (n *Node) allocatable() corev1.ResourceList {
	list := n.capacity()
	if n.cfg.Memory == 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(max(0, n.machine.memory-100<<20), resource.BinarySI)
	}
	list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(n.machine.disk/10*9, resource.BinarySI)
	return list
}
