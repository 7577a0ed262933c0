// SPDX-License-Identifier: Apache-2.0

// Package domain defines the contract between the platform and its domains: tuning,
// training, scheduling and those to come.
//
//	Domain  declares kinds with their RBAC rules, webhooks, and SetUp
//	Host    provides a manager, a cache of the domain's own, and all kinds
//
// Apart from SetUp, a [Domain] is plain data: the chart's roles and webhooks, the
// kinds that trials may run, and the operator's --without are derived from the same
// list as the reconcilers. The platform does not know its domains; a domain knows
// neither the others nor where it runs.
package domain
