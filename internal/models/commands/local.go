// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"diwan.dev/diwan/internal/models/artifact"
	"diwan.dev/diwan/internal/models/signature"
	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/durable"
)

// initialize returns the command that writes an ormbfile.yaml.
func initialize(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Describe a model in an ormbfile.yaml",
		Long: `Init reads the model in the folder model/ of a directory, or in the directory itself if
there is no such folder, and writes what it finds to ormbfile.yaml beside it: format,
framework, inputs and outputs. Add the author, metrics and hyper-parameters there; save
takes them from it. An ormbfile.yaml that is there is not touched.`,
		Example: `  diwan model init ./mnist`,
		Args:    arguments(0, 1, "at most one directory"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			file := filepath.Join(dir, artifact.ORMBFile)
			if _, err := os.Lstat(file); err == nil {
				return fmt.Errorf("cannot write %s: it exists; edit it, or remove it first", file)
			}
			payload := filepath.Join(dir, artifact.ModelDir)
			if info, err := os.Stat(payload); err != nil || !info.IsDir() {
				payload = dir
			}
			read, err := signature.ReadPath(ctx, payload, signature.Options{})
			if err != nil && !errors.Is(err, signature.ErrUnknownFormat) {
				return err
			}
			m := &artifact.Metadata{Created: time.Now().UTC().Truncate(time.Second), Format: "Others"}
			if err == nil {
				m.Format = ""
				m.Describe(read)
			}
			text, err := m.YAML()
			if err != nil {
				return err
			}
			if err := durable.WriteFile(file, text); err != nil {
				return err
			}
			if err := os.Chmod(file, 0o644); err != nil {
				return err
			}
			return s.print(m, file)
		}),
	}
}

// save returns the command that saves models.
func save(streams cli.Streams) *cobra.Command {
	var kind string
	command := &cobra.Command{
		Use:   "save PATH NAME",
		Short: "Save a file or a folder as a version of a model",
		Long: `Save brings a model into the home's store under a name. A folder's ormbfile.yaml describes
it; inputs, outputs, parameters and size are read from the model itself. Every file is kept
once, whatever versions have it, and those that have not changed since they were last saved
are not read again. .git, .cache, .ipynb_checkpoints, __pycache__ and .DS_Store are left out.

With --type ormb the folder model/ is packed as ormb does it.`,
		Example: `  diwan model save ./mnist mnist:v1
  diwan model save model.onnx ghcr.io/acme/mnist:v1
  diwan model save --type ormb ./mnist harbor.corp.example/ml/mnist:v1`,
		Args: arguments(2, 2, "a path and a name"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			if kind != string(artifact.ModelPack) && kind != string(artifact.ORMB) {
				return cli.Usagef("cannot use --type %q: must be modelpack or ormb", kind)
			}
			n, err := name(args[1])
			if err != nil {
				return err
			}
			show := cli.NewTransfer(s.streams.Err, n.String(), s.Quiet)
			v, err := s.store.Save(ctx, args[0], n, store.SaveOptions{Kind: artifact.Kind(kind), Progress: serial(show.Bytes)})
			show.End()
			if err != nil {
				return err
			}
			return s.print(describe(v), fmt.Sprintf("%s@%s", v.Name, v.Manifest.Digest))
		}),
	}
	command.Flags().StringVar(&kind, "type", string(artifact.ModelPack), "what is written: modelpack or ormb")
	command.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"modelpack", "ormb"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// summary is a version in JSON.
type summary struct {
	Name    string        `json:"name"`
	Digest  string        `json:"digest"`
	Type    artifact.Kind `json:"type"`
	Format  string        `json:"format,omitempty"`
	Size    int64         `json:"size"`
	Files   int           `json:"files"`
	Created time.Time     `json:"created,omitzero"`
}

func describe(v *store.Version) summary {
	s := summary{Name: v.Name.String(), Digest: string(v.Manifest.Digest), Type: v.Manifest.Kind, Size: v.Manifest.Size(), Files: len(v.Manifest.Files), Created: v.Created}
	if read := signatureOf(v.Manifest); read != nil {
		s.Format = string(read.Format)
	}
	return s
}

// list returns the command that lists versions.
func list(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Aliases:           []string{"models", "ls"},
		Short:             "List the models in the home",
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: with(streams, func(_ context.Context, s *session, _ []string) error {
			versions, err := s.store.List()
			if err != nil {
				return err
			}
			all := []summary{}
			var text strings.Builder
			w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tTYPE\tFORMAT\tSIZE\tDIGEST\tCREATED")
			for _, v := range versions {
				d := describe(v)
				all = append(all, d)
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.Type, d.Format, size(d.Size), v.Manifest.Digest.Encoded()[:12], d.Created.Local().Format(time.DateTime))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if len(all) == 0 && !s.JSON {
				s.note("no models: save one with `diwan model save PATH NAME`")
				return nil
			}
			return s.print(all, strings.TrimSuffix(text.String(), "\n"))
		}),
	}
}

