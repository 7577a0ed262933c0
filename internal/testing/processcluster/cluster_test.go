// SPDX-License-Identifier: Apache-2.0

package processcluster_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/testing/processcluster"
)

// TestCluster runs a Deployment behind a Service, and kills parts below it.
func TestCluster(t *testing.T) {
	t.Parallel()
	python, err := filepath.Glob("/usr/bin/python3")
	if len(python) == 0 || err != nil {
		t.Skip("the image of the test is a Python")
	}
	cluster := processcluster.New(t, processcluster.Config{
		Images: []image.Entry{{Image: "web", Command: []string{python[0], "-m", "http.server"}}},
	})
	client, err := kubernetes.NewForConfig(cluster.Admin())
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	container := corev1.Container{Name: "main", Image: "web", Args: []string{"8000"}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1}
	container.ReadinessProbe.HTTPGet = &corev1.HTTPGetAction{}
	container.ReadinessProbe.HTTPGet.Port.IntVal = 8000
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: labels}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	service.Spec.Ports[0].TargetPort.IntVal = 8000
	if service, err = client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answers := func() error {
		http := http.Client{Timeout: time.Second}
		response, err := http.Get("http://" + service.Spec.ClusterIP)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	eventually(t, answers)

	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d Pods, want 1 (%v)", len(pods.Items), err)
	}
	pod := pods.Items[0]
	cluster.Kill(processcluster.APIServer)
	if cluster.KillPod(pod.UID) == 0 {
		t.Error("the Pod has no process")
	}
	cluster.Start(processcluster.APIServer)
	cluster.WaitServing()
	eventually(t, func() error {
		now, err := client.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := now.Status.ContainerStatuses; len(s) != 1 || s[0].RestartCount != 1 || !s[0].Ready {
			return fmt.Errorf("the container is %v, want it ready after a restart", s)
		}
		return nil
	})
	eventually(t, answers)

	_, stranger := cluster.User("stranger")
	theirs, err := kubernetes.NewForConfig(stranger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role gets %v, want that it is forbidden", err)
	}
	if text, err := os.ReadFile(cluster.Log(processcluster.Node)); err != nil || len(text) == 0 {
		t.Errorf("the node has said nothing (%v)", err)
	}
}

func eventually(t *testing.T, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
