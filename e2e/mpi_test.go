// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestMPI runs MPIJobs of v2beta1, and a TrainJob on a runtime of MPI, by the
// machine's mpirun: the launchers reach the workers by ssh, which no image has.
func TestMPI(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	needs(t, "mpirun", "mpi")
	python := environmentOf(t, "training", filepath.Join(root, "examples", "training", "requirements.txt"))
	s := newServer(t)
	s.mapped(t, "diwan.dev/examples/training", "--path", filepath.Dir(python))
	for _, image := range []string{"mpioperator/mpi-pi", "mpioperator/openmpi"} {
		s.mapped(t, image, "--file", "/home/mpiuser/pi="+abs(t, "testdata/mpi/pi"))
	}
	s.parts(t, func(part part) {
		part("pi", func(t *testing.T, s *server) {
			s.estimatesPi(t)
		})
		part("mpijob-v2beta1.yaml", func(t *testing.T, s *server) {
			s.trains(t, "mpijob-v2beta1.yaml", "job/mpi-digits-ssh-launcher", 0.93)
		})
		part("tune-mpi.yaml", func(t *testing.T, s *server) {
			s.succeeds(t, root+"/examples/training/tune-mpi.yaml")
		})
		part("trainjob", func(t *testing.T, s *server) {
			s.estimatesPiOnNodes(t)
		})
		part("mpich", func(t *testing.T, s *server) {
			s.runsHydra(t, "mpich", "MPICH")
		})
		part("openssh", func(t *testing.T, s *server) {
			needs(t, "/usr/sbin/sshd", "mpi")
			s.runsOpenSSH(t)
		})
		part("others", func(t *testing.T, s *server) {
			s.restsAndFails(t)
		})
	})
}

var estimate = regexp.MustCompile(`pi is approximately 3\.1[34]`)

