// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// maxManifest is the size that registries accept at least, and most at most.
	maxManifest = 4 << 20
	maxConfig   = 8 << 20
	// MaxLayers is how many layers an image may have: as many as Docker builds, and few enough for one
	// overlay mount.
	MaxLayers = 127
	// maxIndexes bounds indexes within indexes.
	maxIndexes = 3
	// maxManifests bounds the manifests of an index.
	maxManifests = 1000
)

var (
	indexTypes    = []types.MediaType{types.OCIImageIndex, types.DockerManifestList}
	manifestTypes = []types.MediaType{types.OCIManifestSchema1, types.DockerManifestSchema2}
	layerTypes    = []types.MediaType{
		types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer, types.DockerLayer, types.DockerUncompressedLayer,
		"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.zstd",
	}
	configTypes = []types.MediaType{types.OCIConfigJSON, types.DockerConfigJSON}
)

// accept is what a manifest may be.
func accept() string {
	var all []string
	for _, t := range append(slices.Clone(indexTypes), manifestTypes...) {
		all = append(all, string(t))
	}
	return strings.Join(all, ", ")
}

// DefaultPlatform is the platform of this machine's containers.
func DefaultPlatform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// document is a manifest or an index.
type document struct {
	digest   string
	raw      []byte
	index    *v1.IndexManifest
	manifest *v1.Manifest
}

