// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// ErrNoEntry says that a table has no entry for that image.
var ErrNoEntry = errors.New("no entry for that image")

// Map writes an entry to the images.yaml at path, replacing one for the same
// image. Comments and the order of other entries are preserved.
func Map(path string, e Entry) error {
	if err := e.validate(); err != nil {
		return fmt.Errorf("cannot map image: %w", err)
	}
	return edit(path, func(images *yaml.Node) error {
		var n yaml.Node
		if err := n.Encode(e); err != nil {
			return err
		}
		if i := indexOf(images, e.Image); i >= 0 {
			old := images.Content[i]
			n.HeadComment, n.LineComment, n.FootComment = old.HeadComment, old.LineComment, old.FootComment
			images.Content[i] = &n
			return nil
		}
		images.Content = append(images.Content, &n)
		return nil
	})
}

// Unmap removes the entry of an image from the images.yaml at path. It is
// ErrNoEntry when there is none.
func Unmap(path, image string) error {
	return edit(path, func(images *yaml.Node) error {
		i := indexOf(images, image)
		if i < 0 {
			return fmt.Errorf("%w: %s", ErrNoEntry, image)
		}
		images.Content = append(images.Content[:i], images.Content[i+1:]...)
		return nil
	})
}

// indexOf finds the entry with just that image.
func indexOf(images *yaml.Node, image string) int {
	for i, entry := range images.Content {
		for k := 0; k+1 < len(entry.Content); k += 2 {
			if entry.Content[k].Value == "image" && entry.Content[k+1].Value == image {
				return i
			}
		}
	}
	return -1
}

// edit changes the list of images in a file, which it replaces in one step.
func edit(path string, change func(images *yaml.Node) error) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read image table: %w", err)
	}
	if _, err := Parse(text); err != nil {
		return fmt.Errorf("cannot edit image table %s: %w", path, err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("cannot edit image table %s: %w", path, err)
	}
	if err := change(imagesOf(&document)); err != nil {
		return fmt.Errorf("cannot edit image table %s: %w", path, err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("cannot edit image table %s: %w", path, err)
	}
	return replace(path, out.Bytes())
}

// imagesOf returns the node of the list, and makes it in a document without one.
func imagesOf(document *yaml.Node) *yaml.Node {
	if document.Kind == 0 {
		document.Kind = yaml.DocumentNode
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		document.Content = []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "images" {
			continue
		}
		list := root.Content[i+1]
		if list.Kind != yaml.SequenceNode {
			*list = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		if len(list.Content) == 0 {
			list.Style = 0
		}
		return list
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "images"}, list)
	return list
}

// replace writes a file such that readers find the old text or the new one.
func replace(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot write image table: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write image table: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write image table: %w", err)
	}
	return nil
}
