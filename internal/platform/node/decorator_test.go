// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/training/podssh/nodedecorator"
)

// TestSSH holds that a container with keys for ssh finds ssh and sshd, by name and
// where images have them, and that another of its Pod finds the machine's.
func TestSSH(t *testing.T) {
	self := filepath.Join(t.TempDir(), "self")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho ${0##*/} $1: $(cat $DIWAN_SSH_KEYS/id_rsa)\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(cfg *node.Config) { cfg.Self, cfg.Decorators = self, []node.Decorator{nodedecorator.SSH{}} })
	if _, err := b.client.CoreV1().Secrets(b.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "job-ssh"}, Data: map[string][]byte{"ssh-privatekey": []byte("secret")},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := b.pod("ssh host; exec $0 -De")
	pod.Spec.Volumes = []corev1.Volume{{Name: "ssh-auth", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "job-ssh", Items: []corev1.KeyToPath{{Key: "ssh-privatekey", Path: "id_rsa"}},
	}}}}
	main := &pod.Spec.Containers[0]
	main.Command = append(main.Command, "/usr/sbin/sshd")
	main.VolumeMounts = []corev1.VolumeMount{{Name: "ssh-auth", MountPath: "/tmp/diwan-test-ssh"}}
	other := *main.DeepCopy()
	other.Name, other.VolumeMounts, other.Command = "other", nil, []string{"sh", "-c", "echo [$DIWAN_SSH_KEYS] $0", "/usr/sbin/sshd"}
	pod.Spec.Containers = append(pod.Spec.Containers, other)
	pod = b.awaitPhase(b.create(pod), corev1.PodSucceeded)
	for name, want := range map[string]string{"main": "ssh host: secret\nsshd -De: secret\n", "other": "[] /usr/sbin/sshd\n"} {
		if got := b.log(pod, name, 0); got != want {
			t.Errorf("%s printed %q, want %q", name, got, want)
		}
	}
}
