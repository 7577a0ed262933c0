// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
)

// Mode is how Pods are connected.
type Mode string

// The modes.
const (
	// Auto is Namespaces where the system allows them, else Loopback.
	Auto Mode = "Auto"
	// Namespaces gives each Pod a network namespace; it is an error where the system does not allow it.
	Namespaces Mode = "Namespaces"
	// Loopback runs Pods in the host's network with addresses of 127.0.0.0/8.
	Loopback Mode = "Loopback"
)

// Config configures a Network.
type Config struct {
	// Plan is the cluster's addresses; see PlanFor.
	Plan Plan
	// Mode is how Pods are connected.
	Mode Mode
	// Spare is how many namespaces are kept ready, 0 to 100. Default 2: a trial
	// that follows another needs one, and a second hides the making of the next.
	Spare int
	// Idle is the maximum number of namespaces kept for reuse, at least Spare.
	// Default 64: enough for a burst of 50 parallel trials, at about 300 KiB
	// each.
	Idle int
	// Log logs what the network could not do, once each; the zero Logger is silent.
	Log logr.Logger
}

// Default returns the configuration for a plan.
func Default(plan Plan) Config {
	return Config{Plan: plan, Mode: Auto, Spare: 2, Idle: 64}
}

// errUnsupported says that this process may not make network namespaces.
var errUnsupported = errors.New("network namespaces require Linux, and root or a user namespace (package rootless)")

// New connects the node's Pods. The caller closes the Network.
func New(cfg Config) (Network, error) {
	if !cfg.Plan.Pods.IsValid() || cfg.Plan.ID == "" {
		return nil, errors.New("cannot create a network: its plan is empty; take it from PlanFor")
	}
	if cfg.Spare < 0 || cfg.Spare > 100 {
		return nil, fmt.Errorf("cannot create a network: %d spare namespaces, want 0 to 100", cfg.Spare)
	}
	cfg.Idle = max(cfg.Idle, cfg.Spare)
	switch cfg.Mode {
	case Loopback:
		return newLoopback(cfg.Plan), nil
	case Namespaces:
		return newNamespaces(cfg)
	case Auto, "":
		n, err := newNamespaces(cfg)
		if err != nil {
			cfg.Log.Info("Pods share this machine's network: give them different ports, or listen on $POD_IP", "reason", err.Error())
			shared := newLoopback(cfg.Plan)
			shared.why = err
			return shared, nil
		}
		return n, nil
	default:
		return nil, fmt.Errorf("cannot create a network: unknown mode %q, want %s, %s or %s", cfg.Mode, Auto, Namespaces, Loopback)
	}
}
