// SPDX-License-Identifier: Apache-2.0

// Package signing signs models at registries with a key pair, and verifies such signatures, as cosign does
// with --key: the payload is simple signing's (github.com/containers/image docs/containers-signature.5.md), the
// signature ECDSA with SHA-256 in the annotations of a layer of the artifact sha256-DIGEST.sig
// (github.com/sigstore/cosign specs/SIGNATURE_SPEC.md). Keys are those that `cosign generate-key-pair` writes.
// There is no transparency log: what counts is that the key is the right one.
package signing
