// SPDX-License-Identifier: Apache-2.0

// Package access says who may report, read and delete the metrics of which
// trial, by what the Kubernetes API knows.
//
// Katib's clients send nothing but the trial's name, so the caller is known by
// the connection:
//
//	who                          is known by                 may
//	a Pod                        its address                 report for the trial whose label it bears,
//	                                                         read the trials of its namespace
//	a Pod with a token of the    TokenReview, which names    as above
//	audience diwan-metrics       the Pod
//	the owner of a laptop        the user that the system    everything
//	                             names for the socket
//	anyone with a bearer token   TokenReview                 what RBAC lets them do to the Trial:
//	in the metadata                                          get to read, update to report, delete
//
// A name is looked for in the caller's own namespace: the Pod's, or that of the
// token's service account. The metadata key [NamespaceKey] names another one. The
// owner of a laptop has none; there the name must be that of one trial alone.
//
// Pods on the network of their node cannot be told apart, and need a token.
package access
