// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// MetricsCollectorSpec specifies where a trial's metrics come from.
// +kubebuilder:pruning:PreserveUnknownFields
type MetricsCollectorSpec struct {
	// The location and format of the metrics.
	Source *SourceSpec `json:"source,omitempty"`

	// The collector.
	Collector *CollectorSpec `json:"collector,omitempty"`
}

// SourceSpec is the location and format of metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type SourceSpec struct {
	// An endpoint with metrics in the Prometheus format.
	HttpGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`

	// A file or directory that the program writes.
	FileSystemPath *FileSystemPath `json:"fileSystemPath,omitempty"`

	// How metrics are extracted from lines of text.
	Filter *FilterSpec `json:"filter,omitempty"`
}

// FilterSpec extracts metrics from lines of text.
// +kubebuilder:pruning:PreserveUnknownFields
type FilterSpec struct {
	// Regular expressions with two groups: the metric's name and its value.
	// The default matches name=value.
	MetricsFormat []string `json:"metricsFormat,omitempty"`
}

// FileSystemPath is a file or directory with metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type FileSystemPath struct {
	// The absolute path inside the container.
	Path string `json:"path,omitempty"`

	// The kind of path: File or Directory.
	Kind FileSystemKind `json:"kind,omitempty"`

	// The file format: TEXT, or JSON with one object per line.
	Format FileFormat `json:"format,omitempty"`
}

// FileSystemKind is the kind of a path with metrics.
type FileSystemKind string

// The kinds of paths.
const (
	DirectoryKind FileSystemKind = "Directory"
	FileKind      FileSystemKind = "File"
	InvalidKind   FileSystemKind = "Invalid"
)

// FileFormat is the format of a metrics file.
type FileFormat string

// The formats of files.
const (
	TextFormat FileFormat = "TEXT"
	JSONFormat FileFormat = "JSON"
)

// CollectorSpec specifies the metrics collector.
// +kubebuilder:pruning:PreserveUnknownFields
type CollectorSpec struct {
	// The kind: StdOut (the default), File, TensorFlowEvent, PrometheusMetric,
	// Custom, None or Push.
	Kind CollectorKind `json:"kind,omitempty"`

	// The collector container for the kind Custom, as in a Pod's spec.
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

// Default locations of metrics.
const (
	DefaultFilePath               = "/var/log/katib/metrics.log"
	DefaultTensorflowEventDirPath = "/var/log/katib/tfevent/"
	DefaultPrometheusPath         = "/metrics"
	DefaultPrometheusPort         = 8080
)

// MetricsVolume is the Pod volume that contains metrics files.
const MetricsVolume = "metrics-volume"
