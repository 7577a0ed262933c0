// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"fmt"
	"time"

	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/entry"
)

// Config specifies what a collector in a Pod collects, and where it sends it.
// It is passed as JSON, in an argument of the container.
type Config struct {
	// Spec is what to collect.
	Spec collector.Spec `json:"spec"`
	// Dir is shared with the trial's container. If "", package entry does not
	// run the program, and nobody waits for its output.
	Dir entry.Dir `json:"dir,omitempty"`
	// Store is the address of the DBManager, host:port, and Token the file with
	// the token that identifies this Pod.
	Store string `json:"store"`
	Token string `json:"token"`
}

// The environment variables with a container's Pod.
const (
	EnvPodUID = "POD_UID"
	EnvPodIP  = "POD_IP"
)

// Parse reads what Config.Encode wrote.
func Parse(text string) (Config, error) {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("cannot read the collector's configuration: %w", err)
	}
	return c, nil
}

// Encode writes the configuration as an argument.
func (c Config) Encode() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("cannot write the collector's configuration: %w", err)
	}
	return string(text), nil
}

// The pace of a collector. A look at a file that has not grown takes some
// microseconds.
const (
	lookInterval = 20 * time.Millisecond
	lookRetry    = 500 * time.Millisecond
)
