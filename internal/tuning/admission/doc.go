// SPDX-License-Identifier: Apache-2.0

// Package admission answers the API server's questions about this module's
// kinds: the defaults of an experiment, and whether an object may be written.
// It also makes the Pods of a trial known as such when they are created, whatever
// the trial's run object is.
//
// Handlers returns the answers as HTTP handlers by path, for any server with
// TLS. Mutating and Validating return the configurations that make the API
// server ask them. The rules themselves are in packages v1beta1 and
// trialtemplate; here they only meet the wire.
//
// Fields that the API does not have are dropped, as Katib does, but with a
// warning that names them, which kubectl prints.
package admission
