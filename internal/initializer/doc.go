// SPDX-License-Identifier: Apache-2.0

// Package initializer fetches what a TrainJob trains on: data, or a model to
// start from.
//
//	file:///path, hf://owner/name[/subdirectory], s3://bucket/prefix,
//	oci://registry/name:tag  ─▶  files in a directory
//
// It stands in for Kubeflow Trainer's initializer images, with their variables,
// and needs nothing but what they are told: no Python, no client of a cloud. A file
// appears under its name once it is complete; one that is there with the size that
// it should have is not fetched again, so that a fetch that was cut off goes on.
package initializer
