// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"diwan.dev/diwan/internal/localcluster"
)

// options are the flags that all commands share.
type options struct {
	home       string
	namespace  string
	context    string
	kubeconfig string
	store      string // only where a command has addStore
	cpus       uint16 // only where a command has addCPUs
	output     string
	quiet      bool
	verbose    bool
}

// addTo gives the flags to a command and those below it.
func (o *options) addTo(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&o.home, "home", "", "directory of the local cluster's state (default $DIWAN_HOME, else the user's data directory)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of objects that name none")
	flags.StringVar(&o.context, "context", "", "work against this context of the kubeconfig, not the local cluster")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "work against the cluster of this kubeconfig, not the local one")
	flags.StringVarP(&o.output, "output", "o", "", "form of the result: json; text if empty")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show nothing but the result and errors")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show more of what happens")
	root.MarkFlagDirname("home")
	root.MarkFlagFilename("kubeconfig")
	root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := o.loadingRules().Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// addCPUs gives a command that may start the local cluster the flag --cpus.
func (o *options) addCPUs(command *cobra.Command) {
	command.Flags().Uint16Var(&o.cpus, "cpus", 0, "processors that Pods may ask for together; more than the machine has lets them share (default those of the machine)")
}

// json reports whether the result is to be JSON.
func (o *options) json() (bool, error) {
	switch o.output {
	case "":
		return false, nil
	case "json":
		return true, nil
	}
	return false, usagef("unknown output format %q: leave -o out, or use -o json", o.output)
}

// remote reports whether the command works against a cluster of the user's.
func (o *options) remote() bool { return o.context != "" || o.kubeconfig != "" }

// homeDir is the home of the local cluster.
func (o *options) homeDir() (localcluster.Home, error) {
	if o.home == "" {
		return localcluster.DefaultHome()
	}
	dir, err := filepath.Abs(o.home)
	if err != nil {
		return "", usagef("cannot use --home=%s: %w", o.home, err)
	}
	return localcluster.Home(dir), nil
}

// loadingRules say which kubeconfig files count, as for kubectl.
func (o *options) loadingRules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return rules
}

// clientConfig is the way into the user's cluster.
func (o *options) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.loadingRules(), &clientcmd.ConfigOverrides{CurrentContext: o.context})
}
