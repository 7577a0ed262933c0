// SPDX-License-Identifier: Apache-2.0

package seccomp

// decision is what a profile says of one syscall of an architecture: the answer of the
// first branch whose conditions all hold, or else otherwise.
type decision struct {
	branches  []branch
	otherwise answer
}

type branch struct {
	all    []condition
	answer answer
}

// decide returns the decisions about the syscalls that rules name, by number, and the
// number above which the profile knows none. That is only of the common table.
func decide(rules []rule, a *architecture, otherwise answer) (decisions map[uint32]decision, last uint32) {
	decisions = make(map[uint32]decision, len(syscalls))
	for _, r := range rules {
		for _, name := range r.names {
			number, ok := a.number(name)
			if !ok {
				continue
			}
			if number < armPrivate {
				last = max(last, number)
			}
			d, ok := decisions[number]
			switch {
			case r.answer == otherwise, ok && len(d.branches) == 0: // the latter is settled
				continue
			case len(r.all) == 0:
				decisions[number] = decision{otherwise: r.answer}
				continue
			case !ok:
				d.otherwise = otherwise
			}
			for _, all := range r.branches() {
				d.branches = append(d.branches, branch{all: all, answer: r.answer})
			}
			decisions[number] = d
		}
	}
	return decisions, last
}