// tag returns the command that gives versions another name.
func tag(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "tag NAME NEW-NAME",
		Short:             "Give a version another name",
		Example:           `  diwan model tag mnist:v1 ghcr.io/acme/mnist:v1`,
		Args:              arguments(2, 2, "a name and a new name"),
		ValidArgsFunction: complete(0, 0),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			both, err := names(args)
			if err != nil {
				return err
			}
			v, err := s.store.Tag(ctx, both[0], both[1])
			if err != nil {
				return err
			}
			return s.print(describe(v), v.Name.String())
		}),
	}
}

// remove returns the command that removes names.
func remove(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME...",
		Aliases:           []string{"rm"},
		Short:             "Remove versions from the home, and the files that no other version has",
		Args:              arguments(1, math.MaxInt, "at least one name"),
		ValidArgsFunction: complete(0, math.MaxInt),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			all, err := names(args)
			if err != nil {
				return err
			}
			for _, n := range all {
				if err := s.store.Remove(ctx, n); err != nil {
					return err
				}
				s.note("removed %s", n)
			}
			return nil
		}),
	}
}

// prune returns the command that collects garbage.
func prune(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:               "prune",
		Short:             "Remove what no version needs, and what interrupted commands left behind",
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: with(streams, func(ctx context.Context, s *session, _ []string) error {
			p, err := s.store.Prune(ctx, store.PruneOptions{})
			if err != nil {
				return err
			}
			return s.print(p, fmt.Sprintf("removed %d blobs, %s", p.Blobs, size(p.Bytes)))
		}),
	}
}

// export returns the command that writes the files of a version.
func export(streams cli.Streams) *cobra.Command {
	var dir, archive, most string
	var link bool
	command := &cobra.Command{
		Use:   "export NAME",
		Short: "Write the files of a version to a folder",
		Long: `Export writes the files of a version of the home's store to a folder, replacing those of
the same names. None of them appears before all of them are complete.

With --link files are links to the store's where that is possible: they need no space, and
cannot be written to. With --archive the artifact itself becomes a tar file of an OCI
layout, for machines without a network; import reads it.`,
		Example: `  diwan model export mnist:v1 -d ./served
  diwan model export mnist:v1 --archive mnist.tar`,
		Args:              arguments(1, 1, "one name"),
		ValidArgsFunction: complete(0, 0),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			v, err := s.find(args[0])
			if err != nil {
				return err
			}
			if archive != "" {
				return s.writeArchive(ctx, v, archive)
			}
			o := store.ExportOptions{Link: link}
			if most != "" {
				q, err := resource.ParseQuantity(most)
				if err != nil || q.Value() <= 0 {
					return cli.Usagef("cannot use --max-size %q: the form is 500Gi", most)
				}
				o.MaxBytes = q.Value()
			}
			if err := s.store.Export(ctx, v, dir, o); err != nil {
				return err
			}
			return s.print(map[string]string{"name": v.Name.String(), "digest": string(v.Manifest.Digest), "directory": dir}, dir)
		}),
	}
	command.Flags().StringVarP(&dir, "directory", "d", ".", "folder to write to")
	command.Flags().StringVar(&archive, "archive", "", "write a tar file of an OCI layout instead")
	command.Flags().BoolVar(&link, "link", false, "link to the store's files instead of copying them")
	command.Flags().StringVar(&most, "max-size", "", "bound of what archives may unpack to, such as 500Gi (default 1Gi and a hundred times their size)")
	command.MarkFlagDirname("directory")
	command.MarkFlagFilename("archive", "tar")
	return command
}

func (s *session) writeArchive(ctx context.Context, v *store.Version, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), durable.TempPrefix)
	if err != nil {
		return err
	}
	defer f.Close()
	err = s.store.WriteLayout(ctx, v, f)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return s.print(map[string]string{"name": v.Name.String(), "archive": path}, path)
}

