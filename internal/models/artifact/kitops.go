// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// KitFile is the name of the file with the metadata of a kit.
const KitFile = "Kitfile"

// Kitfile makes the text of a kit's Kitfile of the kit's configuration.
func Kitfile(config []byte) ([]byte, error) {
	var content map[string]any
	if err := json.Unmarshal(config, &content); err != nil {
		return nil, fmt.Errorf("its configuration is not a Kitfile: %w", err)
	}
	withoutDigests(content)
	return yaml.Marshal(content)
}

// withoutDigests removes what a kit's configuration has and a Kitfile has not: the digests of the layers.
func withoutDigests(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "digest")
		delete(v, "diffId")
		for key, value := range v {
			if key != "parameters" {
				withoutDigests(value)
			}
		}
	case []any:
		for _, value := range v {
			withoutDigests(value)
		}
	}
}
