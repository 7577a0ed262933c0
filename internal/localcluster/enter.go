// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"diwan.dev/diwan/internal/node/process"
	"diwan.dev/diwan/internal/node/rootless"
)

// Enter executes this program anew, in the user namespace in which an ordinary
// user can give Pods networks of their own: that of the containers which an
// earlier owner of the home left running, or a new one. It returns where there
// is nothing to do or it is not possible; Pods then share the machine's network,
// and the Network says why.
func Enter(home Home) {
	_ = rootless.Enter(process.Living(home.Path("node", "pods")))
}
