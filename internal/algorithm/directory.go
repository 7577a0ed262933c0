// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Where Katib keeps its configuration.
const (
	ConfigNamespace = "kubeflow"
	ConfigName      = "katib-config"
	configKey       = "katib-config.yaml"
)

// DBManagerAddress is where services find the points of trials, as in Katib.
const DBManagerAddress = "katib-db-manager.kubeflow:6789"

// ErrUnknown is wrapped by the error of looking for a service that is not
// configured.
var ErrUnknown = errors.New("no such service is configured")

// Services are those that a configuration names.
type Services struct {
	// Suggestions and EarlyStoppings are the addresses, host:port, by the name
	// of the algorithm. "" is one that is to be run from an image.
	Suggestions, EarlyStoppings map[string]string
}

// service is an entry of a KatibConfig. Katib knows no endpoint.
type service struct {
	AlgorithmName string `json:"algorithmName"`
	Endpoint      string `json:"endpoint"`
}

// ParseConfig reads a KatibConfig, of which only what names services counts.
func ParseConfig(text string) (Services, error) {
	var config struct {
		Runtime struct {
			Suggestions    []service `json:"suggestions"`
			EarlyStoppings []service `json:"earlyStoppings"`
		} `json:"runtime"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return Services{}, fmt.Errorf("cannot read %s of ConfigMap %s/%s: %w", configKey, ConfigNamespace, ConfigName, err)
	}
	services := Services{map[string]string{}, map[string]string{}}
	for field, list := range map[string]struct {
		from []service
		to   map[string]string
	}{
		"runtime.suggestions":    {config.Runtime.Suggestions, services.Suggestions},
		"runtime.earlyStoppings": {config.Runtime.EarlyStoppings, services.EarlyStoppings},
	} {
		for i, s := range list.from {
			if s.Endpoint != "" {
				if _, _, err := net.SplitHostPort(s.Endpoint); err != nil {
					return Services{}, fmt.Errorf("cannot use ConfigMap %s/%s: %s[%d].endpoint: %w: want host:port", ConfigNamespace, ConfigName, field, i, err)
				}
			}
			list.to[s.AlgorithmName] = s.Endpoint
		}
	}
	return services, nil
}

// Directory finds services.
type Directory struct {
	// Reader reads the ConfigMap, each time anew.
	Reader client.Reader
}

// Services reads which services there are. Without a configuration there are none.
func (d Directory) Services(ctx context.Context) (Services, error) {
	var m corev1.ConfigMap
	err := d.Reader.Get(ctx, client.ObjectKey{Namespace: ConfigNamespace, Name: ConfigName}, &m)
	if apierrors.IsNotFound(err) {
		return Services{}, nil
	}
	if err != nil {
		return Services{}, fmt.Errorf("cannot read ConfigMap %s/%s: %w", ConfigNamespace, ConfigName, err)
	}
	return ParseConfig(m.Data[configKey])
}

// Find returns the address of an algorithm's service among those by name.
func Find(services map[string]string, name string) (string, error) {
	address, ok := services[name]
	switch {
	case !ok:
		return "", fmt.Errorf("algorithm %q is not one of the search library, and %w in ConfigMap %s/%s", name, ErrUnknown, ConfigNamespace, ConfigName)
	case address == "":
		return "", fmt.Errorf("algorithm %q has no endpoint in ConfigMap %s/%s: run its image as a Deployment and a Service, and name that, host:port", name, ConfigNamespace, ConfigName)
	}
	return address, nil
}
