// SPDX-License-Identifier: Apache-2.0

// Package transfer moves models between a store and registries, and between registries: several blobs at a
// time, each verified by its digest, in memory that does not depend on their size.
//
// A pull is resumed where the partial blobs end, by a range. A push skips blobs that the registry has, mounts
// those that another repository of it has, and sends the others in one request each; what a killed push has sent
// is asked for, and the upload goes on from there. Registries without ranges or without resumption are sent or
// asked for a blob from its beginning. Registries are reached, and credentials found, as for images: by
// registries.yaml and Docker's configuration.
package transfer
