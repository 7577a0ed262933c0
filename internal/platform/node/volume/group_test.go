// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestFSGroup holds that a Pod's fsGroup may read a Secret, whose files others may
// not, and that a Pod of another group has files of its own.
func TestFSGroup(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys"}, Data: map[string][]byte{"key": []byte("s")}}
	m := New(DefaultConfig(t.TempDir(), fake.NewSimpleClientset(secret)))
	pod := func(name string, group *int64) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{FSGroup: group},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: "keys", DefaultMode: ptr.To[int32](0o400),
				}}}},
			},
		}
	}
	for name, c := range map[string]struct {
		group *int64
		mode  os.FileMode
	}{"plain": {nil, 0o400}, "group": {ptr.To[int64](1000), 0o440}, "another": {ptr.To[int64](2000), 0o440}} {
		p := pod(name, c.group)
		if err := m.Prepare(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		dir, _, err := m.source(p, "v")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "key"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != c.mode {
			t.Errorf("%s: the file has mode %v, want %v", name, info.Mode().Perm(), c.mode)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && int64(st.Gid) != ptr.Deref(c.group, 0) {
			t.Errorf("%s: the file is of group %d, want %d", name, st.Gid, ptr.Deref(c.group, 0))
		}
	}
}
