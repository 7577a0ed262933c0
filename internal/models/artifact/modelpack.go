// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"diwan.dev/diwan/internal/models/signature"
)

// Config is ModelPack's configuration (model-spec docs/config.md).
type Config struct {
	Descriptor Descriptor `json:"descriptor"`
	ModelFS    ModelFS    `json:"modelfs"`
	Config     Execution  `json:"config"`
}

// Descriptor says what a model is.
type Descriptor struct {
	CreatedAt   *time.Time `json:"createdAt,omitempty"`
	Authors     []string   `json:"authors,omitempty"`
	Family      string     `json:"family,omitempty"`
	Name        string     `json:"name,omitempty"`
	DocURL      string     `json:"docURL,omitempty"`
	SourceURL   string     `json:"sourceURL,omitempty"`
	DatasetsURL []string   `json:"datasetsURL,omitempty"`
	Version     string     `json:"version,omitempty"`
	Revision    string     `json:"revision,omitempty"`
	Vendor      string     `json:"vendor,omitempty"`
	Licenses    []string   `json:"licenses,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
}

// ModelFS lists the digests of the layers before compression.
type ModelFS struct {
	Type    string          `json:"type"`
	DiffIDs []digest.Digest `json:"diffIds"`
}

// Execution says how a model is to be run.
type Execution struct {
	Architecture string          `json:"architecture,omitempty"`
	Format       string          `json:"format,omitempty"`
	ParamSize    string          `json:"paramSize,omitempty"`
	Precision    string          `json:"precision,omitempty"`
	Quantization string          `json:"quantization,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// RawLayer describes a file that is a layer as it is. name is its path in the model.
func RawLayer(name string, blob digest.Digest, file FileMetadata) (ocispec.Descriptor, error) {
	metadata, err := json.Marshal(file)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return ocispec.Descriptor{
		MediaType: RawType(RoleOf(name)), Digest: blob, Size: file.Size,
		Annotations: map[string]string{annotationFilepath: name, annotationFile: string(metadata), annotationUntested: "true"},
	}, nil
}

// Pack makes ModelPack's configuration and manifest of layers that are files as they are.
func Pack(c Config, layers []ocispec.Descriptor, annotations map[string]string) (config, manifest []byte, err error) {
	c.ModelFS = ModelFS{Type: "layers"}
	for _, l := range layers {
		c.ModelFS.DiffIDs = append(c.ModelFS.DiffIDs, l.Digest)
	}
	if config, err = json.Marshal(c); err != nil {
		return nil, nil, err
	}
	return encode(config, mediaTypeConfig, ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: ArtifactType, Layers: layers, Annotations: annotations})
}

// encode completes a manifest with its configuration, and checks that it can be read again.
func encode(config []byte, mediaType string, m ocispec.Manifest) ([]byte, []byte, error) {
	m.Versioned = specs.Versioned{SchemaVersion: 2}
	m.Config = ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(config), Size: int64(len(config))}
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	if _, err := Parse(manifest); err != nil {
		return nil, nil, fmt.Errorf("this model cannot be an artifact: %w", err)
	}
	return config, manifest, nil
}

// Describe completes a configuration by what was read in the model.
func (c *Config) Describe(s *signature.Signature) {
	if c.Config.Format == "" {
		c.Config.Format = string(s.Format)
	}
	if c.Config.Quantization == "" {
		c.Config.Quantization = s.Quantization
	}
	if c.Config.ParamSize == "" && s.Parameters != nil {
		c.Config.ParamSize = paramSize(*s.Parameters)
	}
	if c.Config.Precision == "" {
		c.Config.Precision = precision(s.Tensors)
	}
	if c.Config.Architecture == "" {
		c.Config.Architecture = s.Metadata["general.architecture"]
	}
}

// paramSize is a number of parameters as people write it: 6.7b, 340m, 12k, 980.
func paramSize(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "t"}, {1e9, "b"}, {1e6, "m"}, {1e3, "k"}} {
		if float64(n) >= unit.size {
			return strconv.FormatFloat(math.Round(float64(n)/unit.size*10)/10, 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// precision is the type of most weights by their number, "" if it is not known.
func precision(weights []signature.Tensor) string {
	counts := map[string]int64{}
	for _, t := range weights {
		n := int64(1)
		for _, d := range t.Shape {
			n *= max(d.Size, 1)
		}
		counts[t.Type] += n
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if best == "" || counts[name] > counts[best] {
			best = name
		}
	}
	return best
}
