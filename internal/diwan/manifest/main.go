// SPDX-License-Identifier: Apache-2.0

// Command manifest generates the parts of a Helm chart that derive from the domains:
// webhook configurations, RBAC rules of the operator and of users, and the kinds that
// can be left to other controllers.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/tuning"
	"diwan.dev/diwan/internal/tuning/collector/injection"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifest CHART")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(chart string) error {
	// The chart contains everything that can be enabled, under its condition.
	domains := diwan.Domains(diwan.Options{Tuning: tuning.Options{Collector: &injection.Config{}}})
	schema, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return err
	}
	if schema, err = withNames(schema, domains); err != nil {
		return err
	}
	webhooks, err := webhooks(domains)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"templates/webhooks.yaml": webhooks,
		"templates/_rights.tpl":   rights(domains),
		"values.schema.json":      schema,
	} {
		if err := os.WriteFile(filepath.Join(chart, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
