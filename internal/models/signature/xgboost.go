// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"strings"
)

// errXGBoostBinary is the answer to the format that XGBoost wrote before JSON.
var errXGBoostBinary = fmt.Errorf("%w: this looks like XGBoost's old binary format, which newer releases do not read either; "+
	"load it with XGBoost 2.1 or older and save it as .json or .ubj", ErrUnsupported)

// xgboostSelection leaves out the trees, except how many nodes they have.
func xgboostSelection(path string) bool {
	const tree = "trees[]."
	if i := strings.LastIndex(path, tree); i >= 0 {
		below := path[i+len(tree):]
		return below == "tree_param" || below == "tree_param.num_nodes"
	}
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "tree_info", "iteration_indptr", "weights[]", "weight_drop", "cats", "boosted_weights[]":
		return false
	}
	return true
}

// readXGBoost reads a model that was saved as JSON or UBJSON.
// https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html
func readXGBoost(r *reading, f *file) error {
	head, err := f.peek(0, 64)
	if err != nil {
		return err
	}
	if len(head) < 2 || head[0] != '{' {
		return f.fail(0, errXGBoostBinary)
	}
	var model document
	if text := strings.TrimLeft(string(head[1:]), " \t\r\n"); strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "}") {
		model, err = f.json(0, f.size, xgboostSelection)
	} else {
		r.sig.setMetadata("encoding", "ubjson")
		model, err = f.ubjson(xgboostSelection)
	}
	if err != nil {
		return err
	}
	learner, ok := get(model, "learner").(object)
	if !ok {
		// What pickles and save_raw of a whole Booster hold.
		if learner, ok = get(model, "Model", "learner").(object); !ok {
			return f.errorf(-1, "it has no learner: this is no model of XGBoost")
		}
		model = get(model, "Model")
	}
	if version := getTexts(model, "version"); len(version) > 0 {
		r.sig.FormatVersion = strings.Join(version, ".")
		r.sig.Producer = "xgboost " + r.sig.FormatVersion
	}
	trees := &Trees{Objective: getText(learner, "objective", "name"), Booster: getText(learner, "gradient_booster", "name")}
	features, ok := getInt(learner, "learner_model_param", "num_feature")
	if !ok || features < 0 {
		return f.errorf(-1, "learner.learner_model_param.num_feature is %q", getText(learner, "learner_model_param", "num_feature"))
	}
	trees.Features = features
	classes, _ := getInt(learner, "learner_model_param", "num_class")
	if classes < 0 {
		return f.errorf(-1, "learner.learner_model_param.num_class is %d", classes)
	}
	trees.Classes = classes
	if classes == 0 && strings.HasPrefix(trees.Objective, "binary:") {
		trees.Classes = 2
	}
	booster := get(learner, "gradient_booster", "model")
	if trees.Booster == "dart" {
		booster = get(learner, "gradient_booster", "gbtree", "model")
	}
	if trees.Booster == "gblinear" {
		weights, _ := get(booster, "weights").(omitted)
		r.sig.addParameters(weights.Items)
	} else if err := countTrees(f, trees, booster); err != nil {
		return err
	}
	r.sig.Trees = trees
	r.sig.Features = getTexts(learner, "feature_names")
	if n := int64(len(r.sig.Features)); n != 0 && n != features {
		return f.errorf(-1, "it names %d features and has %d", n, features)
	}
	// Since 3.1 this is a text with a list in it: "[5E-1]".
	r.sig.setMetadata("base_score", strings.Trim(getText(learner, "learner_model_param", "base_score"), "[]"))
	if attributes, ok := get(learner, "attributes").(object); ok {
		for name := range attributes {
			r.sig.setMetadata(name, getText(attributes, name))
		}
	}
	r.sig.Inputs = []Tensor{{Name: "features", Type: "float32", Shape: Fixed(-1, features)}}
	output := Fixed(-1)
	if targets, _ := getInt(learner, "learner_model_param", "num_target"); targets > 1 {
		output = Fixed(-1, targets)
	} else if classes > 1 && trees.Objective != "multi:softmax" {
		output = Fixed(-1, classes)
	}
	r.sig.Outputs = []Tensor{{Name: "prediction", Type: "float32", Shape: output}}
	return nil
}

// countTrees counts the trees and their nodes, and compares with what the model claims.
func countTrees(f *file, trees *Trees, booster document) error {
	list, ok := get(booster, "trees").([]document)
	if !ok {
		return errors.New("learner.gradient_booster.model has no trees")
	}
	trees.Count = int64(len(list))
	if claimed, ok := getInt(booster, "gbtree_model_param", "num_trees"); !ok || claimed != trees.Count {
		return f.errorf(-1, "it has %d trees and claims %q", trees.Count, getText(booster, "gbtree_model_param", "num_trees"))
	}
	for i, tree := range list {
		nodes, ok := getInt(tree, "tree_param", "num_nodes")
		if !ok || nodes < 0 {
			return f.errorf(-1, "tree %d has %q nodes", i, getText(tree, "tree_param", "num_nodes"))
		}
		trees.Nodes = sum(trees.Nodes, nodes)
	}
	return nil
}
