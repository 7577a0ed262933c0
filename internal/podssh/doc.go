// SPDX-License-Identifier: Apache-2.0

// Package podssh is ssh and sshd for Pods that run on a machine and not in an
// image: what an MPI launcher needs to start its daemons in the workers.
//
//	mpirun ─▶ ssh worker command      in the launcher's Pod
//	             │ the keys that both Pods mount, port 2222
//	          sshd ─▶ /bin/sh -c command   in the worker's Pod
//
// A node puts both programs into Pods that mount keys for ssh ([Wants]), where
// they are this binary by another name ([Main]). They speak the real protocol, by
// the names of the Pods, so that nothing else is special on a laptop: manifests,
// keys, host files and mpirun are those of a cluster.
//
// They are less than OpenSSH's: one key, which is the host's too and is checked
// on both sides; commands without a terminal; no forwarding, no settings but the
// port. A command has the environment of the worker's container, as it would have
// by kubectl exec, and the node ends what it leaves behind with the container.
package podssh
