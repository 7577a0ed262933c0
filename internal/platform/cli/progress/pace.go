// SPDX-License-Identifier: Apache-2.0

package progress

import "time"

// pace remembers when the latest trials ended, to estimate how long the others will
// take.
type pace struct {
	// times begins with the time from which the others are counted: the start, or an end that has
	// moved out of the window.
	times []time.Time
}

// window is how many ends are remembered: several rounds of those that run at the same time, so
// that ends that come in bursts even out.
func window(parallel int) int { return max(20, 4*parallel) }

// add takes in that a trial ended.
func (p *pace) add(now time.Time, parallel int) {
	p.times = append(p.times, now)
	if over := len(p.times) - 1 - window(parallel); over > 0 {
		p.times = p.times[over:]
	}
}

// remaining estimates how long n trials will take, or returns false when too few have ended to
// tell. When no trial ends for longer than usual, the estimate grows with the silence.
func (p *pace) remaining(n, parallel int, now time.Time) (time.Duration, bool) {
	ends := len(p.times) - 1
	if ends < max(2, parallel) {
		return 0, false
	}
	first, last := p.times[0], p.times[ends]
	each := max(last.Sub(first)/time.Duration(ends), now.Sub(first)/time.Duration(ends+max(1, parallel)))
	return time.Duration(n) * each, true
}
