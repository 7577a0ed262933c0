// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/volume"
)

// environment is a container's environment under construction. Later layers
// override: this process's variables that pass through, the image's, those of
// Services, envFrom, env.
type environment struct {
	objects     *volume.Objects
	pod         *corev1.Pod
	allocatable corev1.ResourceList
	services    map[string]string // what $(VAR) finds besides declared
	declared    map[string]string // by the container
	warnings    []string
}

// configError is a mistake or a lack in a container's configuration. What lacks
// may come.
type configError struct{ message string }

func (e *configError) Error() string { return e.message }

// declare adds the container's envFrom and env.
func (e *environment) declare(ctx context.Context, c *corev1.Container) error {
	for i := range c.EnvFrom {
		if err := e.from(ctx, &c.EnvFrom[i]); err != nil {
			return err
		}
	}
	lookup := expansion.MappingFuncFor(e.declared, e.services)
	for i := range c.Env {
		v := &c.Env[i]
		value, set, err := expansion.Expand(v.Value, lookup), true, error(nil)
		if v.Value == "" && v.ValueFrom != nil {
			value, set, err = e.value(ctx, v.ValueFrom, c)
		}
		if err != nil {
			return err
		}
		if set {
			e.declared[v.Name] = value
		}
	}
	return nil
}

// from adds all keys of a ConfigMap or Secret.
func (e *environment) from(ctx context.Context, s *corev1.EnvFromSource) error {
	values, kind, name := map[string]string{}, "", ""
	var optional *bool
	var err error
	switch {
	case s.ConfigMapRef != nil:
		kind, name, optional = "configmap", s.ConfigMapRef.Name, s.ConfigMapRef.Optional
		var object *corev1.ConfigMap
		if object, err = e.objects.ConfigMap(ctx, e.pod.Namespace, name); err == nil {
			maps.Copy(values, object.Data)
		}
	case s.SecretRef != nil:
		kind, name, optional = "secret", s.SecretRef.Name, s.SecretRef.Optional
		var object *corev1.Secret
		if object, err = e.objects.Secret(ctx, e.pod.Namespace, name); err == nil {
			for k, v := range object.Data {
				values[k] = string(v)
			}
		}
	}
	if err != nil {
		return lacking(err, kind, name, optional)
	}
	for k, v := range values {
		k = s.Prefix + k
		if problems := validation.IsRelaxedEnvVarName(k); len(problems) > 0 {
			e.warnings = append(e.warnings, fmt.Sprintf("key %q of %s %q is not a valid environment variable name and was skipped", k, kind, name))
			continue
		}
		e.declared[k] = v
	}
	return nil
}

// value finds the value of a variable that refers to something.
func (e *environment) value(ctx context.Context, s *corev1.EnvVarSource, c *corev1.Container) (value string, set bool, err error) {
	switch {
	case s.FieldRef != nil:
		value, err = field(e.pod, s.FieldRef.FieldPath)
		if err != nil {
			err = &configError{fmt.Sprintf("cannot read field %s: %v", s.FieldRef.FieldPath, err)}
		}
		return value, true, err
	case s.ResourceFieldRef != nil:
		name := s.ResourceFieldRef.ContainerName
		if name == "" {
			name = c.Name
		}
		value, err = resource.ExtractResourceValueByContainerNameAndNodeAllocatable(s.ResourceFieldRef, e.pod, name, e.allocatable)
		if err != nil {
			err = &configError{fmt.Sprintf("cannot read resource %s: %v", s.ResourceFieldRef.Resource, err)}
		}
		return value, true, err
	case s.ConfigMapKeyRef != nil:
		ref := s.ConfigMapKeyRef
		object, err := e.objects.ConfigMap(ctx, e.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, lacking(err, "configmap", ref.Name, ref.Optional)
		}
		value, set = object.Data[ref.Key]
		return value, set, lackingKey(set, "ConfigMap", ref.Key, e.pod.Namespace, ref.Name, ref.Optional)
	case s.SecretKeyRef != nil:
		ref := s.SecretKeyRef
		object, err := e.objects.Secret(ctx, e.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, lacking(err, "secret", ref.Name, ref.Optional)
		}
		data, set := object.Data[ref.Key]
		return string(data), set, lackingKey(set, "Secret", ref.Key, e.pod.Namespace, ref.Name, ref.Optional)
	}
	return "", false, &configError{"a variable's valueFrom has a source that this node does not support; use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"}
}

// field is the value of a field that the downward API shows to a container.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

// lacking turns the failure to read an object into nil, where the object may be
// absent, or into kubelet's words.
func lacking(err error, kind, name string, optional *bool) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case optional != nil && *optional:
		return nil
	}
	return &configError{fmt.Sprintf("%s %q not found", kind, name)}
}

func lackingKey(found bool, kind, key, namespace, name string, optional *bool) error {
	if found || optional != nil && *optional {
		return nil
	}
	return &configError{fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)}
}

// expand replaces $(VAR) in a command or argument; unknown references stay.
func (e *environment) expand(text string) string {
	return expansion.Expand(text, expansion.MappingFuncFor(e.declared, e.services))
}

// expandStrict replaces $(VAR) by variables of the container; an unknown one is
// an error.
func (e *environment) expandStrict(text string) (string, error) {
	var errs []error
	out := expansion.Expand(text, func(name string) string {
		value, ok := e.declared[name]
		if !ok {
			errs = append(errs, fmt.Errorf("missing value for %q", name))
		}
		return value
	})
	return out, errors.Join(errs...)
}

// list is the whole environment, sorted by name.
func (e *environment) list(passed map[string]string, env *image.Environment) []string {
	all := maps.Clone(passed)
	maps.Copy(all, env.Env)
	maps.Copy(all, e.services)
	maps.Copy(all, e.declared)
	if len(env.PathDirs) > 0 {
		all["PATH"] = strings.Join(append(slices.Clone(env.PathDirs), all["PATH"]), string(os.PathListSeparator))
	}
	list := make([]string, 0, len(all))
	for k, v := range all {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// passed are the variables of this process that match the patterns.
func passed(environ, patterns []string) map[string]string {
	all := map[string]string{}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		for _, p := range patterns {
			if prefix, any := strings.CutSuffix(p, "*"); name == p || any && strings.HasPrefix(name, prefix) {
				all[name] = value
			}
		}
	}
	if all["PATH"] == "" {
		all["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return all
}

// serviceEnv returns the variables for Services: always the API server, and
// with enableServiceLinks those of the Pod's namespace.
func (n *Node) serviceEnv(pod *corev1.Pod) map[string]string {
	var visible []*corev1.Service
	if master, err := n.services.Services(corev1.NamespaceDefault).Get("kubernetes"); err == nil {
		visible = append(visible, master)
	}
	if links := pod.Spec.EnableServiceLinks; links == nil || *links {
		own, _ := n.services.Services(pod.Namespace).List(labels.Everything())
		visible = append(visible, own...)
	}
	env := map[string]string{}
	for _, v := range envvars.FromServices(visible) {
		env[v.Name] = v.Value
	}
	if host, port, err := net.SplitHostPort(n.cfg.APIServer); err == nil {
		env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"], env["KUBERNETES_SERVICE_PORT_HTTPS"] = host, port, port
	}
	return env
}
