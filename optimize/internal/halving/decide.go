// SPDX-License-Identifier: Apache-2.0

package halving

import (
	"math"
	"slices"
)

// Decision is the next run: the configuration of a run that is promoted, or where
// that is -1 a new one, on a rung of a bracket.
type Decision struct {
	Promoted      int
	Bracket, Rung int
}

// Plan returns how many configurations a bracket has on each rung: none
// on the first ones that it leaves out, then with s+1 rungs left of smax+1
// n = ⌈(smax+1)/(s+1)·η^s⌉ and ⌊n/η^i⌋ on the i-th after that.
func Plan(rungs, bracket int, eta float64) []int {
	first := bracket % rungs
	s := rungs - 1 - first
	n := math.Ceil(float64(rungs) / float64(s+1) * math.Pow(eta, float64(s)) * (1 - 1e-9))
	plan := make([]int, rungs)
	for i := range s + 1 {
		plan[first+i] = max(int(n*math.Pow(eta, -float64(i))*(1+1e-9)), 1)
	}
	return plan
}

// Hyperband decides as Hyperband does (Li et al., "Hyperband: a novel bandit-based
// approach to hyperparameter optimization", JMLR 2018, Algorithm 1), as if it waited
// for each rung, but without waiting: a run is promoted as soon as it is certain to
// be among the best, and where nothing is to do in one bracket the next begins.
// Promotable reports whether the configuration of a run that has ended can be tried
// on the next rung.
func (b *Board) Hyperband(eta float64, promotable func(index int) bool) Decision {
	for bracket := 0; ; bracket++ {
		if bracket < len(b.closed) && b.closed[bracket] {
			continue
		}
		plan := Plan(b.rungs, bracket, eta)
		if i := b.certain(bracket, plan, promotable); i >= 0 {
			return b.promote(i)
		}
		if first := bracket % b.rungs; b.Started(bracket, first) < plan[first] {
			return Decision{-1, bracket, first}
		}
	}
}

// certain returns the best run that is certain to be promoted in a bracket, the
// highest rung first, and -1 if there is none.
func (b *Board) certain(bracket int, plan []int, promotable func(int) bool) int {
	promotion := -1
	come := plan[bracket%len(plan)] // maximum number of configurations on the rung
	waiting := b.Started(bracket, bracket%len(plan)) < come
	for rung := bracket % len(plan); rung < len(plan)-1; rung++ {
		finished := b.Finished(bracket, rung)
		missing := max(come-len(finished), 0)
		candidates := b.candidates(finished, promotable)
		waiting = waiting || missing > 0
		for place, i := range candidates {
			if place+missing >= plan[rung+1] {
				break
			}
			if !b.runs[i].Promoted {
				promotion = i
				break
			}
		}
		if come = plan[rung+1]; missing == 0 {
			come = min(come, len(candidates))
		}
	}
	if promotion < 0 && !waiting {
		b.closed[bracket] = true
	}
	return promotion
}

// ASHA decides as asynchronous successive halving does (Li et al., "A system for
// massively parallel hyperparameter tuning", MLSys 2020, Algorithm 2), in some
// number of brackets: a run is promoted if it is among the best fraction 1/eta of
// those that have ended on its rung, the highest rung first. Promotable is as of
// [Board.Hyperband].
func (b *Board) ASHA(eta float64, brackets int, promotable func(index int) bool) Decision {
	for rung := b.rungs - 2; rung >= 0; rung-- {
		for bracket := range brackets {
			finished := b.Finished(bracket, rung)
			best := finished[:int(float64(len(finished))/eta*(1+1e-9))]
			for _, i := range b.candidates(best, promotable) {
				if !b.runs[i].Promoted {
					return b.promote(i)
				}
			}
		}
	}
	bracket := b.behind(eta, brackets)
	return Decision{-1, bracket, bracket}
}

// behind returns the bracket that is furthest behind its share of the new
// configurations.
func (b *Board) behind(eta float64, brackets int) int {
	best, least := 0, 0.0
	for bracket := range brackets {
		share := Plan(b.rungs, bracket, eta)[bracket]
		filled := float64(b.Started(bracket, bracket)+1) / float64(share)
		if bracket == 0 || filled < least {
			best, least = bracket, filled
		}
	}
	return best
}

// candidates returns those of some runs that were promoted or can be.
func (b *Board) candidates(finished []int, promotable func(int) bool) []int {
	return slices.DeleteFunc(finished, func(i int) bool { return !b.runs[i].Promoted && !promotable(i) })
}

func (b *Board) promote(i int) Decision {
	return Decision{i, b.runs[i].Bracket, b.runs[i].Rung + 1}
}
