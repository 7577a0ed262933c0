// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/node/image"
)

// testSDKs calls every method of the unmodified SDK in a Pod of a user's, as in
// a notebook of Kubeflow's: its account may edit the namespace.
func (f *foreign) testSDKs(t *testing.T) {
	python := sdks(t)
	f.cluster.Map(image.Entry{Image: "notebook", Command: []string{python}})
	f.cluster.Map(image.Entry{Image: "docker.io/pytorch/pytorch", Path: []string{filepath.Dir(python)}})
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}
	f.bind(t, "default", "notebook", "edit", account)
	f.bind(t, "kube-public", "notebook", "view", account)
	f.notebook(t, "katib-client", abs(t, "testdata/python/katib_client.py"))
}

// notebook runs a program in a Pod that reaches the cluster by its account.
func (f *foreign) notebook(t *testing.T, name, program string) {
	t.Helper()
	client := f.kube.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "notebook", Args: []string{program},
			Env: []corev1.EnvVar{{Name: "KATIB_DB_MANAGER", Value: "katib-db-manager.kubeflow:6789"}, {Name: "PYTHONDONTWRITEBYTECODE", Value: "1"}},
		}},
	}}
	if _, err := client.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 4*time.Minute, func() error {
		pod, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			return nil
		case corev1.PodFailed:
			text, err := os.ReadFile(filepath.Join(f.cluster.ContainerLogs(), "default", name, "main", "0.log"))
			t.Fatalf("%s fails:\n%s (%v)", program, text, err)
		}
		return fmt.Errorf("the Pod %s is %s", name, pod.Status.Phase)
	})
}
