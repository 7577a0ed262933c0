// SPDX-License-Identifier: Apache-2.0

// Package deployment builds the objects that run an experiment's algorithm
// services from images: a Deployment with one Pod, a Service for it, with the
// policy FromVolume a claim, and for an early stopping service a service account
// that may stop trials. Names, labels, ports and containers are Katib's, so that
// images built for Katib find what they expect.
//
// [Objects] is a pure function; the suggestion reconciler creates what it returns.
package deployment
