// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// accountDir is where a Pod finds its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// deliverKubectl returns the command that stands for images which put kubectl into a volume of
// their Pod: it needs no image, because this binary is kubectl too.
func (a *app) deliverKubectl() *cobra.Command {
	return &cobra.Command{
		Use:    "deliver-kubectl",
		Short:  "Put a kubectl with the rights of this Pod into $TARGET_DIR",
		Hidden: true,
		Args:   noArguments,
		RunE: func(*cobra.Command, []string) error {
			host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
			target := os.Getenv("TARGET_DIR")
			if host == "" || port == "" || target == "" {
				return errors.New("cannot deliver kubectl: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT or TARGET_DIR is not set: this command is for an init container of a Pod")
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot deliver kubectl: %w", err)
			}
			return writeKubectl(target, self, "https://"+net.JoinHostPort(host, port), accountDir)
		},
	}
}

// writeKubectl writes into target a program kubectl, which is the binary self, and the credentials
// of the service account in account, which kubectl reads at each use.
func writeKubectl(target, self, server, account string) error {
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return fmt.Errorf("cannot deliver kubectl: the Pod has no service account: %w", err)
	}
	const name = "pod"
	config, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthority: filepath.Join(account, "ca.crt")}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: filepath.Join(account, "token")}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: string(namespace)}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("cannot deliver kubectl: %w", err)
	}
	settings := filepath.Join(target, "config")
	if err := os.WriteFile(settings, config, 0o644); err != nil {
		return fmt.Errorf("cannot deliver kubectl: %w", err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --kubeconfig '%s' kubectl \"$@\"\n", self, settings)
	if err := os.WriteFile(filepath.Join(target, "kubectl"), []byte(script), 0o755); err != nil {
		return fmt.Errorf("cannot deliver kubectl: %w", err)
	}
	return nil
}
