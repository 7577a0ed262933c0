// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node/image"
)

func TestForecast(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	table := fmt.Sprintf(`images:
- {image: "*", runtime: process}
- {image: tools, path: [%[1]s]}
- {image: entry, command: [%[1]s/tool, --flag]}
- {image: files, files: {/opt/app: %[1]s}}
- {image: gone, files: {/opt/app: %[1]s/none}}
`, bin)
	if err := os.WriteFile(filepath.Join(home, "images.yaml"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	images, err := image.Open(image.Default(home))
	if err != nil {
		t.Fatal(err)
	}
	forecast := NewForecast(images, []string{"PATH=/usr/bin:/bin"})
	mount := []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}
	for name, tc := range map[string]struct {
		reason string
		c      corev1.Container
		want   string // part of the error; "" for none
	}{
		"Host":       {reason: "A program of the machine", c: corev1.Container{Image: "none", Command: []string{"sh"}}},
		"Missing":    {reason: "A program that is nowhere", c: corev1.Container{Image: "none", Command: []string{"tool"}}, want: `cannot find the program "tool"`},
		"Mapped":     {reason: "A program of the image's", c: corev1.Container{Image: "tools", Command: []string{"tool"}}},
		"Unmapped":   {reason: "An image that stands for nothing, without a command", c: corev1.Container{Image: "busybox", Args: []string{"sh"}}, want: "cannot run image busybox"},
		"Entrypoint": {reason: "The image's command, with options", c: corev1.Container{Image: "entry", Args: []string{"--more"}}},
		"OwnPath":    {reason: "The container's PATH counts", c: corev1.Container{Image: "none", Command: []string{"tool"}, Env: []corev1.EnvVar{{Name: "PATH", Value: bin}}}},
		"File":       {reason: "A file of the image's at its path", c: corev1.Container{Image: "files", Command: []string{"/opt/app/tool"}}},
		"NoFile":     {reason: "A file that the image's files lack", c: corev1.Container{Image: "files", Command: []string{"/opt/app/other"}}, want: filepath.Join(bin, "other")},
		"NotRunable": {reason: "A file that is no program", c: corev1.Container{Image: "files", Command: []string{"/opt/app/data"}}, want: "chmod +x"},
		"Gone":       {reason: "Files that the entry maps and that are gone", c: corev1.Container{Image: "gone", Command: []string{"sh"}}, want: "maps /opt/app"},
		"Volume":     {reason: "What a volume holds is not known", c: corev1.Container{Image: "none", Command: []string{"/data/tool"}, VolumeMounts: mount}},
		"Variable":   {reason: "Nor what a variable will hold", c: corev1.Container{Image: "none", Command: []string{"$(TOOL)"}}},
		"Expanded":   {reason: "But what it holds counts where it is written", c: corev1.Container{Image: "none", Command: []string{"$(TOOL)"}, Env: []corev1.EnvVar{{Name: "TOOL", Value: "frobnicate"}}}, want: `"frobnicate"`},
		"Relative":   {reason: "A relative program is below the working directory", c: corev1.Container{Image: "none", Command: []string{"./tool"}, WorkingDir: bin}},
		"Elsewhere":  {reason: "And not elsewhere", c: corev1.Container{Image: "none", Command: []string{"./tool"}, WorkingDir: home}, want: filepath.Join(home, "tool")},
		"Scratch":    {reason: "A directory that the node makes may come to hold anything", c: corev1.Container{Image: "none", Command: []string{"./tool"}}},
	} {
		_, err := forecast.Container(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, &tc.c)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s: got %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}
