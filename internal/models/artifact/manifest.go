// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// MaxManifest is the size in bytes that a manifest may have: what registries accept at least.
	MaxManifest = 4 << 20
	// MaxConfig is the size in bytes that a configuration may have.
	MaxConfig = 8 << 20
	// MaxLayers is how many layers a model may have.
	MaxLayers = 10_000
	// maxPath bounds the name of a file.
	maxPath = 1024
)

// Kind is the format of an artifact.
type Kind string

// The formats of models.
const (
	ModelPack Kind = "modelpack"
	ORMB      Kind = "ormb"
	KitOps    Kind = "kitops"
)

// Role is what a layer is for, in ModelPack's words.
type Role string

// The roles of layers.
const (
	Weight       Role = "weight"
	WeightConfig Role = "weight.config"
	Doc          Role = "doc"
	Code         Role = "code"
	Dataset      Role = "dataset"
)

// Compression is how a layer is compressed.
type Compression string

// The compressions of layers.
const (
	Uncompressed Compression = ""
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
)

// Layer is one blob of a model.
type Layer struct {
	ocispec.Descriptor
	Role Role
	// Tar: the blob is an archive of files. Otherwise it is the file Path.
	Tar         bool
	Compression Compression
	// Path is the file's name, relative to the model's folder, with slashes. For an archive it is what
	// the manifest says about its content, or "".
	Path string
	// File describes the file of a layer that is no archive. It may be nil.
	File *FileMetadata
}

// Manifest is the manifest of a model.
type Manifest struct {
	Kind   Kind
	Digest digest.Digest
	// Raw are the manifest's bytes.
	Raw []byte
	ocispec.Manifest
	// Files are the layers, in the manifest's order.
	Files []Layer
}

// ErrNotModel is wrapped by errors about artifacts that are none of the known formats of models.
var ErrNotModel = errors.New("it is not a model")

// Error says what is wrong with an artifact.
type Error struct {
	// Field is the place in the manifest, such as layers[3].
	Field string
	Err   error
}

// Error names the field and what is wrong with it.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("its manifest cannot be used: %s", e.Err)
	}
	return fmt.Sprintf("its manifest cannot be used: %s: %s", e.Field, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func invalid(field, format string, args ...any) error {
	return &Error{Field: field, Err: fmt.Errorf(format, args...)}
}

// Parse reads and checks the manifest of a model. Errors are of type [*Error].
func Parse(raw []byte) (*Manifest, error) {
	if len(raw) > MaxManifest {
		return nil, invalid("", "it has %d bytes, and may have at most %d", len(raw), MaxManifest)
	}
	var shape struct {
		Manifests json.RawMessage `json:"manifests"`
	}
	m := &Manifest{Raw: raw, Digest: digest.FromBytes(raw)}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, invalid("", "it is not JSON: %w", err)
	}
	if shape.Manifests != nil {
		return nil, invalid("", "it is an index of several artifacts: name one of them by its digest: %w", ErrNotModel)
	}
	if err := json.Unmarshal(raw, &m.Manifest); err != nil {
		return nil, invalid("", "it is not an OCI manifest: %w", err)
	}
	if m.SchemaVersion != 2 {
		return nil, invalid("schemaVersion", "it is %d, and must be 2", m.SchemaVersion)
	}
	if m.MediaType != "" && m.MediaType != ocispec.MediaTypeImageManifest {
		return nil, invalid("mediaType", "%q is not that of an OCI manifest: %w", abbreviate(m.MediaType), ErrNotModel)
	}
	switch {
	case m.Config.MediaType == mediaTypeORMBConfig:
		m.Kind = ORMB
	case m.Config.MediaType == mediaTypeKitConfig:
		m.Kind = KitOps
	case m.Config.MediaType == mediaTypeConfig || m.ArtifactType == ArtifactType || m.Config.MediaType == legacyConfig:
		m.Kind = ModelPack
	default:
		return nil, invalid("config.mediaType", "%q is none of ModelPack, ormb and KitOps: %w", abbreviate(m.Config.MediaType), ErrNotModel)
	}
	if err := checkDescriptor("config", m.Config, MaxConfig); err != nil {
		return nil, err
	}
	if len(m.Layers) == 0 {
		return nil, invalid("layers", "there is none")
	}
	if len(m.Layers) > MaxLayers {
		return nil, invalid("layers", "there are %d, and may be at most %d", len(m.Layers), MaxLayers)
	}
	return m, m.readLayers()
}

