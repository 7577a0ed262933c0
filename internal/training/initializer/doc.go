// SPDX-License-Identifier: Apache-2.0

// Package initializer fetches a TrainJob's inputs: data, or a pretrained model.
//
//	file:///path, hf://owner/name[/subdirectory], s3://bucket/prefix,
//	oci://registry/name:tag  ─▶  files in a directory
//
// It replaces Kubeflow Trainer's initializer images, with the same variables, and
// needs neither Python nor a cloud SDK. A file appears under its name once it is
// complete; one that exists with the expected size is not fetched again, so that an
// interrupted fetch resumes.
package initializer
