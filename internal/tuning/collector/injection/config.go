// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"diwan.dev/diwan/internal/tuning/collector/entry"
)

// Container is the collector's name, which the Kubeflow SDKs use to read the
// log of a trial.
const Container = "metrics-logger-and-collector"

// What a Pod gets beside the container: two volumes, and where they are mounted.
const (
	sharedVolume = "diwan-collector"
	tokenVolume  = "diwan-collector-token"

	sharedDir = entry.Dir("/var/run/diwan/collector")
	tokenDir  = "/var/run/secrets/diwan.dev/collector"
	tokenFile = "token"
)

// Config configures the collectors.
type Config struct {
	// Image has the programs diwan-collector and diwan-entry on its PATH.
	// Required.
	Image string
	// PullPolicy is the image's. "": Kubernetes' default.
	PullPolicy corev1.PullPolicy
	// Store is the address of the DBManager as Pods reach it, host:port. Required.
	Store string
	// Patience bounds how long a trial's container that has ended waits until its
	// metrics are stored.
	Patience time.Duration
	// Resources are the collector's. If limits equal requests, a Pod keeps its
	// QoS class.
	Resources corev1.ResourceRequirements
}

// DefaultConfig returns a Config with a patience of five minutes, as long as a
// container that fails again and again waits for its next start, and a tenth of
// a processor and 128 MiB: a collector takes some 20.
func DefaultConfig(image, store string) Config {
	amount := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("128Mi"),
	}
	return Config{
		Image: image, Store: store, Patience: 5 * time.Minute,
		Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount},
	}
}
