// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

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
	missing := ""
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, d := range definitions {
			group := fmt.Sprintf("apis/%s/%s", d.Spec.Group, d.Spec.Versions[0].Name)
			missing = d.Name
			text, err := client.RESTClient().Get().AbsPath("openapi/v3", group).Do(ctx).Raw()
			if err != nil || !bytes.Contains(text, []byte(`"/`+group+`/namespaces/{namespace}/`+d.Spec.Names.Plural+`"`)) {
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
