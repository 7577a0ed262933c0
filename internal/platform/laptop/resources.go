// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentHash is the annotation by which an object that this package
// installed is known to be up to date.
const contentHash = "diwan.dev/content-hash"

// installResources makes sure of what a cluster has before its users come: some
// objects, webhooks among them, so that nothing is created without being asked about,
// and then kinds.
func installResources(ctx context.Context, c client.Client, definitions []*apiextensionsv1.CustomResourceDefinition, first []client.Object) error {
	if err := installAll(ctx, c, first); err != nil {
		return err
	}
	return installDefinitions(ctx, c, definitions)
}

// installDefinitions creates the definitions that the API server lacks, and
// replaces those that another version installed. It asks once which these are,
// and for no schema.
func installDefinitions(ctx context.Context, c client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, &list); err != nil {
		return fmt.Errorf("cannot list definitions of resources: %w", err)
	}
	have := map[string]string{}
	for i := range list.Items {
		have[list.Items[i].Name] = list.Items[i].Annotations[contentHash]
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, d := range definitions {
		group.Go(func() error {
			hash, err := hashOf(d)
			known, there := have[d.Name]
			if err != nil || there && known == hash {
				return err
			}
			if err := install(ctx, c, d); err != nil || there {
				return err
			}
			return establish(ctx, c, d)
		})
	}
	return group.Wait()
}

// settled is for how long the API server has to have a kind before it creates
// objects of it without delay. It waits in case other API servers do not know the
// kind yet; there are none.
const settled = 3 * time.Second

// establish says of a definition that was just created what the API server's own
// controllers would find, and that this has been so for long enough.
func establish(ctx context.Context, c client.Client, d *apiextensionsv1.CustomResourceDefinition) error {
	since := metav1.NewTime(time.Now().Add(-settled))
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, reason, message string) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: since, Reason: reason, Message: message}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"acceptedNames": d.Spec.Names,
		"conditions": []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found"),
			condition(apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}})
	if err == nil {
		err = c.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("cannot establish %s: %w", d.Name, err)
	}
	return nil
}

// installAll installs objects side by side, since most of the time each waits
// for the disk.
func installAll(ctx context.Context, c client.Client, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, o := range objects {
		group.Go(func() error { return install(ctx, c, o) })
	}
	return group.Wait()
}

// hashOf is by what an object is known that was installed as obj is now.
func hashOf(obj client.Object) (string, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return "", fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// install creates obj, or replaces one that an earlier version installed. A namespace
// that is there is the users' to change.
func install(ctx context.Context, c client.Client, obj client.Object) error {
	if _, ok := obj.(*corev1.Namespace); ok {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create namespace %s: %w", obj.GetName(), err)
		}
		return nil
	}
	hash, err := hashOf(obj)
	if err != nil {
		return err
	}
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
