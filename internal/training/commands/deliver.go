// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"diwan.dev/diwan/internal/platform/cli"
)

// accountDir is where a Pod finds its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// mpiHostfile is where the launcher of an MPIJob finds its workers, and workerPoll how often it looks whether one runs.
const (
	mpiHostfile = "/etc/mpi/hostfile"
	workerPoll  = 200 * time.Millisecond
)

// deliverKubectl returns the command that stands for images which put kubectl into a volume of
// their Pod: it needs no image, because this binary is kubectl too.
func deliverKubectl(cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:    "deliver-kubectl",
		Short:  "Install a kubectl with this Pod's credentials in $TARGET_DIR, and wait for the workers in /etc/mpi/hostfile",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
			target := os.Getenv("TARGET_DIR")
			if host == "" || port == "" || target == "" {
				return errors.New("cannot install kubectl: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT or TARGET_DIR is not set: this command runs in an init container")
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot install kubectl: %w", err)
			}
			if err := writeKubectl(target, self, "https://"+net.JoinHostPort(host, port), accountDir); err != nil {
				return err
			}
			hosts, err := os.ReadFile(mpiHostfile)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("cannot read the workers: %w", err)
			}
			ctx, release := cli.Interruptible(context.Background())
			defer release()
			return awaitWorkers(ctx, workersIn(string(hosts)), cmd.ErrOrStderr())
		},
	}
}

// workersIn are the Pods that a hostfile of an MPIJob names, but for the launcher, which waits for them.
func workersIn(hostfile string) []string {
	var workers []string
	for line := range strings.Lines(hostfile) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasSuffix(fields[0], "-launcher") {
			workers = append(workers, fields[0])
		}
	}
	return workers
}

// awaitWorkers waits until each worker is running or has run: mpirun fails if one does not exist yet. It logs errors
// of the API server while it waits.
func awaitWorkers(ctx context.Context, workers []string, log io.Writer) error {
	namespace, err := os.ReadFile(filepath.Join(accountDir, "namespace"))
	if err != nil {
		return fmt.Errorf("cannot wait for the workers: %w", err)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("cannot wait for the workers: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot wait for the workers: %w", err)
	}
	said := ""
	for _, name := range workers {
		err := wait.PollUntilContextCancel(ctx, workerPoll, true, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods(string(namespace)).Get(ctx, name, metav1.GetOptions{})
			// The operator may not have made it, or the right to see it, yet.
			if err != nil && err.Error() != said {
				said = err.Error()
				fmt.Fprintf(log, "waiting for worker %s: %s\n", name, said)
			}
			return err == nil && pod.Status.Phase != corev1.PodPending, nil
		})
		if err != nil {
			return fmt.Errorf("cannot wait for worker %s: %w", name, err)
		}
	}
	return nil
}

// writeKubectl writes into target a program kubectl, which is the binary self, and the credentials
// of the service account in account, which kubectl reads at each use.
func writeKubectl(target, self, server, account string) error {
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return fmt.Errorf("cannot install kubectl: the Pod has no service account: %w", err)
	}
	const name = "pod"
	config, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthority: filepath.Join(account, "ca.crt")}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: filepath.Join(account, "token")}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: string(namespace)}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("cannot install kubectl: %w", err)
	}
	settings := filepath.Join(target, "config")
	if err := os.WriteFile(settings, config, 0o644); err != nil {
		return fmt.Errorf("cannot install kubectl: %w", err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --kubeconfig '%s' kubectl \"$@\"\n", self, settings)
	if err := os.WriteFile(filepath.Join(target, "kubectl"), []byte(script), 0o755); err != nil {
		return fmt.Errorf("cannot install kubectl: %w", err)
	}
	return nil
}
