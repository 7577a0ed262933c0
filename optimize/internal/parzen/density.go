// SPDX-License-Identifier: Apache-2.0

package parzen

import "math"

// LogDensity returns the logarithm of the density at x, by axis.
func (m *Mixture) LogDensity(x []float64) float64 {
	logs := m.logs
	copy(logs, m.peaks)
	for j := range m.axes {
		a := &m.axes[j]
		switch {
		case a.Choices > 0:
			m.addChoice(logs, j, a.cell(x[j]))
		case m.inverses[j] == nil: // joint
		case a.Edges != nil:
			cell := a.cell(x[j])
			m.addCell(logs, j, a.Edges[cell], a.Edges[cell+1])
		default:
			addNormal(logs, m.at[j], m.inverses[j], x[j])
		}
	}
	if m.joint != nil {
		m.joint.add(logs, x, m.white)
	}
	return logSum(m.prior, logs)
}

// addNormal adds to each kernel's logarithm that of the normal density at x,
// without its constant.
func addNormal(logs, at, inverses []float64, x float64) {
	at, inverses = at[:len(logs)], inverses[:len(logs)]
	for i := range logs {
		z := (x - at[i]) * inverses[i]
		logs[i] -= 0.5 * z * z
	}
}

func (m *Mixture) addChoice(logs []float64, j, cell int) {
	a, hit, miss := &m.axes[j], m.hit[j], m.miss[j]
	for i, at := range m.at[j] {
		if a.cell(at) == cell {
			logs[i] += hit
		} else {
			logs[i] += miss
		}
	}
}

// addCell adds the logarithm of each kernel's mass in a cell divided by the
// width of the cell.
func (m *Mixture) addCell(logs []float64, j int, lo, hi float64) {
	inverses, width := m.inverses[j], 1/math.Max(hi-lo, 1e-12)
	for i, at := range m.at[j] {
		logs[i] += math.Log(math.Max(within(at, inverses[i], lo, hi)*width, 1e-300))
	}
}

// logSum returns the logarithm of the sum of what these are logarithms of.
func logSum(first float64, logs []float64) float64 {
	top := first
	for _, v := range logs {
		top = math.Max(top, v)
	}
	sum := math.Exp(first - top)
	for _, v := range logs {
		if v-top > -40 { // which would not change a digit
			sum += math.Exp(v - top)
		}
	}
	return top + math.Log(sum)
}
