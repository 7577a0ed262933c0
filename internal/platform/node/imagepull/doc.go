// SPDX-License-Identifier: Apache-2.0

// Package imagepull provides the images that containers run in, as a kubelet does:
// it honours the pull policy, tries the credentials of the Pod's Secrets and of
// a keychain, pulls an image once for all Pods that wait for it, backs
// off from what fails, and tells the Pod's user by a kubelet's events and reasons.
package imagepull
