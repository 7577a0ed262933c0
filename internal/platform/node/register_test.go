// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestRegisterWaits registers at an API server whose storage is away at first, and
// at one that does not let it.
func TestRegisterWaits(t *testing.T) {
	t.Parallel()
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, tc := range map[string]struct {
		reason string
		fails  []error // each request in turn
		err    string
		asked  int // at least so often
	}{
		"Away":      {"Storage that is killed is back soon", []error{errors.New("connection refused"), nil, apierrors.NewInternalError(errors.New("etcd is gone")), nil, nil, apierrors.NewConflict(nodes, "n", nil)}, "", 10},
		"Forbidden": {"No time will change that", []error{apierrors.NewForbidden(nodes, "n", errors.New("not you"))}, `cannot register node n: nodes "n" is forbidden: not you`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			asked := 0
			client.PrependReactor("*", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
				asked++
				if asked <= len(tc.fails) && tc.fails[asked-1] != nil {
					return true, nil, tc.fails[asked-1]
				}
				return false, nil, nil
			})
			n := &Node{cfg: Config{Client: client, NodeName: "n", LeaseDuration: time.Minute}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := n.register(ctx)
			switch {
			case tc.err == "" && err != nil, tc.err != "" && (err == nil || err.Error() != tc.err):
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.err)
			case asked < tc.asked:
				t.Errorf("%s: asked %d times", tc.reason, asked)
			}
			if _, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); (err == nil) != (tc.err == "") {
				t.Errorf("%s: the Node: %v", tc.reason, err)
			}
		})
	}
}
