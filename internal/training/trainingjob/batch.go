// SPDX-License-Identifier: Apache-2.0

package trainingjob

import "golang.org/x/sync/errgroup"

// atOnce bounds how many objects of one job are created at the same time.
const atOnce = 16

// batches does something with each of all, several at once: first one, then two,
// then four, so that where nothing can be created, as with a quota that is used
// up, little is tried. It returns the first error, after which no more begin;
// those that have begun are not cut off.
func batches[T any](all []T, do func(T) error) error {
	for size := 1; len(all) > 0; size = min(2*size, atOnce) {
		size = min(size, len(all))
		var group errgroup.Group
		for _, one := range all[:size] {
			group.Go(func() error { return do(one) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		all = all[size:]
	}
	return nil
}
