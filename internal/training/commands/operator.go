// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/training/trainingjob"
	"diwan.dev/diwan/internal/training/trainjob"
)

// newOperator returns the domain's part of `diwan operator`.
func newOperator() *cli.Operator {
	var options training.Options
	return &cli.Operator{
		AddFlags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&options.InstallRuntimes, "install-runtimes", false, "install the ClusterTrainingRuntimes for TrainJobs")
			flags.StringVar(&options.GangScheduler, "gang-scheduler-name", "", "gang scheduler for the Pods of training jobs: kubernetes for Kubernetes' own PodGroups (1.37), volcano, or the name of a scheduler with the coscheduling plugin; none if empty")
			flags.StringVar(&options.InitImage, "pytorch-init-container-image", trainingjob.DefaultInitImage, "image, with a shell, of the containers of PyTorchJobs' workers that wait for the master")
		},
		Domain: func(lent cli.Lent) (domain.Domain, error) {
			options.StatusServer = statusServer(lent.Service)
			return training.Domain(options), nil
		},
	}
}

// statusServer is where the Pods of TrainJobs tell how far they are: at the operator's Service, unless
// there is none, or they could not verify it.
func statusServer(service *cli.Service) trainjob.StatusServer {
	switch {
	case service == nil:
		return trainjob.StatusServer{}
	case service.Unverifiable != nil:
		klog.Background().Info("TrainJobs cannot report their progress", "reason", service.Unverifiable.Error())
		return trainjob.StatusServer{}
	}
	return trainjob.StatusServer{URL: service.URL, Authorities: service.Authorities}
}
