// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/config/crd"
)

// waitDocumented returns when a local cluster's API server can explain each of
// our kinds. It serves a kind first and documents it some seconds later, one
// kind after another. kubectl explain needs that, nothing else does.
func waitDocumented(ctx context.Context, config *rest.Config) error {
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	missing, done := "", 0
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		texts := map[string][]byte{}
		for ; done < len(definitions); done++ {
			d := definitions[done]
			missing = d.Name
			group := fmt.Sprintf("apis/%s/%s", d.Spec.Group, d.Spec.Versions[0].Name)
			if texts[group] == nil {
				text, err := client.RESTClient().Get().AbsPath("openapi/v3", group).Do(ctx).Raw()
				if err != nil {
					return false, nil
				}
				texts[group] = text
			}
			if !bytes.Contains(texts[group], []byte(`"/`+path(group, d)+`"`)) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not explain %s yet: %w", missing, err)
	}
	return nil
}

// path is where the objects of a kind are, as the API server documents it.
func path(group string, d *apiextensionsv1.CustomResourceDefinition) string {
	if d.Spec.Scope == apiextensionsv1.ClusterScoped {
		return group + "/" + d.Spec.Names.Plural
	}
	return group + "/namespaces/{namespace}/" + d.Spec.Names.Plural
}
