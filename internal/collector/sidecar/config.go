// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"fmt"
	"time"

	"diwan.dev/diwan/internal/collector"
	"diwan.dev/diwan/internal/entry"
)

// Config says what a collector in a Pod collects, and where it takes it. It
// travels as JSON, in an argument of the container.
type Config struct {
	// Spec is what to collect.
	Spec collector.Spec `json:"spec"`
	// Dir is shared with the trial's container. "": the program does not run by
	// package entry, and nobody waits for what it printed.
	Dir entry.Dir `json:"dir,omitempty"`
	// Store is the address of the DBManager, host:port, and Token the file with
	// the token by which it knows this Pod.
	Store string `json:"store"`
	Token string `json:"token"`
}

// The environment variables by which a container learns about its Pod.
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
