// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// warm returns when kinds can be watched. The API server makes a kind's watch
// cache at the first request and refuses watches until it is filled, some
// milliseconds later; a client that it refuses waits a second.
func (c *Cluster) warm(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		url := fmt.Sprintf("https://kubernetes.default.svc/apis/%s/%s/%s?watch=1&timeoutSeconds=1&resourceVersion=0",
			definition.Spec.Group, definition.Spec.Versions[0].Name, definition.Spec.Names.Plural)
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			return c.answers(ctx, url)
		})
		if err != nil {
			return fmt.Errorf("cannot watch %s: %w", definition.Name, err)
		}
	}
	return nil
}

// answers says whether the API server serves url now, and not only later.
func (c *Cluster) answers(ctx context.Context, url string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+c.tokens.byUser[operatorUser])
	resp, err := c.within.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusTooManyRequests, http.StatusNotFound, http.StatusServiceUnavailable:
		return false, nil
	default:
		return false, fmt.Errorf("the API server answers %d", resp.StatusCode)
	}
}
