// SPDX-License-Identifier: Apache-2.0

// Package nativetest tests training jobs as gangs of Kubernetes' own PodGroups,
// which its scheduler places in one cycle. It has a cluster of its own, since all
// training jobs of a cluster are gangs of one kind.
package nativetest
