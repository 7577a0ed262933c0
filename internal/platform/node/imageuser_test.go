// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/imagestore"
)

func TestUserInImage(t *testing.T) {
	t.Parallel()
	worker := imagestore.User{Name: "worker", UID: 1000, GID: 1000, Groups: []int64{2000}}
	numeric := worker
	numeric.Numeric = true
	root := imagestore.User{Name: "root", Numeric: true}
	for _, tc := range []struct {
		name      string
		found     imagestore.User
		pod       *corev1.PodSecurityContext
		container *corev1.SecurityContext
		uid, gid  int64
		groups    []int64
		wrong     string
	}{
		{name: "the image's", found: worker, uid: 1000, gid: 1000, groups: []int64{2000}},
		{name: "not root", found: numeric, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, uid: 1000, gid: 1000, groups: []int64{2000}},
		{name: "not root, by name", found: worker, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, wrong: "non-numeric user (worker)"},
		{name: "not root, and root", found: root, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, wrong: "will run as root"},
		{name: "not root but for one container", found: root, pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, container: &corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}},
		{name: "another group", found: worker, container: &corev1.SecurityContext{RunAsGroup: ptr.To[int64](3000)}, uid: 1000, gid: 3000, groups: []int64{2000}},
		{name: "more groups", found: worker, pod: &corev1.PodSecurityContext{FSGroup: ptr.To[int64](100), SupplementalGroups: []int64{4000, 2000}}, uid: 1000, gid: 1000, groups: []int64{100, 2000, 4000}},
		{name: "only the Pod's groups", found: worker, pod: &corev1.PodSecurityContext{SupplementalGroupsPolicy: ptr.To(corev1.SupplementalGroupsPolicyStrict), SupplementalGroups: []int64{4000}}, uid: 1000, gid: 1000, groups: []int64{4000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u, err := userInImage(&corev1.Pod{Spec: corev1.PodSpec{SecurityContext: tc.pod}}, &corev1.Container{SecurityContext: tc.container}, tc.found)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("the error is %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil || u.UID != tc.uid || u.GID != tc.gid || !slices.Equal(u.Groups, tc.groups) {
				t.Errorf("it runs as %+v, %v", u, err)
			}
		})
	}
}
