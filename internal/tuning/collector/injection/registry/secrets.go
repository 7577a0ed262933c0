// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keychain holds the credentials of a Pod's pull secrets, by registry, or by
// registry and the begin of a repository.
type keychain map[string]authn.AuthConfig

// Resolve implements authn.Keychain: the longest name that fits wins.
func (k keychain) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	best, found := "", authn.Authenticator(authn.Anonymous)
	for where, auth := range k {
		fits := where == resource.RegistryStr() || resource.String() == where || strings.HasPrefix(resource.String(), where+"/")
		if fits && len(where) > len(best) {
			best, found = where, authn.FromConfig(auth)
		}
	}
	return found, nil
}

// named reports whether what controls a Pod names an image, anywhere in its
// fields. Only who can read the controller knows its UID.
func (r *Registry) named(ctx context.Context, pod *corev1.Pod, image string) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if r.reader == nil || owner == nil {
		return false, nil
	}
	controller := &unstructured.Unstructured{}
	controller.SetAPIVersion(owner.APIVersion)
	controller.SetKind(owner.Kind)
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, controller)
	if withheld(err) != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("cannot read %s %s, which controls the Pod: %w", owner.Kind, owner.Name, err)
	}
	return err == nil && controller.GetUID() == owner.UID && says(controller.Object, image), nil
}

// says reports whether a text is somewhere in a value read from JSON.
func says(value any, text string) bool {
	switch value := value.(type) {
	case string:
		return value == text
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return says(item, text) })
	case map[string]any:
		for _, item := range value {
			if says(item, text) {
				return true
			}
		}
	}
	return false
}

// keychain reads the pull secrets of a Pod. Those that may not be read, or are
// not there, count as none: the registry may not want any.
func (r *Registry) keychain(ctx context.Context, pod *corev1.Pod) (authn.Keychain, error) {
	references := pod.Spec.ImagePullSecrets
	if len(references) == 0 {
		account := pod.Spec.ServiceAccountName
		if account == "" {
			account = "default"
		}
		var a corev1.ServiceAccount
		if err := r.reader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: account}, &a); withheld(err) != nil {
			return nil, err
		}
		references = a.ImagePullSecrets
	}
	keys := keychain{}
	for _, reference := range references {
		var s corev1.Secret
		err := r.reader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: reference.Name}, &s)
		if withheld(err) != nil {
			return nil, fmt.Errorf("cannot read pull secret %s: %w", reference.Name, err)
		}
		if err == nil {
			if err := keys.read(&s); err != nil {
				return nil, fmt.Errorf("cannot read pull secret %s: it is malformed for its type %s", reference.Name, s.Type) // and is not quoted
			}
		}
	}
	return keys, nil
}

// withheld is err unless it says that there is nothing to be read.
func withheld(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// read adds the credentials of a secret of one of the two kinds.
func (k keychain) read(s *corev1.Secret) error {
	var auths map[string]authn.AuthConfig
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]authn.AuthConfig `json:"auths"`
		}
		if err := json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &file); err != nil {
			return err
		}
		auths = file.Auths
	case corev1.SecretTypeDockercfg:
		if err := json.Unmarshal(s.Data[corev1.DockerConfigKey], &auths); err != nil {
			return err
		}
	}
	for where, auth := range auths {
		k[registryOf(where)] = auth
	}
	return nil
}

// registryOf is the name of a registry by which images bear it.
func registryOf(where string) string {
	for _, prefix := range []string{"https://", "http://"} {
		where = strings.TrimPrefix(where, prefix)
	}
	where = strings.TrimSuffix(where, "/")
	for _, suffix := range []string{"/v1", "/v2"} {
		where = strings.TrimSuffix(where, suffix)
	}
	if where == "docker.io" {
		return "index.docker.io"
	}
	return where
}
