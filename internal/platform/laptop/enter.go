// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// Enter executes this program anew, in the user namespace in which an ordinary
// user can give Pods networks of their own: that of the containers which an
// earlier owner of the home left running, or a new one. It returns where there
// is nothing to do or it is not possible; Pods then share the machine's network,
// and the Network says why.
func Enter(home Home) {
	_ = rootless.Enter(append(runstate.Living(home.Path("node", "pods")), runstate.Living(home.Path("node", "sandboxes"))...))
}
