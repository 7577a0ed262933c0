// SPDX-License-Identifier: Apache-2.0

// Package admission has what the domains' webhooks share: their configuration,
// decoding of objects, and responses.
//
// Unknown fields are dropped with a warning, which kubectl prints.
package admission