// importCommand returns the command that reads OCI layouts.
func importCommand(streams cli.Streams) *cobra.Command {
	var reference string
	command := &cobra.Command{
		Use:   "import LAYOUT NAME",
		Short: "Bring a model of an OCI layout into the home",
		Long: `Import reads an OCI image layout, a folder or a tar file, as export --archive and
oras copy --to-oci-layout write it.`,
		Example: `  diwan model import mnist.tar mnist:v1`,
		Args:    arguments(2, 2, "a layout and a name"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			n, err := name(args[1])
			if err != nil {
				return err
			}
			v, err := s.store.Import(ctx, args[0], reference, n)
			if err != nil {
				return err
			}
			return s.print(describe(v), fmt.Sprintf("%s@%s", v.Name, v.Manifest.Digest))
		}),
	}
	command.Flags().StringVar(&reference, "reference", "", "tag or digest in a layout of several artifacts")
	return command
}

// signatureOf is the signature that a manifest carries. nil: none.
func signatureOf(m *artifact.Manifest) *signature.Signature {
	text := m.Annotations[artifact.AnnotationSignature]
	if text == "" {
		return nil
	}
	var s signature.Signature
	if json.Unmarshal([]byte(text), &s) != nil {
		return nil
	}
	return &s
}

// change is a file of one of two versions, or of both.
type change struct {
	File   string `json:"file"`
	Change string `json:"change"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

// diff returns the command that compares versions.
func diff(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME NAME",
		Short: "Compare the files and signatures of two versions",
		Long: `Diff lists the files that were added, removed and changed between two versions in the home,
what their signatures differ in, and how many bytes they share.`,
		Example:           `  diwan model diff mnist:v1 mnist:v2`,
		Args:              arguments(2, 2, "two names"),
		ValidArgsFunction: complete(0, 1),
		RunE: with(streams, func(_ context.Context, s *session, args []string) error {
			from, err := s.find(args[0])
			if err != nil {
				return err
			}
			to, err := s.find(args[1])
			if err != nil {
				return err
			}
			return s.printDiff(from.Manifest, to.Manifest)
		}),
	}
}

func (s *session) printDiff(from, to *artifact.Manifest) error {
	result := struct {
		Files     []change          `json:"files"`
		Signature map[string][2]any `json:"signature,omitempty"`
		Shared    int64             `json:"sharedBytes"`
	}{Files: []change{}}
	before := map[string]artifact.Layer{}
	for _, l := range from.Files {
		before[label(l)] = l
	}
	blobs := map[string]bool{}
	for _, d := range from.Blobs() {
		blobs[string(d.Digest)] = true
	}
	var lines []string
	add := func(sign string, c change) {
		result.Files = append(result.Files, c)
		lines = append(lines, fmt.Sprintf("%s %s  %s → %s", sign, c.File, size(c.From), size(c.To)))
	}
	for _, l := range to.Files {
		old, there := before[label(l)]
		delete(before, label(l))
		switch {
		case !there:
			add("+", change{label(l), "added", 0, l.Size})
		case old.Digest != l.Digest:
			add("~", change{label(l), "changed", old.Size, l.Size})
		}
	}
	for _, l := range from.Files {
		if _, left := before[label(l)]; left {
			add("-", change{label(l), "removed", l.Size, 0})
		}
	}
	for _, d := range to.Blobs() {
		if blobs[string(d.Digest)] {
			result.Shared += d.Size
		}
	}
	result.Signature = signatureDiff(signatureOf(from), signatureOf(to))
	for _, key := range []string{"format", "inputs", "outputs", "parameters", "quantization", "size"} {
		if pair, ok := result.Signature[key]; ok {
			lines = append(lines, fmt.Sprintf("~ %s: %s → %s", key, compact(pair[0]), compact(pair[1])))
		}
	}
	lines = append(lines, fmt.Sprintf("%s of %s are shared", size(result.Shared), size(to.Size())))
	return s.print(result, strings.Join(lines, "\n"))
}

// label names a layer for people.
func label(l artifact.Layer) string {
	if l.Path != "" {
		return l.Path
	}
	return string(l.Role) + " " + l.Digest.Encoded()[:12]
}

func compact(v any) string {
	if v == nil {
		return "none"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}

// signatureDiff are the fields in which signatures differ.
func signatureDiff(a, b *signature.Signature) map[string][2]any {
	fields := func(s *signature.Signature) map[string]any {
		if s == nil {
			return nil
		}
		return map[string]any{"format": s.Format, "inputs": s.Inputs, "outputs": s.Outputs, "parameters": s.Parameters, "quantization": s.Quantization, "size": s.Size}
	}
	found := map[string][2]any{}
	of, or := fields(a), fields(b)
	for _, key := range []string{"format", "inputs", "outputs", "parameters", "quantization", "size"} {
		if compact(of[key]) != compact(or[key]) {
			found[key] = [2]any{of[key], or[key]}
		}
	}
	return found
}
