// SPDX-License-Identifier: Apache-2.0

// Package union reads files of an image: the merge of its layer directories, as overlayfs would
// show it, without a mount. It knows overlayfs's marks: a character device 0/0 is a whiteout, and the
// extended attribute trusted.overlay.opaque or user.overlay.opaque with the value "y" hides what lies
// below a directory.
//
// What an image contains is hostile. Every path is walked one name at a time, from descriptor to
// descriptor, and symbolic links are resolved inside the image: none leads out of it. Only regular
// files are opened, without blocking, and callers bound what they read.
package union
