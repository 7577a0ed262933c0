// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	"diwan.dev/diwan/internal/platform/laptop"
)

// kubectl returns the command that is kubectl with the credentials of the cluster that diwan
// works against. Everything after its name is kubectl's.
func (a *app) kubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGUMENT...",
		Short: "Run kubectl against the local cluster",
		Long: `Kubectl runs the built-in kubectl with the credentials of the local cluster, or of
the cluster selected by --context or --kubeconfig before the word kubectl.

If no local cluster is running, one runs for the duration of the command.`,
		Example: `  diwan kubectl get experiments,trials
  diwan kubectl logs -f my-pod
  diwan --context my-cluster kubectl get nodes`,
		DisableFlagParsing: true,
		ValidArgsFunction:  a.completeKubectl,
		RunE: func(_ *cobra.Command, args []string) error {
			args = a.options.takeHome(args)
			if a.options.namespace != "" {
				args = append([]string{"--namespace", a.options.namespace}, args...)
			}
			return a.runKubectl(args)
		},
	}
}

// takeHome takes --home off the front of kubectl's arguments, where many write it: kubectl has no
// such flag.
func (o *options) takeHome(args []string) []string {
	if len(args) > 1 && args[0] == "--home" {
		o.home = args[1]
		return args[2:]
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "--home=") {
		o.home = strings.TrimPrefix(args[0], "--home=")
		return args[1:]
	}
	return args
}

// runKubectl runs kubectl with its own arguments.
func (a *app) runKubectl(args []string) error {
	if !needsCluster(args) {
		return a.execKubectl(args, "", "")
	}
	if a.options.remote() {
		return a.execKubectl(args, a.options.kubeconfig, a.options.context)
	}
	home, err := a.options.homeDir()
	if err != nil {
		return err
	}
	if home.Owner() != 0 {
		// kubectl handles signals itself: this process has no cluster to stop.
		return a.joinKubectl(home, args)
	}
	if err := a.options.enter(); err != nil {
		return err
	}
	ctx, release := Interruptible(context.Background())
	defer release()
	t, err := a.options.connect(ctx, quietDisplay{})
	if err != nil {
		return err
	}
	defer t.close()
	if slices.Contains(args, "explain") {
		if err := waitDocumented(ctx, t.config); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- a.execKubectl(args, home.Kubeconfig(), "") }()
	select {
	case err := <-ended:
		if t.owned != nil {
			fmt.Fprintln(a.streams.Err, "(the local cluster ran only for this command; `diwan up` keeps it running)")
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// joinKubectl runs kubectl against the local cluster that another diwan runs.
func (a *app) joinKubectl(home laptop.Home, args []string) error {
	t, err := a.options.join(context.Background(), home)
	if errors.Is(err, errOwnerEnded) {
		return a.runKubectl(args)
	}
	if err != nil {
		return err
	}
	defer t.close()
	if slices.Contains(args, "explain") {
		if err := waitDocumented(context.Background(), t.config); err != nil {
			return err
		}
	}
	return a.execKubectl(args, home.Kubeconfig(), "")
}

// needsCluster reports whether a kubectl command talks to a cluster: all but those on its help.
func needsCluster(args []string) bool {
	if len(args) == 0 {
		return false
	}
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "-h" || arg == "--help" {
			return false
		}
	}
	switch args[0] {
	case "help", "completion", "kustomize", "options", "plugin":
		return false
	}
	return true
}

// execKubectl runs the embedded kubectl. Where it would end the process, its exit code is returned
// as an error, so that a cluster of this process is stopped first.
func (a *app) execKubectl(args []string, kubeconfig, context string) (err error) {
	command := a.embedded(withKubeconfig(args, kubeconfig), kubeconfig, context)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ExitError:
			err = r
		default:
			panic(r)
		}
	}()
	kubectlutil.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(a.streams.Err, message)
		}
		panic(&ExitError{code})
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(a.streams.Err, "error:", err)
		return &ExitError{exitFailed}
	}
	return nil
}

// withKubeconfig gives `kubectl config` the file that it shows or edits, which would else be the
// user's own: that command alone does not heed what the others are given.
func withKubeconfig(args []string, kubeconfig string) []string {
	at := slices.Index(args, "config")
	if kubeconfig == "" || at != 0 && (at != 2 || args[0] != "--namespace") {
		return args
	}
	return slices.Insert(slices.Clone(args), at+1, "--kubeconfig="+kubeconfig)
}

// embedded returns kubectl's own command.
func (a *app) embedded(args []string, kubeconfig, context string) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	if kubeconfig != "" {
		flags.KubeConfig = &kubeconfig
	}
	if kubeconfig != "" && !a.options.remote() && os.Getenv("KUBECACHEDIR") == "" {
		cache := filepath.Join(filepath.Dir(kubeconfig), "kubectl-cache") // goes with the home
		flags.CacheDir = &cache
	}
	if context != "" {
		flags.Context = &context
	}
	command := kubectl.NewKubectlCommand(kubectl.KubectlOptions{
		Arguments:   append([]string{"kubectl"}, args...),
		ConfigFlags: flags,
		IOStreams:   genericiooptions.IOStreams{In: a.streams.In, Out: a.streams.Out, ErrOut: a.streams.Err},
	})
	command.SetArgs(args)
	command.SetIn(a.streams.In)
	command.SetOut(a.streams.Out)
	command.SetErr(a.streams.Err)
	command.SilenceErrors = true
	command.SilenceUsage = true
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	command.PersistentFlags().AddGoFlag(logging.Lookup("v"))
	return command
}

// completeKubectl completes kubectl's arguments by asking the embedded kubectl, where a local
// cluster runs or the arguments need none.
func (a *app) completeKubectl(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	home, err := a.options.homeDir()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	kubeconfig := home.Kubeconfig()
	if a.options.kubeconfig != "" {
		kubeconfig = a.options.kubeconfig
	}
	request := append([]string{cobra.ShellCompNoDescRequestCmd}, append(args, toComplete)...)
	command := a.embedded(request, kubeconfig, a.options.context)
	var out strings.Builder
	command.SetOut(&out)
	command.SetErr(io.Discard)
	if err := command.Execute(); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return parseCompletions(out.String())
}

// parseCompletions reads what cobra's completion command prints: a candidate a line, and last a
// colon and the directive.
func parseCompletions(text string) ([]string, cobra.ShellCompDirective) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