func (m *Manifest) readLayers() error {
	paths := newPaths()
	sizes := map[digest.Digest]int64{m.Config.Digest: m.Config.Size}
	for i, d := range m.Layers {
		field := fmt.Sprintf("layers[%d]", i)
		if err := checkDescriptor(field, d, -1); err != nil {
			return err
		}
		if size, again := sizes[d.Digest]; again && size != d.Size {
			return invalid(field+".size", "it is %d here and %d elsewhere, of the same blob", d.Size, size)
		}
		sizes[d.Digest] = d.Size
		l, known := m.layer(d)
		if !known {
			if m.Kind == ORMB || m.Kind == KitOps {
				continue // such as the icon that Harbor's documentation adds
			}
			return invalid(field+".mediaType", "%q is not known", abbreviate(d.MediaType))
		}
		if !l.Tar {
			if err := CheckPath(l.Path); err != nil {
				return &Error{Field: field + ".annotations[" + annotationFilepath + "]", Err: err}
			}
			if err := paths.add(l.Path); err != nil {
				return &Error{Field: field, Err: err}
			}
		}
		m.Files = append(m.Files, l)
	}
	if len(m.Files) == 0 {
		return invalid("layers", "none of them is a part of a model")
	}
	if m.Kind == ORMB && len(m.Files) != 1 {
		return invalid("layers", "there are %d of ormb's media type, and must be 1", len(m.Files))
	}
	return nil
}

// Size is the size of the blobs in bytes, each counted once.
func (m *Manifest) Size() int64 {
	seen := map[digest.Digest]bool{}
	var total int64
	for _, d := range m.Blobs() {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			total += d.Size
		}
	}
	return total
}

// Blobs are all blobs that a model consists of, each once: the layers, and the configuration last.
func (m *Manifest) Blobs() []ocispec.Descriptor {
	seen := map[digest.Digest]bool{}
	var all []ocispec.Descriptor
	for _, d := range append(append([]ocispec.Descriptor{}, m.Layers...), m.Config) {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			all = append(all, d)
		}
	}
	return all
}

func checkDescriptor(field string, d ocispec.Descriptor, limit int64) error {
	if err := CheckDigest(d.Digest); err != nil {
		return &Error{Field: field + ".digest", Err: err}
	}
	if d.Size < 0 {
		return invalid(field+".size", "it is %d", d.Size)
	}
	if limit >= 0 && d.Size > limit {
		return invalid(field+".size", "it is %d, and may be at most %d", d.Size, limit)
	}
	if len(d.URLs) > 0 {
		return invalid(field+".urls", "the blob is not at the registry but elsewhere, and is not fetched from there")
	}
	return nil
}

var digestPattern = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)

// CheckDigest refuses what is not a SHA-256 digest.
func CheckDigest(d digest.Digest) error {
	if !digestPattern.MatchString(string(d)) {
		return fmt.Errorf("%q is not sha256: and 64 lower-case hexadecimal digits", abbreviate(string(d)))
	}
	return nil
}

// CheckPath refuses names of files that lead out of a folder, or that not every file system can have.
func CheckPath(name string) error {
	switch {
	case name == "":
		return errors.New("the file has no name")
	case len(name) > maxPath:
		return fmt.Errorf("the file name %q has more than %d bytes", abbreviate(name), maxPath)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fmt.Errorf("the file name %q has characters that file names should not have", abbreviate(name))
	case !fs.ValidPath(name) || name == ".":
		return fmt.Errorf("the file name %q leads out of the model's folder, or is not in its shortest form", abbreviate(name))
	}
	return nil
}

// CheckPaths refuses names of files that cannot be in one folder: [CheckPath], and a name that is a file and a
// folder, or is there twice.
func CheckPaths(names []string) error {
	all := newPaths()
	for _, name := range names {
		if err := CheckPath(name); err != nil {
			return err
		}
		if err := all.add(name); err != nil {
			return err
		}
	}
	return nil
}

// paths are names of files and of the folders above them.
type paths struct{ files, dirs map[string]bool }

func newPaths() paths { return paths{map[string]bool{}, map[string]bool{}} }

// add refuses a name that is there, or is a folder of one that is there, or the reverse.
func (p paths) add(name string) error {
	if p.files[name] {
		return fmt.Errorf("the file %q is there twice", abbreviate(name))
	}
	if p.dirs[name] {
		return fmt.Errorf("%q is a file and a folder", abbreviate(name))
	}
	p.files[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p.files[dir] {
			return fmt.Errorf("%q is a file and a folder", abbreviate(dir))
		}
		if p.dirs[dir] {
			break
		}
		p.dirs[dir] = true
	}
	return nil
}

// abbreviate keeps hostile text in messages short, and in one line.
func abbreviate(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
