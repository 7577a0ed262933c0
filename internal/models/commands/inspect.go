// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/models/signature"
	"diwan.dev/diwan/internal/models/transfer"
	"diwan.dev/diwan/internal/platform/cli"
)

// details is a model in JSON.
type details struct {
	Name      string               `json:"name"`
	Digest    string               `json:"digest"`
	Type      artifact.Kind        `json:"type"`
	Size      int64                `json:"size"`
	Signature *signature.Signature `json:"signature,omitempty"`
	// Metadata is what ormbfile.yaml said.
	Metadata *artifact.Metadata `json:"metadata,omitempty"`
	Config   json.RawMessage    `json:"config"`
	Files    []file             `json:"files"`
}

type file struct {
	Path   string        `json:"path,omitempty"`
	Role   artifact.Role `json:"role"`
	Size   int64         `json:"size"`
	Digest string        `json:"digest"`
	Type   string        `json:"mediaType"`
}

// inspect returns the command that shows a version.
func inspect(streams cli.Streams) *cobra.Command {
	var remote bool
	command := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show a version: signature, parameters, metadata and files",
		Long: `Inspect shows what a version of the home's store is: format, inputs and outputs with types
and shapes, parameters, what its ormbfile.yaml says, and its files. With --remote it asks
the registry, and fetches the manifest and the configuration only.`,
		Example: `  diwan model inspect mnist:v1
  diwan model inspect --remote ghcr.io/acme/mnist:v1 -o json`,
		Args:              arguments(1, 1, "one name"),
		ValidArgsFunction: complete(0, 0),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			d, err := s.details(ctx, args[0], remote)
			if err != nil {
				return err
			}
			return s.print(d, d.text())
		}),
	}
	command.Flags().BoolVar(&remote, "remote", false, "ask the registry instead of the home's store")
	return command
}

func (s *session) details(ctx context.Context, text string, remote bool) (*details, error) {
	n, err := name(text)
	if err != nil {
		return nil, err
	}
	var m *artifact.Manifest
	var config []byte
	if remote {
		o, at, done, err := s.registries(ctx, n)
		if err != nil {
			return nil, err
		}
		defer done()
		if m, config, err = transfer.Inspect(ctx, at(n), o); err != nil {
			return nil, err
		}
	} else {
		v, err := s.find(text)
		if err != nil {
			return nil, err
		}
		m = v.Manifest
		if config, err = s.store.Bytes(m.Config, artifact.MaxConfig); err != nil {
			return nil, err
		}
	}
	if !json.Valid(config) {
		return nil, fmt.Errorf("cannot inspect %s: its configuration is not JSON", n)
	}
	d := &details{Name: n.String(), Digest: string(m.Digest), Type: m.Kind, Size: m.Size(), Signature: signatureOf(m), Config: config}
	if m.Kind == artifact.ORMB {
		d.Metadata, err = artifact.ORMBMetadata(config)
	} else if text := m.Annotations[artifact.AnnotationMetadata]; text != "" {
		err = json.Unmarshal([]byte(text), &d.Metadata)
	}
	for _, l := range m.Files {
		d.Files = append(d.Files, file{l.Path, l.Role, l.Size, string(l.Digest), l.MediaType})
	}
	return d, err
}

// text is for people. What hostile models say is shown on one line each.
func (d *details) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(key string, value any) {
		if text := fmt.Sprint(value); text != "" && value != nil {
			fmt.Fprintf(w, "%s\t%s\n", key, line(text))
		}
	}
	row("name", d.Name)
	row("digest", d.Digest)
	row("type", d.Type)
	row("size", size(d.Size))
	if s := d.Signature; s != nil {
		row("format", strings.TrimSpace(string(s.Format)+" "+s.FormatVersion))
		row("producer", s.Producer)
		if s.Parameters != nil {
			row("parameters", *s.Parameters)
		}
		row("quantization", s.Quantization)
		if s.Estimator != nil {
			row("estimator", s.Estimator.Class)
		}
		for _, u := range s.Unsafe {
			row("runs code", u)
		}
		tensors(w, "input", s.Inputs)
		tensors(w, "output", s.Outputs)
		for _, note := range s.Notes {
			row("note", note)
		}
	} else if d.Metadata != nil && d.Metadata.Signature != nil {
		row("format", d.Metadata.Format)
		for _, t := range d.Metadata.Signature.Inputs {
			row("input", fmt.Sprintf("%s  %s  %v", t.Name, t.DType, t.Size))
		}
		for _, t := range d.Metadata.Signature.Outputs {
			row("output", fmt.Sprintf("%s  %s  %v", t.Name, t.DType, t.Size))
		}
	}
	if m := d.Metadata; m != nil {
		row("author", m.Author)
		row("framework", m.Framework)
		row("description", m.Description)
		row("tags", strings.Join(m.Tags, ", "))
		for _, p := range m.HyperParameters {
			row("parameter", p.Name+" = "+p.Value)
		}
		for group, list := range m.Metrics {
			for _, p := range list {
				row("metric", group+": "+p.Name+" = "+p.Value)
			}
		}
	}
	for _, f := range d.Files {
		name := f.Path
		if name == "" {
			name = "archive"
		}
		row("file", fmt.Sprintf("%s  %s  %s", name, f.Role, size(f.Size)))
	}
	w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

func tensors(w io.Writer, key string, all []signature.Tensor) {
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\n", key, line(fmt.Sprintf("%s  %s  %s", t.Name, t.Type, t.Shape)))
	}
}

// line makes of any text one line that a terminal can show.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
