// SPDX-License-Identifier: Apache-2.0

package imagepush

import (
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// save writes an image to a file.
func save(t *testing.T, store *imagestore.Store, image imagestore.Name) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := store.Save(t.Context(), file, image); err != nil {
		t.Fatal(err)
	}
	return file
}

// config is the digest of an image's configuration.
func config(t *testing.T, image *imagestore.Image) v1.Hash {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Config.Digest
}
