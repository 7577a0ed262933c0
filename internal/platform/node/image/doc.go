// SPDX-License-Identifier: Apache-2.0

// Package image maps container images to environments on a machine without a container runtime.
//
// # Model
//
// A [Table] is a list of entries, read from images.yaml in the home directory and from additional
// files. An entry names images, exactly or by a glob, and their environment: programs on PATH,
// variables, files that appear at paths in the container, a default command, a Python environment
// that exists or is built once from its requirements. [Table.Resolve] finds the entry for an image;
// the first match wins, an exact name before a glob.
//
// An entry with runtime: image means the image itself: the node pulls it.
//
// An image without an entry means the image itself, too. An entry of runtime: process that names
// nothing else, and the built-in image [Host], mean the machine itself: the container's command runs
// there unchanged. Without a command there is nothing to run, and the error ([UnmappedError]) says
// what to do.
//
//	images:
//	- image: ghcr.io/kubeflow/katib/pytorch-mnist   # any tag
//	  python: {requirements: requirements.txt}      # relative to this file
//	  files: {/opt/pytorch-mnist: ./mnist}          # container path: host path
//	- image: docker.io/acme/server                # is pulled, and runs in itself
//	  runtime: image
//	- image: "docker.io/acme/*"
//	  path: [/opt/acme/bin]
//	  env: {ACME_HOME: /opt/acme}
//	  command: [acme]
package image
