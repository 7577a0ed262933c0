// SPDX-License-Identifier: Apache-2.0

// Command kube is one component of a Kubernetes cluster, selected by its first
// argument: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, or
// node, which runs Pods as processes. The rest are that program's own arguments.
// Tests start each component as a separate process, so that nothing has to be
// downloaded for a cluster that is not Diwan's.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var parts = map[string]func() *cobra.Command{
	"etcd":                    etcdCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"node":                    nodeCommand,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "error: name a part of a cluster, such as kube-apiserver")
		os.Exit(2)
	}
	command := parts[os.Args[1]]()
	command.SetArgs(os.Args[2:])
	os.Exit(cli.Run(command))
}
