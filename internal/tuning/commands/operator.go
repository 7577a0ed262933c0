// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"

	"github.com/spf13/pflag"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/tuning"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	"diwan.dev/diwan/internal/tuning/collector/injection/registry"
)

// operator is tuning in `diwan operator`.
type operator struct {
	reportAddress  string
	askAddress     string
	collectorImage string
	collectorStore string
	registries     []string
	services       bool
}

// newOperator returns the domain's part of the command.
func newOperator() *cli.Operator {
	o := &operator{}
	return &cli.Operator{AddFlags: o.addFlags, Domain: o.domain, Addresses: o.addresses}
}

func (o *operator) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.reportAddress, "db-manager-address", "0", "listen address for Katib's gRPC service DBManager, such as :6789; 0 to disable")
	flags.StringVar(&o.askAddress, "ask-address", "0", "listen address for ask and tell by HTTP, such as :6790; gRPC uses --db-manager-address; 0 to disable")
	flags.StringVar(&o.collectorImage, "collector-image", "", "image with diwan-collector, injected as a container into the Pods of trials; none if empty")
	flags.StringVar(&o.collectorStore, "collector-db-manager", "", "address at which the Pods of trials reach the DBManager (default that of Service katib-db-manager in --system-namespace)")
	flags.StringSliceVar(&o.registries, "collector-registries", nil, "registries without a public address that may be queried for an image's command: networks such as 10.1.0.0/16, and hosts such as registry.corp:5000 or *.corp")
	flags.BoolVar(&o.services, "algorithm-services", true, "run algorithm services that have an image in katib-config; those with an endpoint are used anyway")
}

func (o *operator) domain(lent cli.Lent) (domain.Domain, error) {
	options := tuning.Options{Store: lent.Store, RunsNothing: !o.services}
	if o.collectorImage != "" {
		collector := injection.DefaultConfig(o.collectorImage, cmp.Or(o.collectorStore, algorithm.DBManagerAddress(lent.Namespace)))
		options.Collector = &collector
		var err error
		if options.Registries, err = registry.ParseAllowed(o.registries); err != nil {
			return domain.Domain{}, cli.Usagef("cannot use --collector-registries: %v", err)
		}
	}
	return tuning.New(options).Domain(), nil
}

func (o *operator) addresses() map[string]string {
	return map[string]string{tuning.ServerReports: o.reportAddress, tuning.ServerAsk: o.askAddress}
}
