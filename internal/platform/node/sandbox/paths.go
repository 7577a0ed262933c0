// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"runtime"
)

// DefaultMasked returns the paths that show nothing in a container whose procMount is
// Default, as a kubelet has them (k8s.io/kubernetes pkg/securitycontext/util.go).
func DefaultMasked() []string {
	list := []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	for cpu := range runtime.NumCPU() {
		list = append(list, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/thermal_throttle", cpu))
	}
	return list
}

// DefaultReadOnly returns the paths that such a container cannot write.
func DefaultReadOnly() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
