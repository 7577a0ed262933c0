// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestWriteKubectl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "namespace"), []byte("team"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "a b")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeKubectl(target, "/bin/echo", "https://10.0.0.1:443", dir); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(filepath.Join(target, "kubectl"), "exec", "worker", "--", "a  b").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "--kubeconfig " + filepath.Join(target, "config") + " kubectl exec worker -- a  b\n"
	if diff := cmp.Diff(want, string(said)); diff != "" {
		t.Errorf("kubectl is called with (-want +got)\n%s", diff)
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(target, "config"))
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Contexts[config.CurrentContext]; c.Namespace != "team" || config.Clusters[c.Cluster].Server != "https://10.0.0.1:443" {
		t.Errorf("kubectl works in %q at %q", c.Namespace, config.Clusters[c.Cluster].Server)
	}
	if err := writeKubectl(target, "/bin/echo", "https://10.0.0.1:443", target); err == nil {
		t.Error("a Pod without a service account gets a kubectl")
	}
}

func TestWorkersIn(t *testing.T) {
	t.Parallel()
	got := workersIn("job-launcher slots=1\njob-worker-0 slots=2\n\n  job-worker-1\n")
	if diff := cmp.Diff([]string{"job-worker-0", "job-worker-1"}, got); diff != "" {
		t.Errorf("workers (-want +got)\n%s", diff)
	}
}
