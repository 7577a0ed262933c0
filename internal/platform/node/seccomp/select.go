// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Select returns the program for what a securityContext asks for, and the profile's
// complaints. A container that asks for nothing gets RuntimeDefault. The program of
// Unconfined is nil. dir is the directory of the profiles of type Localhost.
func Select(asked *corev1.SeccompProfile, dir string, m Machine) (_ *Program, ignored []string, err error) {
	kind := corev1.SeccompProfileTypeRuntimeDefault
	if asked != nil {
		kind = asked.Type
	}
	var profile *Profile
	switch kind {
	case corev1.SeccompProfileTypeUnconfined:
		return nil, nil, nil
	case corev1.SeccompProfileTypeRuntimeDefault:
		profile, err = Default()
	case corev1.SeccompProfileTypeLocalhost:
		if asked.LocalhostProfile == nil || *asked.LocalhostProfile == "" {
			return nil, nil, errors.New("securityContext.seccompProfile.localhostProfile is missing: name a file in " + dir)
		}
		profile, err = Load(dir, *asked.LocalhostProfile)
	default:
		return nil, nil, fmt.Errorf("securityContext.seccompProfile.type is %q: use RuntimeDefault, Localhost or Unconfined", kind)
	}
	if err != nil {
		return nil, nil, err
	}
	rules, err := profile.Resolve(m)
	if err != nil {
		return nil, nil, err
	}
	program, err := Compile(rules, m)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot compile the seccomp profile: %w", err)
	}
	return program, profile.Ignored, nil
}
