// SPDX-License-Identifier: Apache-2.0

// Command images compares the laptop's containers in images with runc, crun and
// podman, on Linux and as root:
//
//		go run ./bench/images -dir /var/tmp
//
//	  - start: from a present image to the end of `true`: by package sandbox, by
//	    package process, which uses no image, and by the peers.
//	  - pull: an image of 500 MB from a registry on the loopback into an empty
//	    store: by package imagestore and by podman, with its storage drivers.
//	  - disk: what ten images of 10 MB on one base of 300 MB occupy in the stores.
//
// The contestants take turns, and a ratio of medians or of least times is what to
// rely on, since other work on the machine disturbs all alike. Images are made of
// the files below -from. A peer that is missing or fails is reported with its
// error, and left out.
package main
