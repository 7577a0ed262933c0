// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestUserOf(t *testing.T) {
	t.Parallel()
	const me = 1000
	id := ptr.To[int64]
	type security struct {
		pod       corev1.PodSecurityContext
		container *corev1.SecurityContext
	}
	for name, c := range map[string]struct {
		reason string
		asks   security
		root   *container.User // by root
		owner  *container.User // by an ordinary user in a user namespace
		lacks  [3]bool         // of nobody, of the owner, of root
	}{
		"nothing": {reason: "is the node's user"},
		"user": {
			reason: "has the group of its number, and the Pod's groups where root may give them",
			asks:   security{pod: corev1.PodSecurityContext{RunAsUser: id(7), FSGroup: id(8), SupplementalGroups: []int64{9}}},
			root:   &container.User{UID: 7, GID: 7, Groups: []int64{9, 8}}, owner: &container.User{UID: 7, GID: 7}, lacks: [3]bool{true, false, false},
		},
		"container": {
			reason: "the container's count before the Pod's",
			asks:   security{corev1.PodSecurityContext{RunAsUser: id(7), RunAsGroup: id(8)}, &corev1.SecurityContext{RunAsUser: id(5), RunAsGroup: id(6)}},
			root:   &container.User{UID: 5, GID: 6}, owner: &container.User{UID: 5, GID: 6}, lacks: [3]bool{true, false, false},
		},
		"me": {
			reason: "an ordinary user is that already",
			asks:   security{pod: corev1.PodSecurityContext{RunAsUser: id(me)}}, root: &container.User{UID: me, GID: me},
		},
		"root": {
			reason: "an ordinary user's rights are not root's, whatever the id",
			asks:   security{corev1.PodSecurityContext{RunAsUser: id(7)}, &corev1.SecurityContext{RunAsUser: id(0)}}, lacks: [3]bool{true, true, false},
		},
		"not root": {
			reason: "which an ordinary user is not",
			asks:   security{pod: corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}}, root: &container.User{UID: nobody, GID: nobody},
		},
		"root after all": {
			reason: "the container may be root though the Pod may not",
			asks:   security{corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, &corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}},
		},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &c.asks.pod}}
		for can, want := range []*container.User{ofNobody: nil, ofOwner: c.owner, ofRoot: c.root} {
			who := me
			if rights(can) == ofRoot {
				who = 0
			}
			got, lacks := userOf(pod, &corev1.Container{SecurityContext: c.asks.container}, rights(can), who)
			if diff := cmp.Diff(want, got); diff != "" || (lacks != "") != c.lacks[can] {
				t.Errorf("%s: %s: with rights %d there lacks %q, and (-want +got):\n%s", name, c.reason, can, lacks, diff)
			}
		}
	}
}
