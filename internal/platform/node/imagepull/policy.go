// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	corev1 "k8s.io/api/core/v1"
)

// step is what a policy demands for an image.
type step int

const (
	use    step = iota // take the image that is present
	pull               // ask the registry
	refuse             // it is absent and may not be pulled
)

// next decides by the pull policy and whether the image is present. A Pod that the
// API server has accepted has a policy; an unknown one counts as IfNotPresent.
func next(policy corev1.PullPolicy, present bool) step {
	switch {
	case policy == corev1.PullAlways:
		return pull
	case present:
		return use
	case policy == corev1.PullNever:
		return refuse
	}
	return pull
}
