// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/laptop"
)

// options are the flags that all commands share.
type options struct {
	home       string
	namespace  string
	context    string
	kubeconfig string
	store      string                 // only where a command has addStore
	cpus       uint16                 // only where a command has addCapacity
	memory     resource.QuantityValue // likewise
	output     string
	quiet      bool
	verbose    bool

	// wings are those of a local cluster, and kinds what it serves.
	wings func(*laptop.Lent) ([]laptop.Wing, error)
	kinds []domain.Kind
}

// addTo gives the flags to a command and those below it.
func (o *options) addTo(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&o.home, "home", "", "state directory of the local cluster (default $DIWAN_HOME, else the user's data directory)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of objects that specify none")
	flags.StringVar(&o.context, "context", "", "use this context of the kubeconfig instead of the local cluster")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead of the local one")
	flags.StringVarP(&o.output, "output", "o", "", "output format: json; text if empty")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show only the result and errors")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show more details")
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

// addCapacity gives a command that may start the local cluster the flags --cpus and --memory.
func (o *options) addCapacity(command *cobra.Command) {
	command.Flags().Uint16Var(&o.cpus, "cpus", 0, "total CPUs that Pods may request; more than the machine has lets them share (default the machine's)")
	command.Flags().Var(&o.memory, "memory", "total memory that Pods may request, such as 64Gi; more than the machine has lets them share (default the machine's)")
}

// laptop is how the local cluster is started by these flags.
func (o *options) laptop(home laptop.Home, show display) (laptop.Config, error) {
	store, err := o.storeLocation()
	if err != nil {
		return laptop.Config{}, err
	}
	config := laptop.DefaultConfig(home)
	config.Wings, config.Store = o.wings, store
	config.CPUs, config.Memory = int(o.cpus), o.memory.Value()
	config.Progress, config.Notice = show.step, show.note
	return config, nil
}

// json reports whether the result is to be JSON.
func (o *options) json() (bool, error) {
	switch o.output {
	case "":
		return false, nil
	case "json":
		return true, nil
	}
	return false, Usagef("unknown output format %q: omit -o, or use -o json", o.output)
}

// remote reports whether the command works against a cluster of the user's.
func (o *options) remote() bool { return o.context != "" || o.kubeconfig != "" }

// homeDir is the home of the local cluster.
func (o *options) homeDir() (laptop.Home, error) {
	if o.home == "" {
		return laptop.DefaultHome()
	}
	dir, err := filepath.Abs(o.home)
	if err != nil {
		return "", Usagef("cannot use --home=%s: %w", o.home, err)
	}
	return laptop.Home(dir), nil
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
