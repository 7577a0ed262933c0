// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// DefaultNamespace is where Katib is, and Diwan unless it is installed elsewhere.
const DefaultNamespace = "kubeflow"

// Where Katib keeps its configuration, in its own namespace.
const (
	ConfigName = "katib-config"
	configKey  = "katib-config.yaml"
)

// DBManagerAddress is where services find the points of trials, as in Katib, if
// Diwan is in a namespace; "" is the default one.
func DBManagerAddress(namespace string) string {
	return "katib-db-manager." + cmp.Or(namespace, DefaultNamespace) + ":6789"
}

// ErrUnknown is wrapped by the error of looking for a service that is not
// configured.
var ErrUnknown = errors.New("no such service is configured")

// Services are those that a configuration names, by the name of the algorithm.
type Services struct{ Suggestions, EarlyStoppings map[string]Service }

// Service is an entry of a KatibConfig: one that runs elsewhere and is reached
// at Endpoint, host:port, which Katib does not know; or one that is run, for each
// experiment, from the Image of the container.
type Service struct {
	AlgorithmName string `json:"algorithmName"`
	Endpoint      string `json:"endpoint"`
	// Container is the container to run. Its name may be empty.
	corev1.Container `json:",inline"`
	// Resource are the container's resources, by the name that entries of early
	// stopping have for them.
	Resource corev1.ResourceRequirements `json:"resource"`
	// What the Pod has beside the container.
	ServiceAccountName string                     `json:"serviceAccountName"`
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext"`
	// What is mounted at VolumeMountPath with the policy FromVolume. Without a
	// PersistentVolumeSpec the volume is the claim's storage class's.
	VolumeMountPath           string                           `json:"volumeMountPath"`
	PersistentVolumeClaimSpec corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec"`
	PersistentVolumeSpec      *corev1.PersistentVolumeSpec     `json:"persistentVolumeSpec"`
	PersistentVolumeLabels    map[string]string                `json:"persistentVolumeLabels"`
}

// Usable reports whether the service can be asked.
func (s Service) Usable() bool { return s.Endpoint != "" || s.Image != "" }

// ParseConfig parses the services in a KatibConfig and ignores the rest.
func ParseConfig(text string) (Services, error) {
	var config struct {
		Runtime struct {
			Suggestions    []Service `json:"suggestions"`
			EarlyStoppings []Service `json:"earlyStoppings"`
		} `json:"runtime"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		// Users see the error, and may not read the ConfigMap: it is not quoted.
		return Services{}, fmt.Errorf("cannot read %s of ConfigMap %s: it is not a KatibConfig", configKey, ConfigName)
	}
	services := Services{map[string]Service{}, map[string]Service{}}
	for field, list := range map[string]struct {
		from []Service
		to   map[string]Service
	}{
		"runtime.suggestions":    {config.Runtime.Suggestions, services.Suggestions},
		"runtime.earlyStoppings": {config.Runtime.EarlyStoppings, services.EarlyStoppings},
	} {
		for i, s := range list.from {
			if s.Endpoint != "" {
				if _, _, err := net.SplitHostPort(s.Endpoint); err != nil {
					return Services{}, fmt.Errorf("cannot use ConfigMap %s: %s[%d].endpoint: want host:port", ConfigName, field, i)
				}
			}
			list.to[s.AlgorithmName] = s
		}
	}
	return services, nil
}

// Directory finds services.
type Directory struct {
	// Reader reads the ConfigMap, uncached.
	Reader client.Reader
	// Namespace is the ConfigMap's namespace. Default DefaultNamespace.
	Namespace string
}

// Services reads which services there are. Without a configuration there are none.
func (d Directory) Services(ctx context.Context) (Services, error) {
	var m corev1.ConfigMap
	key := client.ObjectKey{Namespace: cmp.Or(d.Namespace, DefaultNamespace), Name: ConfigName}
	err := d.Reader.Get(ctx, key, &m)
	if apierrors.IsNotFound(err) {
		return Services{}, nil
	}
	if err != nil {
		return Services{}, fmt.Errorf("cannot read ConfigMap %s: %w", key, err)
	}
	services, err := ParseConfig(m.Data[configKey])
	if err != nil {
		return Services{}, fmt.Errorf("namespace %s: %w", key.Namespace, err)
	}
	return services, nil
}

// Find returns an algorithm's service among those by name.
func Find(services map[string]Service, name string) (Service, error) {
	service, ok := services[name]
	switch {
	case !ok:
		return Service{}, fmt.Errorf("algorithm %q is not built in, and %w in ConfigMap %s", name, ErrUnknown, ConfigName)
	case !service.Usable():
		return Service{}, fmt.Errorf("algorithm %q has neither endpoint nor image in ConfigMap %s: set one of them", name, ConfigName)
	}
	return service, nil
}
