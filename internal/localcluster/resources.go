// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentHash is the annotation by which an object that this package
// installed is known to be up to date.
const contentHash = "diwan.dev/content-hash"

// installResources makes sure of what a cluster has before its users come:
// our kinds, the namespace of Kubeflow's examples, a storage class, and others.
func installResources(ctx context.Context, c client.Client, definitions []*apiextensionsv1.CustomResourceDefinition, others ...client.Object) error {
	kubeflow := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   "kubeflow",
		Labels: map[string]string{"katib.kubeflow.org/metrics-collector-injection": "enabled"},
	}}
	if err := c.Create(ctx, kubeflow); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create namespace kubeflow: %w", err)
	}
	for _, other := range append(others, storageClass()) {
		if err := install(ctx, c, other); err != nil {
			return err
		}
	}
	// After the webhooks, so that nothing is created without being asked about.
	for _, definition := range definitions {
		if err := install(ctx, c, definition); err != nil {
			return err
		}
	}
	for _, definition := range definitions {
		if err := waitEstablished(ctx, c, definition.Name); err != nil {
			return err
		}
	}
	return nil
}

// install creates obj, or replaces one that an earlier version installed.
func install(ctx context.Context, c client.Client, obj client.Object) error {
	text, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:8])
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[contentHash] = hash
	obj.SetAnnotations(annotations)

	have := obj.DeepCopyObject().(client.Object)
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), have)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, obj)
	case err == nil && have.GetAnnotations()[contentHash] != hash:
		obj.SetResourceVersion(have.GetResourceVersion())
		err = c.Update(ctx, obj)
	}
	if err != nil {
		return fmt.Errorf("cannot install %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
	}
	return nil
}

// waitEstablished returns when the API server serves the kind.
func waitEstablished(ctx context.Context, c client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("cannot install %s: %w", name, err)
	}
	return nil
}