// parseDocument parses what a registry or an archive calls a manifest of the media type contentType,
// which may be "".
func parseDocument(raw []byte, contentType string) (*document, error) {
	var shape struct {
		SchemaVersion int             `json:"schemaVersion"`
		MediaType     types.MediaType `json:"mediaType"`
		Manifests     json.RawMessage `json:"manifests"`
		Layers        json.RawMessage `json:"layers"`
		Config        json.RawMessage `json:"config"`
		FSLayers      json.RawMessage `json:"fsLayers"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, failf(Corrupt, "its manifest is not JSON: %w", err)
	}
	if shape.SchemaVersion == 1 || shape.FSLayers != nil {
		return nil, failf(Unsupported, "its manifest has Docker's format of 2016 (schema 1): push the image again with a current tool")
	}
	if shape.SchemaVersion != 2 {
		return nil, failf(Unsupported, "its manifest has the unknown format version %d", shape.SchemaVersion)
	}
	// A document that is both would be different images to different readers (CVE-2021-41190).
	isIndex := shape.Manifests != nil
	if isIndex && (shape.Layers != nil || shape.Config != nil) {
		return nil, failf(Corrupt, "its manifest claims to be an index as well as an image")
	}
	declared := shape.MediaType
	if header, _, err := mime.ParseMediaType(contentType); err == nil && (isManifestType(types.MediaType(header)) || declared == "") {
		if declared != "" && types.MediaType(header) != declared {
			return nil, failf(Corrupt, "its manifest is declared as %s and says that it is %s", abbreviate(header), abbreviate(string(declared)))
		}
		if isManifestType(types.MediaType(header)) {
			declared = types.MediaType(header)
		}
	}
	switch {
	case declared == "":
	case isIndex && !slices.Contains(indexTypes, declared), !isIndex && !slices.Contains(manifestTypes, declared):
		return nil, failf(Unsupported, "its manifest has the media type %q, which is not that of an image", abbreviate(string(declared)))
	}
	d := &document{digest: digestOf(raw), raw: raw}
	var err error
	if isIndex {
		d.index, err = v1.ParseIndexManifest(bytes.NewReader(raw))
		if err == nil && len(d.index.Manifests) > maxManifests {
			err = fmt.Errorf("it lists more than %d images", maxManifests)
		}
	} else {
		d.manifest, err = v1.ParseManifest(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, failf(Corrupt, "its manifest is malformed: %w", err)
	}
	return d, nil
}

func isManifestType(t types.MediaType) bool {
	return slices.Contains(indexTypes, t) || slices.Contains(manifestTypes, t)
}

// choose picks the image for a platform from an index.
func choose(index *v1.IndexManifest, want v1.Platform) (v1.Descriptor, error) {
	var found *v1.Descriptor
	best := -1
	var offered []string
	candidates := 0
	for i, d := range index.Manifests {
		if d.MediaType != "" && !isManifestType(d.MediaType) {
			continue
		}
		p := d.Platform
		if p == nil && slices.Contains(indexTypes, d.MediaType) {
			p = &want // the answer is inside
		}
		if p != nil && p.OS == "unknown" { // attestations
			continue
		}
		candidates++
		if p == nil {
			offered = append(offered, "one without a platform")
			if len(index.Manifests) == 1 {
				return d, nil // its configuration says what it is
			}
			continue
		}
		offered = append(offered, abbreviate(platformString(*p)))
		if r := rank(*p, want); r > best {
			best, found = r, &index.Manifests[i]
		}
	}
	if found == nil {
		if candidates == 0 {
			return v1.Descriptor{}, failf(Unsupported, "its index lists no image")
		}
		slices.Sort(offered)
		offered = slices.Compact(offered)
		const most = 20
		if len(offered) > most {
			offered = append(offered[:most], "…")
		}
		return v1.Descriptor{}, failf(NoPlatform, "there is no image for %s, only for %s", platformString(want), strings.Join(offered, ", "))
	}
	return *found, nil
}

// variants are, by architecture and variant, those that run there, best first. The variant "" is the
// architecture's oldest that systems still have.
var variants = map[string][]string{
	"arm/":     {"", "v7", "v6", "v5"},
	"arm/v7":   {"v7", "", "v6", "v5"},
	"arm/v6":   {"v6", "v5"},
	"arm/v5":   {"v5"},
	"arm/v8":   {"v8", "v7", "", "v6", "v5"},
	"arm64/":   {"", "v8"},
	"arm64/v8": {"v8", ""},
	"amd64/":   {"", "v1"},
	"amd64/v1": {"v1", ""},
	"amd64/v2": {"v2", "v1", ""},
	"amd64/v3": {"v3", "v2", "v1", ""},
	"amd64/v4": {"v4", "v3", "v2", "v1", ""},
}

// rank says how well a platform suits: -1 is not at all.
func rank(have, want v1.Platform) int {
	if have.OS != want.OS || have.Architecture != want.Architecture {
		return -1
	}
	list, ok := variants[want.Architecture+"/"+want.Variant]
	if !ok {
		list = []string{want.Variant, ""}
	}
	i := slices.Index(list, have.Variant)
	if i < 0 {
		return -1
	}
	return len(list) - i
}

func platformString(p v1.Platform) string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// checkManifest refuses manifests of what is not an image, or not one that this store can have.
func checkManifest(m *v1.Manifest) error {
	if t := m.Config.MediaType; t != "" && !slices.Contains(configTypes, t) {
		return failf(Unsupported, "it is not a container image but an artifact: its configuration has the media type %q", abbreviate(string(t)))
	}
	if len(m.Layers) == 0 {
		return failf(Unsupported, "it has no layers")
	}
	if len(m.Layers) > MaxLayers {
		return failf(TooLarge, "it has %d layers, and images may have at most %d", len(m.Layers), MaxLayers)
	}
	if err := checkDescriptor(m.Config, maxConfig); err != nil {
		return fmt.Errorf("its configuration cannot be used: %w", err)
	}
	for i, l := range m.Layers {
		if strings.Contains(string(l.MediaType), "foreign") || strings.Contains(string(l.MediaType), "nondistributable") {
			return failf(Unsupported, "its layer %d is not at the registry but elsewhere (%s), and is not fetched from there", i+1, abbreviate(string(l.MediaType)))
		}
		if strings.HasSuffix(string(l.MediaType), "+encrypted") {
			return failf(Unsupported, "its layer %d is encrypted", i+1)
		}
		if l.MediaType != "" && !slices.Contains(layerTypes, l.MediaType) {
			return failf(Unsupported, "it is not a container image but an artifact: its layer %d has the media type %q", i+1, abbreviate(string(l.MediaType)))
		}
		if err := checkDescriptor(l, -1); err != nil {
			return fmt.Errorf("its layer %d cannot be used: %w", i+1, err)
		}
	}
	return nil
}

func checkDescriptor(d v1.Descriptor, limit int64) error {
	if !digestPattern.MatchString(d.Digest.String()) {
		return failf(Unsupported, "its digest %q is not of SHA-256", abbreviate(d.Digest.String()))
	}
	if d.Size < 0 {
		return failf(Corrupt, "its size is %d", d.Size)
	}
	if limit >= 0 && d.Size > limit {
		return failf(TooLarge, "it has %d bytes, and may have at most %d", d.Size, limit)
	}
	return nil
}

// parseConfig parses and checks an image's configuration against its manifest and a platform.
func parseConfig(raw []byte, m *v1.Manifest, want v1.Platform) (*v1.ConfigFile, error) {
	c, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return nil, failf(Corrupt, "its configuration is malformed: %w", err)
	}
	have := v1.Platform{OS: c.OS, Architecture: c.Architecture, Variant: c.Variant}
	// Images that say nothing are taken as they are. Variants in configurations are often wrong.
	if c.OS != "" && c.OS != want.OS || c.Architecture != "" && c.Architecture != want.Architecture {
		return nil, failf(NoPlatform, "it is for %s, not for %s", abbreviate(platformString(have)), platformString(want))
	}
	if c.RootFS.Type != "" && c.RootFS.Type != "layers" || len(c.RootFS.DiffIDs) != len(m.Layers) {
		return nil, failf(Unsupported, "its configuration describes %d layers, and its manifest has %d: it is not a container image", len(c.RootFS.DiffIDs), len(m.Layers))
	}
	for i, d := range c.RootFS.DiffIDs {
		if !digestPattern.MatchString(d.String()) {
			return nil, failf(Unsupported, "the digest %q of its unpacked layer %d is not of SHA-256", abbreviate(d.String()), i+1)
		}
	}
	return c, nil
}

// layerSpecs are the layers of an image, lowest first.
func layerSpecs(m *v1.Manifest, c *v1.ConfigFile) []layerSpec {
	var diffIDs []string
	for _, d := range c.RootFS.DiffIDs {
		diffIDs = append(diffIDs, d.String())
	}
	var specs []layerSpec
	for i, chain := range chainIDs(diffIDs) {
		l := m.Layers[i]
		specs = append(specs, layerSpec{chain: chain, diffID: diffIDs[i], blob: l.Digest.String(), size: l.Size, mediaType: string(l.MediaType)})
	}
	return specs
}
