// SPDX-License-Identifier: Apache-2.0

// Package podssh is ssh and sshd for Pods that run without an image: an MPI
// launcher uses them to start its daemons in the workers.
//
//	mpirun ─▶ ssh worker command      in the launcher's Pod
//	             │ the keys that both Pods mount, port 2222
//	          sshd ─▶ /bin/sh -c command   in the worker's Pod
//
// A node adds both programs to Pods that mount ssh keys ([Wants]), as this binary
// under another name ([Main]). They use the real protocol and the names of the
// Pods, so that nothing else differs on a laptop: manifests, keys, host files and
// mpirun are those of a cluster.
//
// They implement a subset of OpenSSH: one key, which is also the host key and is
// checked on both sides; commands without a terminal; no forwarding, no settings
// but the port. A command has the environment of the worker's container, as with
// kubectl exec, and the node terminates its remaining processes with the
// container.
package podssh
