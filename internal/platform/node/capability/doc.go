// SPDX-License-Identifier: Apache-2.0

// Package capability computes the capabilities of a container: which of root's rights
// its processes have.
//
// # Model
//
//	Default()                       what containers have on a cluster
//	  .Apply(add, drop)             a securityContext's wishes, as a kubelet takes them
//	  .Intersect(Available())       what this process can give at all
//
// A Set is the mask that the kernel uses. What becomes the container limits its bounding
// set to it (prctl), and then makes it its permitted and effective sets (capset); its
// inheritable and ambient sets are empty. In a new user namespace it has all capabilities
// over what the namespace owns, whatever this process has.
package capability
