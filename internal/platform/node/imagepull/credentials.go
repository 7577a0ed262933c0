// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/secrets"
)

// fromSecrets returns the credentials for a repository (host/path) that Secrets of
// the types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg hold, by a
// kubelet's rules: the longest match first.
func fromSecrets(repository string, list []corev1.Secret) ([]authn.Authenticator, error) {
	keyring, err := secrets.MakeDockerKeyring(list, credentialprovider.UnionDockerKeyring{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the image pull secrets: %w", err)
	}
	found, _ := keyring.Lookup(repository)
	var all []authn.Authenticator
	for _, c := range found {
		all = append(all, authn.FromConfig(authn.AuthConfig{
			Username: c.Username, Password: c.Password, Auth: c.Auth,
			IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
		}))
	}
	return all, nil
}
