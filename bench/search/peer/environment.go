// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Environment is a Python with some packages.
type Environment struct {
	// Python is the path of the interpreter.
	Python string
	// Versions are those of the packages in it, by name in small letters.
	Versions map[string]string
}

// Make returns the environment below a directory that holds what a file of
// requirements lists, and makes it where it is missing or the file has changed,
// by pip with options such as --no-deps. Several processes may ask for it at once.
func Make(ctx context.Context, directory, requirements string, options ...string) (*Environment, error) {
	wanted, err := os.ReadFile(requirements)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(directory, strings.TrimSuffix(filepath.Base(requirements), ".txt"))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, home+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	python, made := filepath.Join(home, "bin", "python"), filepath.Join(home, "requirements.txt")
	if have, err := os.ReadFile(made); err != nil || !bytes.Equal(have, wanted) {
		if err := build(ctx, home, python, requirements, options); err != nil {
			return nil, err
		}
		if err := os.WriteFile(made, wanted, 0o644); err != nil {
			return nil, err
		}
	}
	e := &Environment{Python: python}
	e.Versions, err = versions(ctx, python)
	return e, err
}

func build(ctx context.Context, home, python, requirements string, options []string) error {
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"python3", "-m", "venv", home},
		append([]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements}, options...),
	} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cannot make the environment of %s: %w: %.300s", filepath.Base(home), err, lastLine(out))
		}
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func versions(ctx context.Context, python string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list packages: %w", err)
	}
	var packages []struct{ Name, Version string }
	if err := json.Unmarshal(out, &packages); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, p := range packages {
		found[strings.ToLower(p.Name)] = p.Version
	}
	return found, nil
}