// isPi wants an estimate by one process on each host.
func isPi(t *testing.T, log string, hosts ...string) {
	t.Helper()
	for i, host := range hosts {
		if want := fmt.Sprintf("rank %d of %d on %s", i, len(hosts), host); !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if !estimate.MatchString(log) {
		t.Errorf("the log has no good estimate:\n%s", log)
	}
}

// estimatesPi runs the MPI operator's example, and checks the result.
func (s *server) estimatesPi(t *testing.T) {
	if stdout, stderr, code := s.diwan("run", abs(t, "testdata/mpi/pi.yaml")); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	isPi(t, s.kubectl(t, "logs", "job/pi-launcher"), "pi-worker-0", "pi-worker-1")
	for what, want := range map[string]string{
		"mpijobs.v2beta1.kubeflow.org/pi {.apiVersion} {.spec.mpiImplementation} {.spec.launcherCreationPolicy}":                            "kubeflow.org/v2beta1 OpenMPI AtStartup",
		"mpijobs.v1.kubeflow.org/pi {.apiVersion} {.spec.mpiImplementation} {.spec.sshAuthMountPath}":                                       "kubeflow.org/v1 OpenMPI /home/mpiuser/.ssh",
		"mpijobs/pi {range .status.conditions[*]}{.type}={.status}/{.reason} {end}":                                                         "Created=True/MPIJobCreated Running=False/MPIJobRunning Succeeded=True/MPIJobSucceeded",
		"mpijobs/pi {.status.replicaStatuses.Launcher.succeeded} {.status.replicaStatuses.Worker}":                                          "1 {}",
		"jobs/pi-launcher {.spec.podReplacementPolicy} {.spec.ttlSecondsAfterFinished} {.spec.template.spec.hostname}":                      "Failed 600 pi-launcher",
		"secrets/pi-ssh {.type} {.metadata.ownerReferences[0].apiVersion} {.metadata.ownerReferences[0].kind}":                              "kubernetes.io/ssh-auth kubeflow.org/v2beta1 MPIJob",
		"services/pi {.spec.clusterIP} {.spec.selector.training\\.kubeflow\\.org/job-name}":                                                 "None pi",
		"configmaps/pi-config {.data.hostfile}":                                                                                             "pi-worker-0.pi.default.svc slots=1\npi-worker-1.pi.default.svc slots=1",
		"pods -l=training.kubeflow.org/job-name=pi {.items[*].metadata.labels.training\\.kubeflow\\.org/job-role} {.items[*].status.phase}": "launcher Succeeded",
	} {
		words := strings.Fields(what)
		at := strings.Index(what, "{")
		args := append([]string{"get"}, strings.Fields(what[:at])...)
		if got := strings.TrimSpace(s.kubectl(t, append(args, "-o", "jsonpath="+what[at:])...)); got != want {
			t.Errorf("%s is %q, want %q", words[0], got, want)
		}
	}
}

// estimatesPiOnNodes runs a TrainJob, whose launcher is the first node.
func (s *server) estimatesPiOnNodes(t *testing.T) {
	if stdout, stderr, code := s.diwan("run", abs(t, "testdata/mpi/trainjob.yaml")); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	log := s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=pi-nodes,jobset.sigs.k8s.io/replicatedjob-name=launcher", "--tail=-1")
	isPi(t, log, "pi-nodes-launcher-0-0", "pi-nodes-node-0-0")
}

// runsHydra estimates pi by an implementation whose mpirun is Hydra, with workers
// alone and with a launcher that works, as the images' entrypoint would run it.
func (s *server) runsHydra(t *testing.T, name, implementation string) {
	python := environmentOf(t, "training", abs(t, "testdata/mpi/"+name+".txt"))
	pi := filepath.Join(t.TempDir(), "pi")
	program := strings.Replace(read(t, "testdata/mpi/pi"), "#!/usr/bin/python3", "#!/usr/bin/env python3", 1)
	if err := os.WriteFile(pi, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	s.mapped(t, "mpioperator/"+name, "--path", filepath.Dir(python), "--file", "/home/mpiuser/pi="+pi)
	s.apply(t, strings.NewReplacer("NAME", name, "IMPLEMENTATION", implementation).Replace(read(t, "testdata/mpi/hydra.yaml")))
	for job, hosts := range map[string][]string{
		name:              {name + "-worker-0", name + "-worker-1"},
		name + "-working": {name + "-working-launcher", name + "-working-worker-0"},
	} {
		s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=120s", "mpijob/"+job)
		isPi(t, s.kubectl(t, "logs", "job/"+job+"-launcher"), hosts...)
	}
}

// runsOpenSSH estimates pi by the ssh and sshd that an image has, with their user
// and settings as the MPI operator's images have them.
func (s *server) runsOpenSSH(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("sshd knows its user by the user's own number: run as root")
	}
	var flags []string
	for at, from := range imageWithOpenSSH(t) {
		flags = append(flags, "--file", at+"="+from)
	}
	s.mapped(t, "mpioperator/mpi-pi:openssh", flags...)
	s.apply(t, piByOpenSSH(t))
	s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=120s", "mpijob/pi-openssh")
	isPi(t, s.kubectl(t, "logs", "job/pi-openssh-launcher"), "pi-openssh-worker-0", "pi-openssh-worker-1")
	for _, worker := range []string{"pi-openssh-worker-0", "pi-openssh-worker-1"} {
		if log := s.printed(worker + "/mpi-worker"); !strings.Contains(log, "Accepted publickey for mpiuser") {
			t.Errorf("the sshd of %s is not OpenSSH's:\n%s", worker, log)
		}
	}
}

// imageWithOpenSSH are the files of an image of the MPI operator's.
func imageWithOpenSSH(t *testing.T) map[string]string {
	return map[string]string{
		"/usr/sbin/sshd":             "/usr/sbin/sshd",
		"/etc/passwd":                abs(t, "testdata/mpi/openssh/passwd"),
		"/etc/ssh/ssh_config":        abs(t, "testdata/mpi/openssh/ssh_config"),
		"/home/mpiuser/.sshd_config": abs(t, "testdata/mpi/openssh/sshd_config"),
		"/home/mpiuser/pi":           abs(t, "testdata/mpi/pi"),
	}
}

// piByOpenSSH is the MPI operator's example on such an image.
func piByOpenSSH(t *testing.T) string {
	return strings.NewReplacer("name: pi\n", "name: pi-openssh\n", "mpi-pi:openmpi", "mpi-pi:openssh").Replace(read(t, "testdata/mpi/pi.yaml"))
}

// restsAndFails resumes a job that was created suspended, fails another, and
// changes one in the version that it is not of.
func (s *server) restsAndFails(t *testing.T) {
	s.kubectl(t, "apply", "-f", abs(t, "testdata/mpi/others.yaml"))
	status := func(job string) string {
		return s.kubectl(t, "get", "mpijobs.v2beta1.kubeflow.org/"+job, "-o", "jsonpath={range .status.conditions[*]}{.type}={.status}/{.reason} {end}")
	}
	s.kubectl(t, "wait", "--for=condition=Failed", "--timeout=60s", "mpijob/malformed")
	if got := status("malformed"); !strings.Contains(got, "Failed=True/BackoffLimitExceeded") {
		t.Errorf("the job whose launcher fails says %s", got)
	}
	s.kubectl(t, "wait", "--for=condition=Suspended", "--timeout=60s", "mpijob/resting")
	eventually(t, time.Minute, func() error {
		suspended, _, code := s.diwan("kubectl", "get", "job/resting-launcher", "-o", "jsonpath={.spec.suspend}")
		if pods := s.kubectl(t, "get", "pods", "-l", "training.kubeflow.org/job-name=resting", "-o", "name"); code != 0 || suspended != "true" || pods != "" {
			return fmt.Errorf("its Job is suspended: %s; its Pods are %q", suspended, pods)
		}
		return nil
	})
	s.kubectl(t, "patch", "mpijobs.v2beta1.kubeflow.org/resting", "--type=merge", "-p", `{"spec":{"runPolicy":{"suspend":false}}}`)
	s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=120s", "mpijob/resting")
	if got, want := status("resting"), "Suspended=False/MPIJobResumed"; !strings.Contains(got, want) {
		t.Errorf("the job that was resumed says %s, want %s", got, want)
	}
	isPi(t, s.kubectl(t, "logs", "job/resting-launcher"), "resting-launcher", "resting-worker-0")

	s.kubectl(t, "label", "mpijobs.v1.kubeflow.org/resting", "by=v1")
	s.kubectl(t, "label", "mpijobs.v2beta1.kubeflow.org/resting", "by-too=v2beta1")
	if got := s.kubectl(t, "get", "mpijobs.v1.kubeflow.org/earlier", "-o", "jsonpath={.spec.mpiImplementation}"); got != "" {
		t.Errorf("a job of v1 names the implementation %q", got)
	}
	_, stderr, code := s.diwan("kubectl", "patch", "mpijobs.v2beta1.kubeflow.org/earlier", "--type=merge", "-p", `{"spec":{"slotsPerWorker":2}}`)
	if code == 0 || !strings.Contains(stderr, "this MPIJob has version v1, not v2beta1") {
		t.Errorf("a job of v1 changed as one of v2beta1 gives %q", stderr)
	}
	s.kubectl(t, "delete", "mpijobs.v2beta1.kubeflow.org/resting", "mpijobs.v1.kubeflow.org/earlier", "--timeout=60s")
	eventually(t, time.Minute, func() error {
		if left := s.kubectl(t, "get", "jobs,pods,services,configmaps,secrets", "-o", "name"); strings.Contains(left, "resting") {
			return fmt.Errorf("of a job that was deleted there is still\n%s", left)
		}
		return nil
	})
}
