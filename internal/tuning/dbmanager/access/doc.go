// SPDX-License-Identifier: Apache-2.0

// Package access decides who may report, read and delete the metrics of which trial, based on the
// Kubernetes API.
//
// Katib's clients send only the trial's name, so the caller is identified by the connection:
//
//	who                          is known by                 may
//	a Pod                        its address                 report for the trial whose label it bears,
//	                                                         read the trials of its namespace
//	a Pod with a token of the    TokenReview, which names    as above
//	audience diwan-metrics       the Pod
//	the owner of a laptop        a secret in the metadata,   everything
//	                             or the user that the
//	                             system names for the socket
//	anyone with a bearer token   TokenReview                 what RBAC lets them do to the Trial:
//	in the metadata                                          get to read, update to report, delete
//
// Programs that ask for trials always send a token.
//
// A name is looked up in the caller's own namespace: the Pod's, or that of the token's service
// account. The metadata key [NamespaceKey] overrides it. The owner of a laptop has none; there the
// name must be unique among all namespaces.
//
// Pods in the host network cannot be told apart, and need a token.
package access
