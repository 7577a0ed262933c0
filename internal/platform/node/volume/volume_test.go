// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"
)

func read(t interface{ Fatal(...any) }, dir string) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		root := filepath.Join(dir, e.Name())
		resolved, err := filepath.EvalSymlinks(root)
		if err != nil {
			t.Fatal(err)
		}
		filepath.WalkDir(resolved, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(resolved, path)
			text, err := os.ReadFile(path)
			files[filepath.Join(e.Name(), rel)] = string(text)
			return err
		})
	}
	return files
}

// TestContent writes random contents over each other; a reader always sees the
// last one and nothing else.
func TestContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "diwan-volume-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		for range rapid.IntRange(1, 4).Draw(t, "versions") {
			c, want := content{}, map[string]string{}
			for range rapid.IntRange(0, 4).Draw(t, "files") {
				name := rapid.SampledFrom([]string{"a", "b", "c.txt", "d/e", "d/f"}).Draw(t, "name")
				text := rapid.StringN(0, 3, 8).Draw(t, "text")
				if err := c.add(name, []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
				want[name] = text
			}
			if err := c.write(dir); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, read(t, dir)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			before, _ := os.Readlink(filepath.Join(dir, dataLink))
			if err := c.write(dir); err != nil {
				t.Fatal(err)
			}
			if after, _ := os.Readlink(filepath.Join(dir, dataLink)); after != before {
				t.Fatal("the same content was written again")
			}
			if entries, _ := filepath.Glob(filepath.Join(dir, "..v*")); len(entries) != 1 {
				t.Fatalf("old content is left: %v", entries)
			}
		}
	})
}

func TestContentStaysInside(t *testing.T) {
	for _, path := range []string{"../x", "/x", "a/../../x", "..data/x", ""} {
		if err := (content{}).add(path, nil, 0o644); err == nil {
			t.Errorf("path %q is accepted", path)
		}
	}
}

func TestWithin(t *testing.T) {
	dir := t.TempDir()
	os.Symlink("/etc", filepath.Join(dir, "out"))
	os.Symlink("real", filepath.Join(dir, "in"))
	os.Mkdir(filepath.Join(dir, "real"), 0o755)
	cases := map[string]struct {
		reason, sub string
		readOnly    bool
		want        string
	}{
		"new":          {"a missing directory is made", "x/y", false, "x/y"},
		"read-only":    {"but not in a read-only volume", "z", true, ""},
		"parent":       {"a path cannot climb out", "../x", false, ""},
		"link out":     {"nor follow a link out", "out/passwd", false, ""},
		"link out new": {"nor make something there", "out/x", false, ""},
		"link in":      {"a link inside is followed", "in", false, "in"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := within(dir, tc.sub, tc.readOnly)
			if tc.want == "" {
				if err == nil {
					t.Errorf("%s: got %s", tc.reason, got)
				}
				return
			}
			if want := filepath.Join(dir, tc.want); err != nil || got != want {
				t.Errorf("%s: got %s, %v; want %s", tc.reason, got, err, want)
			}
		})
	}
}

func TestHostPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o644)
	cases := []struct {
		reason string
		path   string
		kind   corev1.HostPathType
		ok     bool
	}{
		{"no type makes a directory", "unset", corev1.HostPathUnset, true},
		{"no type takes what is there", "file", corev1.HostPathUnset, true},
		{"a directory must exist", "none", corev1.HostPathDirectory, false},
		{"a file is no directory", "file", corev1.HostPathDirectory, false},
		{"a directory is made", "made/deep", corev1.HostPathDirectoryOrCreate, true},
		{"a file must exist", "none", corev1.HostPathFile, false},
		{"a file is there", "file", corev1.HostPathFile, true},
		{"a file is made", "made-file", corev1.HostPathFileOrCreate, true},
		{"a file is no socket", "file", corev1.HostPathSocket, false},
		{"nor a device", "file", corev1.HostPathCharDev, false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			err := hostPath("v", &corev1.HostPathVolumeSource{Path: filepath.Join(dir, tc.path), Type: &tc.kind})
			if pending := (*PendingError)(nil); (err == nil) != tc.ok || err != nil && !errors.As(err, &pending) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func podWith(uid string, volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID("uid-" + uid), Labels: map[string]string{"a": "1"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "sa", Volumes: volumes, Containers: []corev1.Container{{Name: "c"}}},
	}
}

func managerOf(t *testing.T, objects ...runtime.Object) (*Manager, *fake.Clientset) {
	t.Helper()
	client := fake.NewSimpleClientset(objects...)
	m := New(DefaultConfig(t.TempDir(), client))
	m.objects.fresh = 0
	return m, client
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
}

func volumeOf(name string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
}

func TestPodsShareContent(t *testing.T) {
	m, client := managerOf(t, configMap("cm", map[string]string{"k": "1"}))
	a, b := podWith("a", volumeOf("cm")), podWith("b", volumeOf("cm"))
	dirs := map[string]bool{}
	for _, pod := range []*corev1.Pod{a, b} {
		if err := m.Prepare(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		dir, readOnly, err := m.source(pod, "v")
		if err != nil || !readOnly {
			t.Fatalf("%v, read-only %v", err, readOnly)
		}
		dirs[dir] = true
	}
	if len(dirs) != 1 {
		t.Errorf("two Pods have %d directories for the same content", len(dirs))
	}
	dir, _, _ := m.source(a, "v")
	client.CoreV1().ConfigMaps("ns").Update(t.Context(), configMap("cm", map[string]string{"k": "2", "l": "3"}), metav1.UpdateOptions{})
	if err := m.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"k": "2", "l": "3"}, read(t, dir)); diff != "" {
		t.Errorf("a change is not seen (-want +got):\n%s", diff)
	}
	for _, pod := range []*corev1.Pod{a, b} {
		if err := m.Release(string(pod.UID)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range m.shared {
		s.idle = time.Now().Add(-time.Hour)
	}
	m.round(t.Context())
	if _, err := os.Stat(dir); err == nil {
		t.Error("content that nobody uses stays for ever")
	}
}

func TestMissingObjects(t *testing.T) {
	yes := true
	m, _ := managerOf(t, configMap("cm", map[string]string{"k": "1"}))
	var pending *PendingError
	if err := m.Prepare(t.Context(), podWith("a", volumeOf("none"))); !errors.As(err, &pending) ||
		pending.Message != `MountVolume.SetUp failed for volume "v" : configmap "none" not found` {
		t.Errorf("got %v", err)
	}
	optional := volumeOf("none")
	optional.ConfigMap.Optional = &yes
	if err := m.Prepare(t.Context(), podWith("b", optional)); err != nil {
		t.Errorf("an optional ConfigMap: %v", err)
	}
	key := volumeOf("cm")
	key.ConfigMap.Items = []corev1.KeyToPath{{Key: "other", Path: "x"}}
	if err := m.Prepare(t.Context(), podWith("c", key)); !errors.As(err, &pending) {
		t.Errorf("a missing key: %v", err)
	}
	if err := m.Prepare(t.Context(), podWith("d", corev1.Volume{Name: "n", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}})); !errors.As(err, &pending) ||
		!strings.Contains(pending.Message, "NFS") {
		t.Errorf("an unsupported volume: %v", err)
	}
}

func TestDownwardAPIFollowsThePod(t *testing.T) {
	m, _ := managerOf(t)
	pod := podWith("a", corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}})
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	changed := pod.DeepCopy()
	changed.Labels["a"] = "2"
	if err := m.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	dir, _, _ := m.source(pod, "v")
	if diff := cmp.Diff(map[string]string{"labels": `a="2"`}, read(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClaims(t *testing.T) {
	dir := t.TempDir()
	m, _ := managerOf(t,
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "bound"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waiting"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}}},
	)
	claim := func(name string) corev1.Volume {
		return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
	}
	pod := podWith("a", claim("bound"))
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := m.source(pod, "v"); got != dir {
		t.Errorf("got %s", got)
	}
	var pending *PendingError
	for _, name := range []string{"waiting", "none"} {
		if err := m.Prepare(t.Context(), podWith(name, claim(name))); !errors.As(err, &pending) {
			t.Errorf("claim %s: %v", name, err)
		}
	}
}

// TestAccountsMadeAgain wants a Pod of a service account that was deleted and made
// again to get a token of the new one: those of the old one are good for nothing.
func TestAccountsMadeAgain(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa", UID: "first"}}
	m, client := managerOf(t, account)
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		return true, &authv1.TokenRequest{Status: authv1.TokenRequestStatus{
			Token: "token of " + string(account.UID), ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}}, nil
	})
	projected := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
	}}}
	for name, uid := range map[string]types.UID{"a": "first", "b": "second"} {
		account.UID = uid
		if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), account, "ns"); err != nil {
			t.Fatal(err)
		}
		pod := podWith(name, projected)
		if err := m.Prepare(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		dir, _, _ := m.source(pod, "v")
		if got := read(t, dir)["token"]; got != "token of "+string(uid) {
			t.Errorf("with the %s account a Pod has the %q", uid, got)
		}
	}
}
