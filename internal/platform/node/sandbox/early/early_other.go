// SPDX-License-Identifier: Apache-2.0

//go:build !linux || (!amd64 && !arm64)

package early

// Other systems have no containers of images.
