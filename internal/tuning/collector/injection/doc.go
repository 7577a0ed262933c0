// SPDX-License-Identifier: Apache-2.0

// Package injection injects a metrics collector into the Pods of trials, on
// clusters. [Inject] is a pure function from a Pod and its trial to the Pod to
// create; a webhook of the operator applies it.
//
//	┌────────────────── Pod ──────────────────┐
//	│ metrics-logger-and-collector (sidecar)  │──gRPC──▶ DBManager
//	│        ▲ reads                          │
//	│   shared directory                      │
//	│        ▲ writes                         │
//	│ primary container: entry ─▶ the program │
//	└─────────────────────────────────────────┘
//
// The collector is a native sidecar, the last of the init containers: it starts
// before the program and after the proxy of a service mesh, and ends after the
// one and before the other. If metrics come from output or files, the program is
// run by package entry, for which its command must be known: from the manifest
// or, for output only, from the image's registry.
package injection
