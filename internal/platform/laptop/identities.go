// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"crypto/rand"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// The cluster's own parts, as the API server knows them.
const (
	operatorUser    = "diwan-operator"
	controllersUser = "system:kube-controller-manager"
	schedulerUser   = "system:kube-scheduler"
	nodeUser        = "diwan-node"
	apiServerUser   = "kube-apiserver" // to the node and the webhooks
)

// tokens are the bearer tokens of the cluster's own parts. They are made anew
// at each start.
type tokens struct {
	file   string
	byUser map[string]string
}

// newTokens writes fresh tokens in the form that kube-apiserver reads.
func newTokens(file string) (tokens, error) {
	t := tokens{file: file, byUser: map[string]string{}}
	var text strings.Builder
	for _, user := range []string{operatorUser, controllersUser, schedulerUser, nodeUser} {
		t.byUser[user] = rand.Text()
		fmt.Fprintf(&text, "%s,%s,%s,system:masters\n", t.byUser[user], user, user)
	}
	return t, writeFile(file, []byte(text.String()), 0o600)
}

// as is the way in of one of the cluster's own parts.
func (c *Cluster) as(user string) *rest.Config {
	return c.within.config(c.tokens.byUser[user], user)
}
