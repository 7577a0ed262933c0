// SPDX-License-Identifier: Apache-2.0

package parzen

import "sort"

// Draw sets x to a random point of the mixture. uniform returns a random
// number that is greater than 0 and less than 1; how often it is called
// depends on what it returns.
func (m *Mixture) Draw(uniform func() float64, x []float64) {
	k := sort.SearchFloat64s(m.shares, uniform())
	if k == m.kernels {
		for j := range x {
			x[j] = uniform()
		}
		m.settle(x)
		return
	}
	for j := range m.axes {
		a := &m.axes[j]
		switch {
		case a.Choices > 0:
			if x[j] = m.at[j][k]; uniform() > keep(a.Choices, m.kernels) {
				x[j] = uniform()
			}
		case m.inverses[j] != nil:
			x[j] = truncated(m.at[j][k], 1/m.inverses[j][k], 0, 1, uniform())
		}
	}
	if m.joint != nil {
		m.joint.draw(k, uniform, x)
	}
	m.settle(x)
}

// keep returns how likely a kernel's own value is beyond the part of it that
// is uniform: see choice.
func keep(choices, n int) float64 {
	return 1 / (1 + float64(choices)/(float64(n)+1))
}

// settle moves coordinates of finite axes to the middles of their cells.
func (m *Mixture) settle(x []float64) {
	for j := range m.axes {
		if a := &m.axes[j]; a.Choices > 0 || a.Edges != nil {
			x[j] = a.middle(a.cell(x[j]))
		}
	}
}
