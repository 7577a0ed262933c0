// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/gp"
	"diwan.dev/diwan/optimize/internal/surrogate"
)

// Models are those of some earlier searches.
type Models struct {
	features surrogate.Features
	models   []*model

	mu   sync.Mutex
	seen map[string][]float64 // predictions by row, to save time
}

// model is a Gaussian process of normal scores.
type model struct {
	process *gp.Model
	hidden  []int // features of coordinates that the source does not have
	prior   float64
}

// Each returns a model of each source.
func Each(f surrogate.Features, sources []*Source) *Models {
	all := newModels(f)
	for _, s := range sources {
		all.add(s, s.scores, 1)
	}
	return all
}

// Together returns a model of each source, and where there are several two of all
// of them together: as if they were one search, and each on its own scale.
func Together(f surrogate.Features, sources []*Source) *Models {
	if len(sources) == 1 {
		return Each(f, sources)
	}
	models, joint := newModels(f), &Source{known: make([]bool, f.Dimensions())}
	for _, s := range sources {
		models.add(s, s.scores, 1/float64(len(sources)))
		joint.points = slices.Concat(joint.points, s.points)
		joint.losses, joint.scores = slices.Concat(joint.losses, s.losses), slices.Concat(joint.scores, s.scores)
		for i, known := range s.known {
			joint.known[i] = joint.known[i] || known
		}
	}
	models.add(joint, normalScores(joint.losses), 1)
	models.add(joint, joint.scores, 1)
	return models
}

func newModels(f surrogate.Features) *Models {
	return &Models{features: f, seen: map[string][]float64{}}
}

// add adds the model of a source.
func (m *Models) add(s *Source, scores []float64, prior float64) {
	added := &model{hidden: m.features.Of(func(i int) bool { return !s.known[i] }), prior: prior}
	var inputs [][]float64
	var outputs []float64
	for _, i := range surrogate.Selection(scores) {
		row := m.features.Row(s.points[i])
		added.hide(row)
		inputs, outputs = append(inputs, row), append(outputs, scores[i])
	}
	added.process = m.features.Fit(inputs, outputs)
	m.models = append(m.models, added)
}

// predict returns what each model predicts at a row of features.
func (m *Models) predict(row []float64) []float64 {
	bytes := make([]byte, 0, 8*len(row))
	for _, v := range row {
		bytes = binary.LittleEndian.AppendUint64(bytes, math.Float64bits(v))
	}
	key := string(bytes)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.seen[key]; ok {
		return known
	}
	predictions := make([]float64, len(m.models))
	for i, each := range m.models {
		predictions[i] = each.mean(row)
	}
	m.seen[key] = predictions
	return predictions
}

func (m *model) hide(row []float64) {
	for _, k := range m.hidden {
		row[k] = 0.5
	}
}

func (m *model) mean(row []float64) float64 {
	if len(m.hidden) > 0 {
		row = slices.Clone(row)
		m.hide(row)
	}
	return m.process.Mean(row)
}

func (m *model) predict(row []float64) (mean, variance float64) {
	if len(m.hidden) > 0 {
		row = slices.Clone(row)
		m.hide(row)
	}
	return m.process.Predict(row)
}
