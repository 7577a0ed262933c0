// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/node/container"
)

// imageUser is who a container in an image runs as. It notes the user's home.
func (w *worker) imageUser(pod *corev1.Pod, c *corev1.Container, s *setting) (*container.User, error) {
	user, _, _ := wishes(pod, c)
	spec := s.pulled.user
	if user != nil {
		spec = strconv.FormatInt(*user, 10)
	}
	found, err := s.pulled.User(spec)
	if err != nil {
		return nil, err
	}
	s.pulled.home = found.Home
	return userInImage(pod, c, found)
}

// userInImage is the user that a container asks for, found in its image, with the
// groups that the Pod adds, by a kubelet's rules.
func userInImage(pod *corev1.Pod, c *corev1.Container, found imagestore.User) (*container.User, error) {
	user, group, notRoot := wishes(pod, c)
	switch {
	case notRoot && user == nil && !found.Numeric:
		return nil, fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (pod: %q, container: %s): set securityContext.runAsUser", found.Name, pod.Name, c.Name)
	case notRoot && found.UID == 0:
		return nil, fmt.Errorf("container has runAsNonRoot and image will run as root (pod: %q, container: %s): set securityContext.runAsUser", pod.Name, c.Name)
	}
	u := &container.User{UID: found.UID, GID: found.GID, Groups: found.Groups}
	if group != nil {
		u.GID = *group
	}
	if s := pod.Spec.SecurityContext; s != nil {
		if policy := s.SupplementalGroupsPolicy; policy != nil && *policy == corev1.SupplementalGroupsPolicyStrict {
			u.Groups = nil
		}
		u.Groups = append(slices.Clone(u.Groups), s.SupplementalGroups...)
		if s.FSGroup != nil {
			u.Groups = append(u.Groups, *s.FSGroup)
		}
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	return u, nil
}
