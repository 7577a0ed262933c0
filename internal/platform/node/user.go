// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
)

// nobody is the user of a container that must not run as root and specifies
// no user.
const nobody = 65534

// rights are what this process may do about users.
type rights int

const (
	// ofNobody: containers run as this process's user.
	ofNobody rights = iota
	// ofOwner: containers may have other ids in a user namespace, with no more and
	// no less than this user's rights.
	ofOwner
	// ofRoot: containers may run as anybody.
	ofRoot
)

// ownRights returns the privileges of this process, whose containers have
// namespaces or not.
func ownRights(spaces bool) rights {
	_, owner := rootless.Owner()
	switch {
	case rootless.Root():
		return ofRoot
	case owner && spaces:
		return ofOwner
	}
	return ofNobody
}

// userOf is who a container runs as, nil being the node's own user, whose id is
// me; and what of the Pod's wish cannot be had.
func userOf(pod *corev1.Pod, c *corev1.Container, can rights, me int) (u *container.User, lacks string) {
	user, group, notRoot := wishes(pod, c)
	switch {
	case user == nil && (can != ofRoot || !notRoot):
		return nil, ""
	case user == nil:
		user = ptr.To[int64](nobody)
	case *user == int64(me):
		return nil, ""
	case *user == 0:
		return nil, fmt.Sprintf("the container asks to run as root, but runs as user %d: run diwan as root for that", me)
	case can == ofNobody:
		return nil, fmt.Sprintf("the container asks to run as user %d, but runs as user %d: allow user namespaces, or run diwan as root for that", *user, me)
	}
	u = &container.User{UID: *user, GID: ptr.Deref(group, *user)}
	if s := pod.Spec.SecurityContext; s != nil && can == ofRoot {
		u.Groups = append(u.Groups, s.SupplementalGroups...)
		if s.FSGroup != nil {
			u.Groups = append(u.Groups, *s.FSGroup)
		}
	}
	return u, ""
}

// wishes returns a container's runAsUser, runAsGroup and runAsNonRoot, which
// override those of its Pod.
func wishes(pod *corev1.Pod, c *corev1.Container) (user, group *int64, notRoot bool) {
	if s := pod.Spec.SecurityContext; s != nil {
		user, group, notRoot = s.RunAsUser, s.RunAsGroup, ptr.Deref(s.RunAsNonRoot, false)
	}
	if s := c.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			user = s.RunAsUser
		}
		if s.RunAsGroup != nil {
			group = s.RunAsGroup
		}
		notRoot = ptr.Deref(s.RunAsNonRoot, notRoot)
	}
	return user, group, notRoot
}

// ownUser is the id of the user as whom the machine sees this process.
func ownUser() int {
	if owner, ok := rootless.Owner(); ok {
		return owner.UID
	}
	return os.Getuid()
}
