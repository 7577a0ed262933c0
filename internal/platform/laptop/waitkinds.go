// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

// How often it is looked whether kinds are served, and for how long.
const (
	servedPoll     = 10 * time.Millisecond
	servedPatience = 30 * time.Second
)

// waitServed returns when the API server serves kinds and says so. It does not ask
// for objects: a kind's handler takes a while to make, and whoever needs the kind
// has it made beside other things.
func (c *Cluster) waitServed(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.as(operatorUser))
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	wanted := map[string][]string{}
	for _, d := range definitions {
		gv := schema.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name}.String()
		wanted[gv] = append(wanted[gv], d.Spec.Names.Plural)
	}
	group, ctx := errgroup.WithContext(ctx)
	for gv, plurals := range wanted {
		group.Go(func() error {
			return waitListed(ctx, map[string][]string{gv: plurals}, func() ([]*metav1.APIResourceList, error) {
				list, err := client.ServerResourcesForGroupVersion(gv)
				return []*metav1.APIResourceList{list}, err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// The document of all groups, which clients read, follows those of each.
	return waitListed(ctx, wanted, func() ([]*metav1.APIResourceList, error) {
		_, lists, err := client.ServerGroupsAndResources()
		return lists, err
	})
}

// waitListed returns when the lists have what is wanted of each group and version.
func waitListed(ctx context.Context, wanted map[string][]string, read func() ([]*metav1.APIResourceList, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, servedPoll, servedPatience, true, func(context.Context) (bool, error) {
		var lists []*metav1.APIResourceList
		lists, last = read()
		return listed(lists, wanted), nil // an error may be about other groups
	})
	if err != nil {
		return fmt.Errorf("the API server does not serve all of %v: %w", wanted, errors.Join(err, last))
	}
	return nil
}

// listed tells whether lists have the resources that are wanted of each group and
// version.
func listed(lists []*metav1.APIResourceList, wanted map[string][]string) bool {
	has := map[string]bool{}
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, r := range list.APIResources {
			has[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for gv, plurals := range wanted {
		if slices.ContainsFunc(plurals, func(plural string) bool { return !has[gv+"/"+plural] }) {
			return false
		}
	}
	return true
}
