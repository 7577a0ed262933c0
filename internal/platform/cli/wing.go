// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"diwan.dev/diwan/internal/platform/cli/check"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/podlog"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/observation"
)

// House is all that the command line knows of domains.
type House struct {
	Wings []Wing
	// Laptop is how the domains are on a local cluster.
	Laptop Laptop
}

// Wing is a domain on the command line. All but the name is optional.
type Wing struct {
	// Name is that of the domain's directory below internal.
	Name string
	// AddToScheme registers the Go types of the domain's objects.
	AddToScheme func(*runtime.Scheme) error
	// Kinds are the domain's: a local cluster is ready once it serves them.
	Kinds []domain.Kind
	// Commands are beside those of the platform.
	Commands []func(Streams) *cobra.Command
	// Programs are what this binary is by other names, by these.
	Programs map[string]Program
	// Follow says how `diwan run` follows those kinds that come to an end.
	Follow []follow.Kind
	// Logs says how `diwan logs` finds the Pods of kinds.
	Logs []podlog.Kind
	// Check says what `diwan check` cannot see by the Pod templates of kinds.
	Check []check.Kind
	// Images and Decorators are those of the domain on a laptop, for what `diwan check` foresees.
	Images     []image.Entry
	Decorators []node.Decorator
	// Operator is the domain's part of `diwan operator`. Nil: it has no reconcilers.
	Operator *Operator
}

// Program runs as the program of a name, with what follows that on the command line, and returns its
// exit code.
type Program func(program string, args []string, streams Streams) int

// Laptop is how the domains are on a local cluster.
type Laptop struct {
	// AddFlags gives `diwan up` the flags on which Wings depends. Nil: there are none.
	AddFlags func(*pflag.FlagSet)
	// Wings are the domains, given what the laptop lends them.
	Wings func(*laptop.Lent) ([]laptop.Wing, error)
}

// Operator is a domain in one call of `diwan operator`.
type Operator struct {
	// AddFlags gives the command the domain's own flags.
	AddFlags func(*pflag.FlagSet)
	// Domain makes the domain once the flags are read. Required.
	Domain func(Lent) (domain.Domain, error)
	// Addresses say where the domain's servers listen, by their names; "" and "0" are nowhere. Nil: none does.
	Addresses func() map[string]string
}

// Lent is what `diwan operator` lends to domains.
type Lent struct {
	// Namespace is where Diwan is installed.
	Namespace string
	// Store is the observation store.
	Store observation.Store
	// Service leads to the address of the webhooks. Nil: none does.
	Service *Service
}

// Service is where Pods reach what answers at the address of the webhooks.
type Service struct {
	// URL is https://host:port.
	URL string
	// Authorities returns the certificates that vouch for it, PEM encoded, or why they are not known yet.
	Authorities func() ([]byte, error)
	// Unverifiable says why Authorities will never know. Nil: they will.
	Unverifiable error
}

func (h *House) kinds() []domain.Kind {
	var kinds []domain.Kind
	for _, w := range h.Wings {
		kinds = append(kinds, w.Kinds...)
	}
	return kinds
}

// Followed are the kinds that `diwan run` follows.
func (h *House) Followed() follow.Kinds {
	kinds := follow.Kubernetes()
	for _, w := range h.Wings {
		kinds = append(kinds, w.Follow...)
	}
	return kinds
}

// Logged are the kinds whose logs `diwan logs` finds.
func (h *House) Logged() podlog.Kinds {
	var kinds []podlog.Kind
	for _, w := range h.Wings {
		kinds = append(kinds, w.Logs...)
	}
	return podlog.Kubernetes(kinds...)
}

// Checked are the kinds of which `diwan check` must be told what Pods they have.
func (h *House) Checked() check.Kinds {
	var kinds check.Kinds
	for _, w := range h.Wings {
		kinds = append(kinds, w.Check...)
	}
	return kinds
}

func (h *House) operators() []*Operator {
	var parts []*Operator
	for _, w := range h.Wings {
		if w.Operator != nil {
			parts = append(parts, w.Operator)
		}
	}
	return parts
}

// forecast is the node of this machine with all domains.
func (h *House) forecast(home laptop.Home, environ []string) (*node.Forecast, error) {
	var entries []image.Entry
	var decorators []node.Decorator
	for _, w := range h.Wings {
		entries, decorators = slices.Concat(entries, w.Images), slices.Concat(decorators, w.Decorators)
	}
	images, err := image.Open(image.Default(string(home), entries...))
	if err != nil {
		return nil, err
	}
	return node.NewForecast(images, environ, decorators...), nil
}

// scheme has the types of Kubernetes and of all domains.
func (h *House) scheme() (*runtime.Scheme, error) {
	var domains []domain.Domain
	for _, w := range h.Wings {
		domains = append(domains, domain.Domain{Name: w.Name, AddToScheme: w.AddToScheme})
	}
	return domain.NewScheme(domains...)
}
