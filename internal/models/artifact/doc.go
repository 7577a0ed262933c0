// SPDX-License-Identifier: Apache-2.0

// Package artifact reads and writes models as OCI artifacts: manifests, configurations and media types.
//
//   - ModelPack, the CNCF's specification (github.com/modelpack/model-spec v0.0.7), is what Diwan writes
//     unless told otherwise: a file is a layer as it is ("raw"), so equal files are equal blobs.
//   - ORMB, the format of github.com/kleveross/ormb, is one layer, a tar.gz of model/, and the metadata of
//     ormbfile.yaml as configuration.
//   - KitOps, the kits of github.com/kitops-ml/kitops, are read only: a tar per entry of the Kitfile.
//
// Manifests come from anywhere. [Parse] bounds their size and the number of layers, and refuses digests
// other than SHA-256, negative sizes, layers elsewhere, and file names that are used twice or lead out of
// the model's folder.
package artifact
