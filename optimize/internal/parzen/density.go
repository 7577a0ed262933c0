// SPDX-License-Identifier: Apache-2.0

package parzen

import "math"

// LogDensity returns the logarithm of the density at x, by axis.
func (m *Mixture) LogDensity(x []float64) float64 {
	if len(m.axes) > 1 || m.cells[0] == nil {
		return m.logDensity(x)
	}
	cell := m.axes[0].cell(x[0]) // there are few values
	if m.totals == nil {
		m.totals = make([]float64, len(m.cells[0]))
	}
	if m.cells[0][cell] == nil {
		m.totals[cell] = m.logDensity(x)
	}
	return m.totals[cell]
}

func (m *Mixture) logDensity(x []float64) float64 {
	logs := m.logs
	copy(logs, m.peaks)
	for j := range m.axes {
		a := &m.axes[j]
		switch {
		case m.cells[j] != nil:
			m.addCell(logs, j, a.cell(x[j]))
		case m.inverses[j] == nil: // joint
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

// addCell adds the logarithm of each kernel's density in a cell or choice. It
// is computed once for each, because candidates share them.
func (m *Mixture) addCell(logs []float64, j, cell int) {
	known := m.cells[j][cell]
	if known == nil {
		known = make([]float64, len(logs))
		if a := &m.axes[j]; a.Choices > 0 {
			m.choiceLogs(known, j, cell)
		} else {
			m.cellLogs(known, j, a.Edges[cell], a.Edges[cell+1])
		}
		m.cells[j][cell] = known
	}
	for i, v := range known[:len(logs)] {
		logs[i] += v
	}
}

func (m *Mixture) choiceLogs(logs []float64, j, cell int) {
	a, hit, miss := &m.axes[j], m.hit[j], m.miss[j]
	for i, at := range m.at[j] {
		if logs[i] = miss; a.cell(at) == cell {
			logs[i] = hit
		}
	}
}

// cellLogs computes the logarithm of each kernel's mass in a cell divided by
// the width of the cell.
func (m *Mixture) cellLogs(logs []float64, j int, lo, hi float64) {
	inverses, width := m.inverses[j], 1/math.Max(hi-lo, 1e-12)
	for i, at := range m.at[j] {
		logs[i] = math.Log(math.Max(within(at, inverses[i], lo, hi)*width, 1e-300))
	}
}

// logSum returns the logarithm of the sum of what these are logarithms of.
func logSum(first float64, logs []float64) float64 {
	top := first
	for _, v := range logs {
		if v > top {
			top = v
		}
	}
	sum := math.Exp(first - top)
	for _, v := range logs {
		if v -= top; v > -expReach { // less is a part in 10¹⁰
			sum += exp(v)
		}
	}
	return top + math.Log(sum)
}
