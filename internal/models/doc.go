// SPDX-License-Identifier: Apache-2.0

// Package models is the domain of what training made: models, their versions and
// where these come from.
//
//	Model ◀── ModelVersion ──▶ files in an OCI registry
package models
