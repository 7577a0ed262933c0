// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// TestHooksInsist checks that a hook is tried until it succeeds or the server
// stops, and never ends the process by an error.
func TestHooksInsist(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	tries := 0
	late := func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	}
	if err := insist("late", late)(genericapiserver.PostStartHookContext{Context: ctx}); err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	never := func(context.Context) error { stop(); return errors.New("never") }
	if err := insist("never", never)(genericapiserver.PostStartHookContext{Context: ctx}); err != nil {
		t.Errorf("of a server that stops: %v", err)
	}
}
