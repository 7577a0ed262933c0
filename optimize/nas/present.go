// SPDX-License-Identifier: Apache-2.0

package nas

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"diwan.dev/diwan/optimize"
)

// The assignments of an architecture, named as in Katib.
const (
	// ArchitectureName names the decisions, such as [[3], [0, 1]]: a list for
	// each layer, with the number of its operation and, of the input and each
	// layer but the last before it, 1 where there is a skip connection.
	ArchitectureName = "architecture"
	// ConfigName names what the numbers mean: the number of layers, the sizes
	// of input and output, and the operations that the architecture has.
	ConfigName = "nn_config"
)

// presentation shows architectures in the form of Katib's enas.
type presentation struct {
	config  Config
	choices []Choice
	names   []optimize.Parameter
}

func (p presentation) write(plain []optimize.Assignment) []optimize.Assignment {
	var architecture, embedding strings.Builder
	seen := map[string]bool{}
	for i, l := 0, 0; l < p.config.Layers; l++ {
		separate(&architecture, l)
		architecture.WriteByte('[')
		for k, a := range plain[i : i+l+1] {
			separate(&architecture, k)
			architecture.WriteString(a.Value)
		}
		architecture.WriteByte(']')
		if operation := plain[i].Value; !seen[operation] {
			separate(&embedding, len(seen))
			seen[operation] = true
			p.embed(&embedding, operation)
		}
		i += l + 1
	}
	config := fmt.Sprintf("{'num_layers': %d, 'input_sizes': %s, 'output_sizes': %s, 'embedding': {%s}}",
		p.config.Layers, numbers(p.config.Inputs), numbers(p.config.Outputs), embedding.String())
	return []optimize.Assignment{
		{Name: ArchitectureName, Value: "[" + architecture.String() + "]"},
		{Name: ConfigName, Value: config},
	}
}

// embed writes what the number of an operation means.
func (p presentation) embed(b *strings.Builder, operation string) {
	n, _ := strconv.Atoi(operation) // Space wrote it
	choice := p.choices[n]
	fmt.Fprintf(b, "'%d': {'opt_id': %d, 'opt_type': %s, 'opt_params': {", n, n, quote(choice.Type))
	for i, v := range choice.Parameters {
		separate(b, i)
		text := v.Text
		if !v.Number {
			text = quote(text)
		}
		fmt.Fprintf(b, "%s: %s", quote(v.Name), text)
	}
	b.WriteString("}}")
}

// read needs the architecture alone: the rest follows from it.
func (p presentation) read(shown []optimize.Assignment) ([]optimize.Assignment, error) {
	i := slices.IndexFunc(shown, func(a optimize.Assignment) bool { return a.Name == ArchitectureName })
	if i < 0 {
		return nil, errors.New("there is no " + ArchitectureName)
	}
	var rows [][]int
	if err := json.Unmarshal([]byte(shown[i].Value), &rows); err != nil {
		return nil, fmt.Errorf("%s is not a list of integer lists: %w", ArchitectureName, err)
	}
	if len(rows) != p.config.Layers {
		return nil, fmt.Errorf("%s has %d layers: want %d", ArchitectureName, len(rows), p.config.Layers)
	}
	var plain []optimize.Assignment
	for l, row := range rows {
		if len(row) != l+1 {
			return nil, fmt.Errorf("layer %d of %s has %d numbers: want %d", l+1, ArchitectureName, len(row), l+1)
		}
		for _, n := range row {
			plain = append(plain, optimize.Assignment{Name: p.names[len(plain)].Name, Value: strconv.Itoa(n)})
		}
	}
	return plain, nil
}

func numbers(list []int) string {
	var b strings.Builder
	for i, n := range list {
		separate(&b, i)
		b.WriteString(strconv.Itoa(n))
	}
	return "[" + b.String() + "]"
}

// separate writes what stands before item i of a list.
func separate(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

// quote writes a text in the quotes of Katib's assignments, which are JSON in
// ASCII with ' for ": so a trial can put " around the whole.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		short := strings.IndexRune("\"\\\b\f\n\r\t", r)
		switch {
		case short >= 0:
			b.WriteString(`\` + `'\bfnrt`[short:short+1])
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}
