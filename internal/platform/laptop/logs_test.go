// SPDX-License-Identifier: Apache-2.0

package laptop

import "testing"

// TestEtcdClientLogger holds that the API server still has the variable, which
// no compiler checks: it is set when the server's package is initialised.
func TestEtcdClientLogger(t *testing.T) {
	t.Parallel()
	if etcdClientLogger == nil {
		t.Error("the API server's etcd client has its logger elsewhere: look at storagebackend/factory")
	}
}
