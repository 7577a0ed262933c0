// SPDX-License-Identifier: Apache-2.0

// Package deployment says what runs the algorithm services of an experiment
// whose configuration names images for them: a Deployment of one Pod, a Service
// that leads to it, with the policy FromVolume a claim, and for a service of early
// stopping an account that may stop trials. Names, labels, ports and containers
// are Katib's, so that images made for Katib find what they expect.
//
// [Objects] is a pure function; the suggestion reconciler creates what it returns.
package deployment
