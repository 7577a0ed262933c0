// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
)

// OneShot is the name of the only parameter, with one value, of a space for
// darts, as [diwan.dev/diwan/optimize/nas.OneShot] makes it.
const OneShot = "one-shot"

// dartsAlgorithm is a search that its one trial does by itself. Its settings
// are the trial's and in the point of the space, whose maker has checked them.
func dartsAlgorithm() maker {
	return maker{
		open: true,
		build: func(_ *settings, p Problem) (Sampler, error) {
			if n, finite := p.Space.Size(); !finite || n != 1 || p.Space.Parameter(0).Name != OneShot {
				return nil, fmt.Errorf("space is not one of a one-shot search: want that of nasConfig, as package nas makes it")
			}
			return oneShot{}, nil
		},
	}
}

type oneShot struct{}

func (oneShot) Sample(ctx context.Context, h *History) (Point, error) {
	p, err := unseen(h, 0)
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}
