// SPDX-License-Identifier: Apache-2.0

// Package nativetest tests training jobs as gangs with Kubernetes' own PodGroups,
// which its scheduler places in one cycle. It has its own cluster, since all
// training jobs of a cluster are gangs of one kind.
package nativetest
