// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// scales has an elastic PyTorchJob lose a worker, get more and have fewer. torchrun starts the program again each time;
// it goes on from its checkpoint, and comes to its accuracy.
func (s *server) scales(t *testing.T) {
	needs(t, "/usr/bin/torchrun", "torch")
	const workers = "digits-elastic-worker-*/pytorch"
	directory := abs(t, root+"/examples/training")
	example, err := os.ReadFile(filepath.Join(directory, "pytorch-elastic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	slow := strings.NewReplacer("pytorch_elastic.py", filepath.Join(directory, "pytorch_elastic.py"), "--pause=0.5", "--pause=10, --pause-until=/checkpoint/enough")
	s.apply(t, slow.Replace(string(example)))
	s.prints(t, workers, `workers=2`)
	s.kubectl(t, "delete", "pod", "digits-elastic-worker-1", "--force", "--grace-period=0")
	s.prints(t, workers, `rank 1 of 2 begins at epoch ([2-9]|\d\d)`)
	s.kubectl(t, "scale", "pytorchjob", "digits-elastic", "--replicas=3")
	s.prints(t, workers, `rank 2 of 3 begins at epoch ([2-9]|\d\d)`)
	s.kubectl(t, "scale", "pytorchjob", "digits-elastic", "--replicas=1")
	s.prints(t, "digits-elastic-worker-0/pytorch", `(?s)of 3 begins.*of 1 begins at epoch ([2-9]|\d\d)`)
	s.kubectl(t, "exec", "digits-elastic-worker-0", "--", "touch", "/checkpoint/enough")
	s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=60s", "pytorchjob/digits-elastic")
	end := regexp.MustCompile(`of 1 accuracy=([\d.]+)`).FindStringSubmatch(s.printed(workers))
	if end == nil {
		t.Fatalf("the last worker tells no accuracy:\n%s", s.printed(workers))
	}
	if accuracy, _ := strconv.ParseFloat(end[1], 64); accuracy < 0.95 {
		t.Errorf("it came to an accuracy of %v, want 0.95", accuracy)
	}
}

// discoversHosts has workers of an MPIJob come and go, and a launcher run the discovery script as Horovod's driver
// does.
func (s *server) discoversHosts(t *testing.T) {
	const launcher = "discovery-launcher/mpi"
	s.kubectl(t, "apply", "-f", abs(t, "testdata/discovery/mpijob.yaml"))
	s.prints(t, launcher, `hosts: discovery-worker-0:2 discovery-worker-1:2\n`)
	for _, step := range []struct{ replicas, want string }{
		{"3", `discovery-worker-0:2 discovery-worker-1:2 discovery-worker-2:2`},
		{"1", `discovery-worker-0:2`},
		{"2", `discovery-worker-0:2 discovery-worker-1:2`},
	} {
		s.kubectl(t, "patch", "mpijob", "discovery", "--type=merge", "-p", `{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":`+step.replicas+`}}}}`)
		s.prints(t, launcher, step.want+`\n$`)
	}
	s.kubectl(t, "delete", "mpijob", "discovery")
}
