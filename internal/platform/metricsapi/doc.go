// SPDX-License-Identifier: Apache-2.0

// Package metricsapi serves the API group metrics.k8s.io for kubectl top and
// HorizontalPodAutoscalers: the current CPU and memory usage of a node and its Pods.
//
// A [Meter] measures only on request. CPU usage is a rate, so two measurements are
// needed: the current one, and that of the previous request or, if that was long ago,
// one taken a moment earlier.
package metricsapi
