// SPDX-License-Identifier: Apache-2.0

// Package imagepush pushes images of an image store to registries.
package imagepush
