// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/search/analysis"
	"diwan.dev/diwan/bench/search/peer"
	"diwan.dev/diwan/bench/search/study"
	"diwan.dev/diwan/optimize"
)

// pace says how much a peer's suggestions cost, which decides how many problems
// it gets.
type pace int

const (
	cheap  pace = iota // up to some milliseconds
	medium             // tenths of a second
	slow               // a second and more
)

// program is a peer's sampler.
type program struct {
	name         string // library/sampler
	requirements string // of its environment, in peers/requirements
	script       string // in peers, and what it is given
	pace         pace
	library      string // the package whose version is told
}

var programs = []program{
	{"optuna/random", "optuna", "optuna_peer.py random", cheap, "optuna"},
	{"optuna/tpe", "optuna", "optuna_peer.py tpe", cheap, "optuna"},
	{"optuna/tpe-independent", "optuna", "optuna_peer.py tpe-independent", cheap, "optuna"},
	{"optuna/cmaes", "optuna", "optuna_peer.py cmaes", cheap, "optuna"},
	{"optuna/gp", "optuna", "optuna_peer.py gp", medium, "optuna"},
	{"hyperopt/tpe", "hyperopt", "hyperopt_peer.py", cheap, "hyperopt"},
	{"pycma/cmaes", "pycma", "pycma_peer.py", cheap, "cma"},
	{"skopt/gp", "skopt", "skopt_peer.py", medium, "scikit-optimize"},
	{"smac/default", "smac", "smac_peer.py", medium, "smac"},
	{"vizier/default", "vizier", "vizier_peer.py", slow, "google-vizier"},
	{"hebo/default", "hebo", "hebo_peer.py", slow, "hebo"},
}

// twins are our samplers and the peers' of the same method.
var twins = []analysis.Twin{
	{Ours: "ours/tpe", Peer: "hyperopt/tpe"},
	{Ours: "ours/tpe", Peer: "optuna/tpe-independent"},
	{Ours: "ours/multivariate-tpe", Peer: "optuna/tpe"},
	{Ours: "ours/bayesianoptimization", Peer: "skopt/gp"},
	{Ours: "ours/bayesianoptimization", Peer: "optuna/gp"},
	{Ours: "ours/bayesianoptimization", Peer: "vizier/default"},
	{Ours: "ours/bayesianoptimization", Peer: "hebo/default"},
	{Ours: "ours/bayesianoptimization", Peer: "smac/default"},
	{Ours: "ours/cmaes", Peer: "optuna/cmaes"},
	{Ours: "ours/cmaes", Peer: "pycma/cmaes"},
	{Ours: "ours/random", Peer: "optuna/random"},
}

// notCompared are algorithms of ours that have no place here: they enumerate,
// need a parameter of a certain meaning, or search architectures.
var notCompared = []string{"grid", "hyperband", "asha", "bohb", "pbt", "enas", "darts"}

// ourNames returns our samplers that can be compared.
func ourNames() (names []string) {
	for _, a := range optimize.Known() {
		if !slices.Contains(notCompared, a.Name) {
			names = append(names, "ours/"+a.Name)
		}
	}
	return names
}

// chosen returns the names of optimizers that a list asks for: names, or ours,
// peers, cheap (peers) and all. Ours may have settings: ours/tpe:gamma=0.3;prior_weight=2.
func chosen(list string) ([]string, error) {
	var names []string
	for _, item := range strings.Split(list, ",") {
		switch item = strings.TrimSpace(item); item {
		case "ours":
			names = append(names, ourNames()...)
		case "all", "peers", "cheap":
			if item == "all" {
				names = append(names, ourNames()...)
			}
			for _, p := range programs {
				if item != "cheap" || p.pace == cheap {
					names = append(names, p.name)
				}
			}
		default:
			if _, err := find(item); err != nil {
				return nil, err
			}
			names = append(names, item)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// find returns the program of a peer's name, or nil for one of ours.
func find(name string) (*program, error) {
	if strings.HasPrefix(name, "ours/") {
		return nil, nil
	}
	for i := range programs {
		if programs[i].name == name {
			return &programs[i], nil
		}
	}
	return nil, fmt.Errorf("unknown optimiser %q: want ours/<algorithm>, ours, peers, cheap, all or one of %s", name, peerNames())
}

func peerNames() string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// paceOf returns how much an optimiser's suggestions cost.
func paceOf(name string) pace {
	if p, err := find(name); err == nil && p != nil {
		return p.pace
	}
	return cheap
}

// workshop makes optimizers, and the environments that they need.
type workshop struct {
	peers string // the directory of the adapters
	cache string // that of the environments
	made  map[string]*peer.Environment
	// broken are environments that cannot be made, by name; versions those of
	// the peers' packages.
	broken   map[string]error
	versions map[string]string
}

func newWorkshop(peers, cache string) *workshop {
	return &workshop{peers: peers, cache: cache, made: map[string]*peer.Environment{}, broken: map[string]error{}, versions: map[string]string{}}
}

// environment returns the environment of some requirements; it fails in the
// same way each time.
func (w *workshop) environment(ctx context.Context, requirements string) (*peer.Environment, error) {
	if e := w.made[requirements]; e != nil || w.broken[requirements] != nil {
		return e, w.broken[requirements]
	}
	e, err := peer.Make(ctx, w.cache, filepath.Join(w.peers, "requirements", requirements+".txt"))
	if err != nil {
		w.broken[requirements] = err
		return nil, err
	}
	w.made[requirements] = e
	return e, nil
}

// prepare makes the environments of some optimizers.
func (w *workshop) prepare(ctx context.Context, names []string) error {
	for _, name := range names {
		p, err := find(name)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		if e, err := w.environment(ctx, p.requirements); err == nil {
			w.versions[p.library] = cmp.Or(e.Versions[p.library], "unknown")
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// told returns the versions of the peers' packages, and which cannot be had.
func (w *workshop) told() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(w.versions)) {
		texts = append(texts, name+" "+w.versions[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.broken)) {
		texts = append(texts, fmt.Sprintf("%s cannot be had (%v)", name, w.broken[name]))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// optimiser returns a new optimiser by name. It is safe for several goroutines
// once prepare has ended.
func (w *workshop) optimiser(name string) (study.Optimiser, error) {
	p, err := find(name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return ourOptimiser(name)
	}
	e := w.made[p.requirements]
	if e == nil {
		return nil, w.broken[p.requirements]
	}
	arguments := strings.Fields(p.script)
	arguments[0] = filepath.Join(w.peers, arguments[0])
	return &study.Peer{Python: e.Python, Arguments: arguments}, nil
}

// ourOptimiser reads ours/algorithm:setting=value;setting=value.
func ourOptimiser(name string) (study.Optimiser, error) {
	algorithm, list, _ := strings.Cut(strings.TrimPrefix(name, "ours/"), ":")
	o := study.Ours{Algorithm: algorithm, Settings: map[string]string{}}
	for _, setting := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' }) {
		key, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, fmt.Errorf("setting %q of %s: want name=value", setting, name)
		}
		o.Settings[key] = value
	}
	return o, nil
}
