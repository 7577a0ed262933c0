// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// pmmlTypes are PMML's data types; dates stay as they are.
var pmmlTypes = map[string]string{"float": "float32", "double": "float64", "integer": "int64", "boolean": "bool"}

func pmmlType(name string) string {
	if kind, known := pmmlTypes[name]; known {
		return kind
	}
	return name
}

// longToken is the longest tag or text of an XML document, in bytes.
const longToken = 8 << 20

// leash ends reading where one token goes on for too long.
type leash struct {
	in   io.Reader
	left int
}

func (l *leash) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a tag or text has more than %d bytes", longToken)
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// readPMML reads the fields of a model: its data dictionary says of which type they are,
// its mining schema which are inputs. https://dmg.org/pmml/v4-4-1/GeneralStructure.html
func readPMML(r *reading, f *file) error {
	rope := &leash{in: f.stream(0, f.size)}
	decoder := xml.NewDecoder(rope)
	p := &pmmlReader{r: r, fields: map[string]*Tensor{}}
	for {
		rope.left = longToken
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.visit()
		}
		if err == nil {
			switch token := token.(type) {
			case xml.StartElement:
				err = p.start(token)
			case xml.EndElement:
				p.path = p.path[:len(p.path)-1]
			case xml.Directive:
				err = errors.New("it has a document type declaration, which PMML does not")
			}
		}
		if err != nil {
			return f.fail(decoder.InputOffset(), err)
		}
	}
	if p.version == "" {
		return f.errorf(-1, "%w: it has no element PMML", ErrUnknownFormat)
	}
	if p.model == "" {
		return f.errorf(-1, "it holds no model")
	}
	return p.finish()
}

type pmmlReader struct {
	r              *reading
	path           []string
	version, model string
	fields         map[string]*Tensor
	dictionary     *Tensor
	inputs         []string
	targets        []string
	outputs        []Tensor
	trees          int64
}

// start reads an element by its path from the root.
func (p *pmmlReader) start(e xml.StartElement) error {
	name := e.Name.Local
	p.path = append(p.path, name)
	if err := p.r.nest(len(p.path)); err != nil {
		return err
	}
	attribute := func(name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	if name == "TreeModel" {
		p.trees++
	}
	keep := func(texts ...string) error {
		n := int64(160)
		for _, text := range texts {
			n += int64(len(text))
		}
		return p.r.hold(n)
	}
	switch depth := len(p.path); {
	case depth == 1:
		if name != "PMML" {
			return fmt.Errorf("%w: the root element is %s, not PMML", ErrUnknownFormat, name)
		}
		p.version = attribute("version")
	case depth == 2:
		switch name {
		case "Header", "MiningBuildTask", "DataDictionary", "TransformationDictionary", "Extension":
		default:
			if p.model != "" {
				p.r.sig.note("it holds further models after the first, which is described")
				break
			}
			p.model = name
			p.r.sig.setMetadata("model", name)
			p.r.sig.setMetadata("functionName", attribute("functionName"))
			p.r.sig.setMetadata("algorithmName", attribute("algorithmName"))
			return keep(name)
		}
	case p.path[1] == "Header" && name == "Application":
		p.r.sig.Producer = strings.TrimSpace(attribute("name") + " " + strings.Join(strings.Fields(attribute("version")), " "))
		return keep(p.r.sig.Producer)
	case p.path[1] == "DataDictionary" && depth == 3 && name == "DataField":
		field := attribute("name")
		if _, twice := p.fields[field]; twice {
			return fmt.Errorf("the field %q is declared twice", field)
		}
		p.dictionary = &Tensor{Name: field, Type: pmmlType(attribute("dataType")), Shape: Fixed(-1)}
		p.fields[field] = p.dictionary
		return keep(field, p.dictionary.Type)
	case p.path[1] == "DataDictionary" && depth == 4 && name == "Value" && p.dictionary != nil:
		if property := attribute("property"); property == "" || property == "valid" {
			p.dictionary.Values = append(p.dictionary.Values, attribute("value"))
			return keep(attribute("value"))
		}
	case p.path[1] == p.model && depth == 4 && p.path[2] == "MiningSchema" && name == "MiningField":
		field := attribute("name")
		switch attribute("usageType") {
		case "", "active":
			p.inputs = append(p.inputs, field)
		case "target", "predicted":
			p.targets = append(p.targets, field)
		}
		return keep(field)
	case p.path[1] == p.model && depth == 4 && p.path[2] == "Output" && name == "OutputField":
		output := Tensor{Name: attribute("name"), Type: pmmlType(attribute("dataType")), Shape: Fixed(-1)}
		p.outputs = append(p.outputs, output)
		return keep(output.Name, output.Type)
	}
	return nil
}

func (p *pmmlReader) finish() error {
	sig := p.r.sig
	sig.FormatVersion = p.version
	sig.countOperator(p.model)
	for _, name := range p.inputs {
		t, declared := p.fields[name]
		if !declared {
			return fmt.Errorf("the field %q is used and not declared", name)
		}
		sig.Inputs = append(sig.Inputs, *t)
		sig.Features = append(sig.Features, name)
	}
	for _, name := range p.targets {
		t, declared := p.fields[name]
		if !declared {
			return fmt.Errorf("the field %q is predicted and not declared", name)
		}
		sig.Outputs = append(sig.Outputs, *t)
		sig.Classes = append(sig.Classes, t.Values...)
	}
	sig.Outputs = append(sig.Outputs, p.outputs...)
	if p.trees > 0 {
		sig.Trees = &Trees{Count: p.trees, Features: int64(len(p.inputs)), Classes: int64(len(sig.Classes))}
	}
	return nil
}
