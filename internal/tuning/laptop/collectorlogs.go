// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// collectorContainer is the sidecar that Katib adds to a trial's Pod. It prints
// what the primary container prints, and that is where the Kubeflow SDKs read a
// trial's log. Here metrics are collected without it.
const collectorContainer = "metrics-logger-and-collector"

// collectorLogs answers a request for the log of a collectorContainer that a
// trial's Pod does not have with the log of its primary container. Everything
// else it passes on as it is.
type collectorLogs struct {
	next http.Handler
	kube kubernetes.Interface
}

// ServeHTTP implements http.Handler.
func (l collectorLogs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if namespace, pod, ok := logOf(r.URL.Path); ok && r.Method == http.MethodGet {
		query := r.URL.Query()
		if query.Get("container") == collectorContainer {
			if primary := l.primary(r.Context(), namespace, pod); primary != "" {
				query.Set("container", primary)
				r = r.Clone(r.Context())
				r.URL.RawQuery = query.Encode()
				r.RequestURI = r.URL.RequestURI()
			}
		}
	}
	l.next.ServeHTTP(w, r)
}

// logOf returns the Pod whose log is at a path of the API, if one is.
func logOf(path string) (namespace, pod string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 8 || parts[7] != "log" || parts[5] != "pods" || !strings.HasPrefix(path, "/api/v1/namespaces/") {
		return "", "", false
	}
	return parts[4], parts[6], true
}

// primary is the name of the primary container of a trial's Pod that has no
// collectorContainer; of any other it is "".
func (l collectorLogs) primary(ctx context.Context, namespace, name string) string {
	pod, err := l.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || pod.Labels[v1beta1.LabelTrial] == "" {
		return ""
	}
	if slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == collectorContainer }) {
		return ""
	}
	text, err := l.kube.CoreV1().RESTClient().Get().AbsPath("/apis", v1beta1.Group, v1beta1.Version).
		Namespace(namespace).Resource("trials").Name(pod.Labels[v1beta1.LabelTrial]).
		SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return ""
	}
	trial := struct {
		Spec struct{ PrimaryContainerName string }
	}{}
	if json.Unmarshal(text, &trial) != nil {
		return ""
	}
	return trial.Spec.PrimaryContainerName
}
