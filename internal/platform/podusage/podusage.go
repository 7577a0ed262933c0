// SPDX-License-Identifier: Apache-2.0

// Package podusage is the resource usage of a Pod, which its node writes into an
// annotation of the Pod for controllers to read. Pods on other nodes lack the
// annotation.
package podusage

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotation is the name of the annotation, a Usage as JSON.
const Annotation = "diwan.dev/resource-usage"

// Usage is what containers that have ended used.
type Usage struct {
	// CPUTime is CPU time, as a Go duration such as "1.5s"; all runs together.
	CPUTime string `json:"cpuTime,omitempty"`
	// PeakMemory is the most memory, as a quantity such as "12Mi"; empty where
	// nobody measured it.
	PeakMemory string `json:"peakMemory,omitempty"`
}

// Of is the Usage of so much time, and so many bytes or 0 if that is unknown.
func Of(cpu time.Duration, peak int64) Usage {
	u := Usage{CPUTime: cpu.Round(time.Millisecond).String()}
	if peak > 0 {
		u.PeakMemory = resource.NewQuantity(peak, resource.BinarySI).String()
	}
	return u
}

// String is the annotation's value.
func (u Usage) String() string {
	text, _ := json.Marshal(u) // two strings
	return string(text)
}

// Parse parses an annotation's value. If it is malformed, ok is false.
func Parse(value string) (cpu time.Duration, peak int64, ok bool) {
	var u Usage
	if json.Unmarshal([]byte(value), &u) != nil {
		return 0, 0, false
	}
	cpu, err := time.ParseDuration(u.CPUTime)
	if err != nil || cpu < 0 {
		return 0, 0, false
	}
	if q, err := resource.ParseQuantity(u.PeakMemory); err == nil {
		peak = max(0, q.Value())
	}
	return cpu, peak, true
}
