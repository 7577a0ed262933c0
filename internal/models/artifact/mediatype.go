// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ArtifactType is ModelPack's.
const ArtifactType = "application/vnd.cncf.model.manifest.v1+json"

const (
	mediaTypeConfig = "application/vnd.cncf.model.config.v1+json"
	// legacyConfig and legacyFilepath are those of ModelPack before it was the CNCF's.
	legacyConfig   = "application/vnd.cnai.model.config.v1+json"
	legacyFilepath = "org.cnai.model.filepath"

	mediaTypeORMBConfig = "application/vnd.caicloud.model.config.v1alpha1+json"
	mediaTypeORMBLayer  = "application/tar+gzip"

	mediaTypeKitConfig = "application/vnd.kitops.modelkit.config.v1+json"

	annotationFilepath = "org.cncf.model.filepath"
	annotationFile     = "org.cncf.model.file.metadata+json"
	annotationUntested = "org.cncf.model.file.mediatype.untested"
)

// Annotations of a manifest that Diwan writes, since ModelPack's configuration has no place for them.
const (
	// AnnotationSignature is the model's [diwan.dev/diwan/internal/models/signature.Signature] as JSON,
	// without the list of its weights.
	AnnotationSignature = "dev.diwan.model.signature"
	// AnnotationMetadata is what ormbfile.yaml says, as JSON, without its signature.
	AnnotationMetadata = "dev.diwan.model.metadata"
)

var (
	layerPattern = regexp.MustCompile(`^application/vnd\.(?:cncf|cnai)\.model\.(weight|weight\.config|doc|code|dataset)\.v1\.(raw|tar)(?:\+(gzip|zstd))?$`)
	kitPattern   = regexp.MustCompile(`^application/vnd\.kitops\.modelkit\.(model|modelpart|dataset|code|docs)\.v1\.tar(?:\+(gzip|zstd))?$`)
	kitRoles     = map[string]Role{"model": Weight, "modelpart": Weight, "dataset": Dataset, "code": Code, "docs": Doc}
)

// FileMetadata describes a file, as ModelPack's annotation does.
type FileMetadata struct {
	Name string `json:"name"`
	// Mode is the permissions, as of Unix.
	Mode     uint32    `json:"mode"`
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Size     int64     `json:"size"`
	ModTime  time.Time `json:"mtime"`
	Typeflag byte      `json:"typeflag"`
}

// layer is what a descriptor means in this kind of artifact.
func (m *Manifest) layer(d ocispec.Descriptor) (Layer, bool) {
	l := Layer{Descriptor: d}
	switch m.Kind {
	case ORMB:
		l.Role, l.Tar, l.Compression, l.Path = Weight, true, Gzip, "model"
		return l, d.MediaType == mediaTypeORMBLayer
	case KitOps:
		match := kitPattern.FindStringSubmatch(d.MediaType)
		if match == nil {
			return l, false
		}
		l.Role, l.Tar, l.Compression = kitRoles[match[1]], true, Compression(match[2])
		return l, true
	default:
		match := layerPattern.FindStringSubmatch(d.MediaType)
		if match == nil || match[2] == "raw" && match[3] != "" {
			return l, false
		}
		l.Role, l.Tar, l.Compression = Role(match[1]), match[2] == "tar", Compression(match[3])
		l.Path = d.Annotations[annotationFilepath]
		if l.Path == "" {
			l.Path = d.Annotations[legacyFilepath]
		}
		var file FileMetadata
		if json.Unmarshal([]byte(d.Annotations[annotationFile]), &file) == nil && file.Name != "" {
			l.File = &file
		}
		if l.Path == "" && l.File != nil {
			l.Path = l.File.Name
		}
		return l, true
	}
}

// RawType is the media type of a file as it is.
func RawType(r Role) string { return "application/vnd.cncf.model." + string(r) + ".v1.raw" }

// extensions are what files with these ends of their names are, by modctl's lists where these agree with
// how Diwan reads models. Everything else is a weight.
var extensions = map[string]Role{
	".json": WeightConfig, ".jsonl": WeightConfig, ".yaml": WeightConfig, ".yml": WeightConfig, ".toml": WeightConfig,
	".ini": WeightConfig, ".cfg": WeightConfig, ".conf": WeightConfig, ".xml": WeightConfig, ".tiktoken": WeightConfig,
	".jinja": WeightConfig, ".pbtxt": WeightConfig, ".properties": WeightConfig,
	".md": Doc, ".txt": Doc, ".rst": Doc, ".pdf": Doc, ".html": Doc, ".png": Doc, ".jpg": Doc, ".jpeg": Doc, ".svg": Doc,
	".py": Code, ".ipynb": Code, ".sh": Code, ".go": Code, ".c": Code, ".cpp": Code, ".h": Code, ".rs": Code, ".java": Code, ".js": Code, ".ts": Code,
	".csv": Dataset, ".tsv": Dataset, ".parquet": Dataset, ".arrow": Dataset,
}

// RoleOf is what a file is for, by its name.
func RoleOf(name string) Role {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "license", "readme", "notice", "copying", "modelcard":
		return Doc
	case "vocab.txt", "merges.txt", "added_tokens.txt", "tokenizer.model", "spiece.model", "mlmodel":
		return WeightConfig
	case "makefile", "dockerfile":
		return Code
	}
	if role, known := extensions[path.Ext(base)]; known {
		return role
	}
	return Weight
}
