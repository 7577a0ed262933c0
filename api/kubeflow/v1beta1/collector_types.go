// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// MetricsCollectorSpec says where a trial's metrics come from.
// +kubebuilder:pruning:PreserveUnknownFields
type MetricsCollectorSpec struct {
	// The place and form of the metrics.
	Source *SourceSpec `json:"source,omitempty"`

	// What collects them.
	Collector *CollectorSpec `json:"collector,omitempty"`
}

// SourceSpec is the place and form of metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type SourceSpec struct {
	// An endpoint with metrics in the Prometheus format.
	HttpGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`

	// A file or directory that the program writes.
	FileSystemPath *FileSystemPath `json:"fileSystemPath,omitempty"`

	// How metrics are found in lines of text.
	Filter *FilterSpec `json:"filter,omitempty"`
}

// FilterSpec finds metrics in lines of text.
// +kubebuilder:pruning:PreserveUnknownFields
type FilterSpec struct {
	// Regular expressions with two groups: the metric's name and its value.
	// The default finds name=value.
	MetricsFormat []string `json:"metricsFormat,omitempty"`
}

// FileSystemPath is a file or directory that holds metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type FileSystemPath struct {
	// The absolute path inside the container.
	Path string `json:"path,omitempty"`

	// What is there: File or Directory.
	Kind FileSystemKind `json:"kind,omitempty"`

	// How a file is written: TEXT, or JSON with one object a line.
	Format FileFormat `json:"format,omitempty"`
}

// FileSystemKind is what a path of metrics leads to.
type FileSystemKind string

// The kinds of paths.
const (
	DirectoryKind FileSystemKind = "Directory"
	FileKind      FileSystemKind = "File"
	InvalidKind   FileSystemKind = "Invalid"
)

// FileFormat is how a file of metrics is written.
type FileFormat string

// The formats of files.
const (
	TextFormat FileFormat = "TEXT"
	JSONFormat FileFormat = "JSON"
)

// CollectorSpec says what collects the metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type CollectorSpec struct {
	// The kind: StdOut (the default), File, TensorFlowEvent, PrometheusMetric,
	// Custom, None or Push.
	Kind CollectorKind `json:"kind,omitempty"`

	// The container that collects, for the kind Custom: a container as in a
	// Pod's spec.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	CustomCollector *corev1.Container `json:"customCollector,omitempty"`
}

// CollectorKind is a way to collect metrics.
type CollectorKind string

// The ways to collect metrics.
const (
	StdOutCollector           CollectorKind = "StdOut"
	FileCollector             CollectorKind = "File"
	TfEventCollector          CollectorKind = "TensorFlowEvent"
	PrometheusMetricCollector CollectorKind = "PrometheusMetric"
	CustomCollector           CollectorKind = "Custom"
	NoneCollector             CollectorKind = "None"
	PushCollector             CollectorKind = "Push"
)

// Places of metrics when the experiment names none.
const (
	DefaultFilePath               = "/var/log/katib/metrics.log"
	DefaultTensorflowEventDirPath = "/var/log/katib/tfevent/"
	DefaultPrometheusPath         = "/metrics"
	DefaultPrometheusPort         = 8080
)

// MetricsVolume is the Pod volume that a file of metrics lies on.
const MetricsVolume = "metrics-volume"
