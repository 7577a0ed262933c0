// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node/image"
)

// testSDKs calls every method of the unmodified SDKs in Pods of a user's, as in
// notebooks of Kubeflow's: their account may edit the namespace.
func (f *foreign) testSDKs(t *testing.T) {
	python := sdks(t)
	f.cluster.Map(image.Entry{Image: "notebook", Command: []string{python}})
	for _, trials := range []string{"docker.io/pytorch/pytorch", "docker.io/tensorflow/tensorflow", "nvcr.io/nvidia/jax"} {
		f.cluster.Map(image.Entry{Image: trials, Path: []string{filepath.Dir(python)}})
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}
	f.bind(t, "default", "notebook", "edit", account)
	f.bind(t, "kube-public", "notebook", "view", account)
	if _, err := f.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sdk"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.bind(t, "sdk", "notebook", "edit", account)
	run := func(program string) func() {
		return func() {
			t.Run(program, func(t *testing.T) {
				if said := f.notebook(t, program); strings.Contains(said, "version info is not available") {
					t.Errorf("the SDK does not find which Trainer there is:\n%s", said)
				}
			})
		}
	}
	sideBySide(run("katib_client"), run("training_client"), run("trainer_client"))
	run("optimizer_client")() // whose trials are TrainJobs, too
}

// notebook runs one of the programs in testdata/python in a Pod, which reaches
// the cluster by its account, and returns what it said.
func (f *foreign) notebook(t *testing.T, program string) (said string) {
	t.Helper()
	name := strings.ReplaceAll(program, "_", "-")
	client := f.kube.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "notebook", Args: []string{abs(t, "testdata/python/"+program+".py")},
			Env: []corev1.EnvVar{{Name: "KATIB_DB_MANAGER", Value: "katib-db-manager.kubeflow:6789"}, {Name: "PYTHONDONTWRITEBYTECODE", Value: "1"}},
		}},
	}}
	if _, err := client.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 8*time.Minute, func() error {
		pod, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(f.cluster.ContainerLogs(), "default", name, "main", "0.log"))
		said = string(text)
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			return err
		case corev1.PodFailed:
			t.Fatalf("%s fails:\n%s (%v)", program, text, err)
		}
		return fmt.Errorf("the Pod %s is %s", name, pod.Status.Phase)
	})
	return said
}
