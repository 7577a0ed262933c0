// SPDX-License-Identifier: Apache-2.0

// Package image says what a container image means on a machine without a
// container runtime.
//
// # Model
//
// A [Table] is a list of entries, read from images.yaml in the home directory
// and from further files. An entry names images, exactly or by a glob, and the
// environment that stands for them: programs on PATH, variables, files that
// appear at paths of the container, a default command, a Python environment built once from its
// requirements. [Table.Resolve] finds the entry of an image; the first that
// matches wins, an exact name before a glob.
//
// An image without an entry means the host itself: its command runs there as it
// is. Without a command there is nothing to run, and the error
// ([UnmappedError]) says what to do.
//
//	images:
//	- image: ghcr.io/kubeflow/katib/pytorch-mnist   # any tag
//	  python: {requirements: requirements.txt}      # relative to this file
//	  files: {/opt/pytorch-mnist: ./mnist}          # container path: host path
//	- image: "docker.io/acme/*"
//	  path: [/opt/acme/bin]
//	  env: {ACME_HOME: /opt/acme}
//	  command: [acme]
package image
