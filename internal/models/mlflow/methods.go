// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/models/v1alpha1"
)

// What MLflow knows of a version and a ModelVersion does not is kept in annotations.
const (
	annotationRunID   = "mlflow.org/run-id"
	annotationRunLink = "mlflow.org/run-link"
)

type method struct {
	verbs  string // separated by blanks
	path   string
	answer func(context.Context, *call) (any, error)
}

// methods are the endpoints of model_registry.proto.
func methods() []method {
	return []method{
		{"POST", "registered-models/create", createModel},
		{"POST", "registered-models/rename", renameModel},
		{"PATCH", "registered-models/update", updateModel},
		{"DELETE", "registered-models/delete", deleteModel},
		{"GET", "registered-models/get", getModel},
		{"GET POST", "registered-models/search", searchModels},
		{"GET POST", "registered-models/get-latest-versions", latestVersions},
		{"POST", "registered-models/set-tag", func(ctx context.Context, c *call) (any, error) { return c.tagModel(ctx, &c.request.Value) }},
		{"DELETE", "registered-models/delete-tag", func(ctx context.Context, c *call) (any, error) { return c.tagModel(ctx, nil) }},
		{"POST", "registered-models/alias", setAlias},
		{"DELETE", "registered-models/alias", deleteAlias},
		{"GET", "registered-models/alias", versionByAlias},
		{"POST", "model-versions/create", createVersion},
		{"PATCH", "model-versions/update", updateVersion},
		{"POST", "model-versions/transition-stage", transitionStage},
		{"DELETE", "model-versions/delete", deleteVersion},
		{"GET", "model-versions/get", getVersion},
		{"GET POST", "model-versions/search", searchVersions},
		{"GET", "model-versions/get-download-uri", downloadURI},
		{"POST", "model-versions/set-tag", func(ctx context.Context, c *call) (any, error) { return c.tagVersion(ctx, &c.request.Value) }},
		{"DELETE", "model-versions/delete-tag", func(ctx context.Context, c *call) (any, error) { return c.tagVersion(ctx, nil) }},
	}
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type alias struct {
	Alias   string `json:"alias"`
	Version string `json:"version"`
}

type registeredModel struct {
	Name           string         `json:"name"`
	Created        int64          `json:"creation_timestamp"`
	Updated        int64          `json:"last_updated_timestamp"`
	Description    string         `json:"description,omitempty"`
	LatestVersions []modelVersion `json:"latest_versions,omitempty"`
	Tags           []tag          `json:"tags,omitempty"`
	Aliases        []alias        `json:"aliases,omitempty"`
}

type modelVersion struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Created     int64    `json:"creation_timestamp"`
	Updated     int64    `json:"last_updated_timestamp"`
	Stage       string   `json:"current_stage"`
	Description string   `json:"description,omitempty"`
	Source      string   `json:"source"`
	RunID       string   `json:"run_id,omitempty"`
	RunLink     string   `json:"run_link,omitempty"`
	Status      string   `json:"status"`
	Tags        []tag    `json:"tags,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
}

// answerOf is a model as MLflow sees it; versions are all of the namespace's that may
// be its own.
func answerOf(m *v1alpha1.Model, versions []v1alpha1.ModelVersion) registeredModel {
	answer := registeredModel{
		Name: m.Name, Created: m.CreationTimestamp.UnixMilli(), Updated: updated(m), Description: m.Spec.Description, Tags: tagsOf(m.Spec.Tags),
	}
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Aliases)) {
		answer.Aliases = append(answer.Aliases, alias{name, strconv.FormatInt(m.Spec.Aliases[name], 10)})
	}
	answer.LatestVersions = latest(m, versions, nil)
	return answer
}

// latest are a model's newest versions in each of the stages, in all without any.
func latest(m *v1alpha1.Model, versions []v1alpha1.ModelVersion, stages []string) []modelVersion {
	newest := map[v1alpha1.Stage]*v1alpha1.ModelVersion{}
	for i := range versions {
		v := &versions[i]
		stage := stageOf(v)
		if v.Spec.Model != m.Name || len(stages) > 0 && !slices.ContainsFunc(stages, func(s string) bool { return strings.EqualFold(s, string(stage)) }) {
			continue
		}
		if newest[stage] == nil || newest[stage].Spec.Version < v.Spec.Version {
			newest[stage] = v
		}
	}
	var answer []modelVersion
	for _, stage := range slices.Sorted(maps.Keys(newest)) {
		answer = append(answer, versionOf(m, newest[stage]))
	}
	return answer
}

func versionOf(m *v1alpha1.Model, v *v1alpha1.ModelVersion) modelVersion {
	answer := modelVersion{
		Name: v.Spec.Model, Version: strconv.FormatInt(v.Spec.Version, 10), Created: v.CreationTimestamp.UnixMilli(), Updated: updated(v),
		Stage: string(stageOf(v)), Description: v.Spec.Description, Source: v.Spec.URI, Status: "READY", Tags: tagsOf(v.Spec.Tags),
		RunID: v.Annotations[annotationRunID], RunLink: v.Annotations[annotationRunLink],
	}
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Aliases)) {
		if m.Spec.Aliases[name] == v.Spec.Version {
			answer.Aliases = append(answer.Aliases, name)
		}
	}
	return answer
}

func stageOf(v *v1alpha1.ModelVersion) v1alpha1.Stage {
	if v.Spec.Stage == "" {
		return v1alpha1.StageNone
	}
	return v.Spec.Stage
}

func tagsOf(tags map[string]string) []tag {
	var answer []tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		answer = append(answer, tag{key, tags[key]})
	}
	return answer
}

// updated is when an object was written last, in milliseconds. The object comes from
// the API server, not from a cache that leaves this out.
func updated(o client.Object) int64 {
	last := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) && f.Subresource == "" {
			last = f.Time.Time
		}
	}
	return last.UnixMilli()
}

// mapOf are tags as a map; of a key that comes twice the last counts, as in MLflow.
func mapOf(tags []tag) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	m := map[string]string{}
	for _, t := range tags {
		m[t.Key] = t.Value
	}
	return m
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// key checks the name in the request, and returns the key of its Model.
func (c *call) key() (client.ObjectKey, error) {
	name := c.request.Name
	if name == "" {
		return client.ObjectKey{}, invalid("parameter name is missing")
	}
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return client.ObjectKey{}, invalid("registered model name %.200q: models are Kubernetes objects, whose names have at most 200 lowercase letters, digits, dots and dashes: %s", name, strings.Join(why, "; "))
	}
	return client.ObjectKey{Namespace: c.namespace, Name: name}, nil
}

func (c *call) what() string { return fmt.Sprintf("registered model %q", c.request.Name) }

func (c *call) whatVersion() string {
	return fmt.Sprintf("version %d of registered model %q", c.request.Version, c.request.Name)
}

// model reads the request's model.
func (c *call) model(ctx context.Context) (*v1alpha1.Model, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Model{}
	if err := c.Get(ctx, key, m); err != nil {
		return nil, failure(c.what(), err)
	}
	return m, nil
}

// versions are those of a model, of all with "".
func (c *call) versions(ctx context.Context, model string) ([]v1alpha1.ModelVersion, error) {
	var list v1alpha1.ModelVersionList
	if err := c.List(ctx, &list, client.InNamespace(c.namespace)); err != nil {
		return nil, failure("the versions in namespace "+c.namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(v v1alpha1.ModelVersion) bool {
		return !v.DeletionTimestamp.IsZero() || model != "" && v.Spec.Model != model
	}), nil
}

// version reads the request's version and its model.
func (c *call) version(ctx context.Context) (*v1alpha1.Model, *v1alpha1.ModelVersion, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c.request.Version < 1 {
		return nil, nil, invalid("parameter version must be a number of at least 1")
	}
	v := &v1alpha1.ModelVersion{}
	key := client.ObjectKey{Namespace: c.namespace, Name: v1alpha1.ModelVersionName(m.Name, int64(c.request.Version))}
	if err := c.Get(ctx, key, v); err != nil {
		return nil, nil, failure(c.whatVersion(), err)
	}
	return m, v, nil
}

// change merges fields into an object's spec.
func (c *call) change(ctx context.Context, o client.Object, what string, spec map[string]any) error {
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	return failure(what, c.Patch(ctx, o, client.RawPatch(types.MergePatchType, text)))
}

func modelReply(m *v1alpha1.Model, versions []v1alpha1.ModelVersion) any {
	return map[string]any{"registered_model": answerOf(m, versions)}
}

func versionReply(m *v1alpha1.Model, v *v1alpha1.ModelVersion) any {
	return map[string]any{"model_version": versionOf(m, v)}
}

func createModel(ctx context.Context, c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Model{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       v1alpha1.ModelSpec{Description: deref(c.request.Description), Tags: mapOf(c.request.Tags)},
	}
	if err := c.Create(ctx, m); err != nil {
		return nil, failure(c.what(), err)
	}
	return modelReply(m, nil), nil
}

func renameModel(_ context.Context, c *call) (any, error) {
	return nil, invalid("%s cannot be renamed: the name of a Kubernetes object never changes; register its versions under the other name", c.what())
}

func updateModel(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	if c.request.Description != nil {
		if err := c.change(ctx, m, c.what(), map[string]any{"description": *c.request.Description}); err != nil {
			return nil, err
		}
	}
	return withVersions(ctx, c, m)
}

func deleteModel(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Delete(ctx, m, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return nil, failure(c.what(), err)
	}
	return struct{}{}, nil
}

func getModel(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	return withVersions(ctx, c, m)
}

func withVersions(ctx context.Context, c *call, m *v1alpha1.Model) (any, error) {
	versions, err := c.versions(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	return modelReply(m, versions), nil
}

func latestVersions(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := c.versions(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	return map[string]any{"model_versions": latest(m, versions, c.request.Stages)}, nil
}

// tagModel sets a tag of a model, or removes it.
func (c *call) tagModel(ctx context.Context, value *string) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	return c.tag(ctx, m, c.what(), value)
}

// tagVersion sets a tag of a version, or removes it.
func (c *call) tagVersion(ctx context.Context, value *string) (any, error) {
	_, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	return c.tag(ctx, v, c.whatVersion(), value)
}

func (c *call) tag(ctx context.Context, o client.Object, what string, value *string) (any, error) {
	if c.request.Key == "" {
		return nil, invalid("parameter key is missing")
	}
	return struct{}{}, c.change(ctx, o, what, map[string]any{"tags": map[string]*string{c.request.Key: value}})
}

func setAlias(ctx context.Context, c *call) (any, error) {
	m, _, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	return c.point(ctx, m, int64(c.request.Version))
}

func deleteAlias(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	return c.point(ctx, m, nil)
}

// point points the request's alias to a version, or removes it with nil.
func (c *call) point(ctx context.Context, m *v1alpha1.Model, version any) (any, error) {
	if c.request.Alias == "" {
		return nil, invalid("parameter alias is missing")
	}
	return struct{}{}, c.change(ctx, m, fmt.Sprintf("alias %q of %s", c.request.Alias, c.what()), map[string]any{"aliases": map[string]any{c.request.Alias: version}})
}

func versionByAlias(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	version, ok := m.Spec.Aliases[c.request.Alias]
	if !ok {
		// MLflow's client tells this from a missing model by the code.
		return nil, refuse(http.StatusBadRequest, codeInvalid, "%s has no alias %q", c.what(), c.request.Alias)
	}
	c.request.Version = number(version)
	_, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	return versionReply(m, v), nil
}

func createVersion(ctx context.Context, c *call) (any, error) {
	m, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	if c.request.Source == "" {
		return nil, invalid("parameter source is missing: say where the files of the version are")
	}
	v := &v1alpha1.ModelVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace},
		Spec: v1alpha1.ModelVersionSpec{
			Model: m.Name, URI: sourceURI(c.request.Source), Description: deref(c.request.Description), Tags: mapOf(c.request.Tags), Stage: v1alpha1.StageNone,
		},
	}
	for key, value := range map[string]string{annotationRunID: c.request.RunID, annotationRunLink: c.request.RunLink} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&v.ObjectMeta, key, value)
		}
	}
	for {
		versions, err := c.versions(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		next := m.Status.HighestVersion + 1
		for _, other := range versions {
			next = max(next, other.Spec.Version+1)
		}
		v.Name, v.Spec.Version = v1alpha1.ModelVersionName(m.Name, max(next, v.Spec.Version+1)), max(next, v.Spec.Version+1)
		err = c.Create(ctx, v)
		if err == nil {
			return versionReply(m, v), nil
		}
		if !apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
			return nil, failure("a version of "+c.what(), err)
		}
	}
}

// sourceURI is a source as a URI; a path of a file system is one of its own.
func sourceURI(source string) string {
	if strings.HasPrefix(source, "/") {
		return "file://" + source
	}
	return source
}

func updateVersion(ctx context.Context, c *call) (any, error) {
	m, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	if c.request.Description != nil {
		if err := c.change(ctx, v, c.whatVersion(), map[string]any{"description": *c.request.Description}); err != nil {
			return nil, err
		}
	}
	return versionReply(m, v), nil
}

func transitionStage(ctx context.Context, c *call) (any, error) {
	m, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	var stage v1alpha1.Stage
	for _, s := range []v1alpha1.Stage{v1alpha1.StageNone, v1alpha1.StageStaging, v1alpha1.StageProduction, v1alpha1.StageArchived} {
		if strings.EqualFold(string(s), c.request.Stage) {
			stage = s
		}
	}
	if stage == "" {
		return nil, invalid("stage %.100q: must be None, Staging, Production or Archived", c.request.Stage)
	}
	if c.request.ArchiveExisting && stage != v1alpha1.StageStaging && stage != v1alpha1.StageProduction {
		return nil, invalid("archive_existing_versions applies to the stages Staging and Production, not to %s", stage)
	}
	if err := c.change(ctx, v, c.whatVersion(), map[string]any{"stage": stage}); err != nil {
		return nil, err
	}
	if !c.request.ArchiveExisting {
		return versionReply(m, v), nil
	}
	versions, err := c.versions(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	for i := range versions {
		if other := &versions[i]; other.Name != v.Name && other.Spec.Stage == stage {
			if err := c.change(ctx, other, other.Name, map[string]any{"stage": v1alpha1.StageArchived}); err != nil {
				return nil, err
			}
		}
	}
	return versionReply(m, v), nil
}

func deleteVersion(ctx context.Context, c *call) (any, error) {
	_, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Delete(ctx, v, client.Preconditions{UID: &v.UID}); err != nil {
		return nil, failure(c.whatVersion(), err)
	}
	return struct{}{}, nil
}

func getVersion(ctx context.Context, c *call) (any, error) {
	m, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	return versionReply(m, v), nil
}

func downloadURI(ctx context.Context, c *call) (any, error) {
	_, v, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"artifact_uri": v.Spec.URI}, nil
}
