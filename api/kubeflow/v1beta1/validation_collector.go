// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"
	"net"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (m *MetricsCollectorSpec) validate(at *field.Path) field.ErrorList {
	if m == nil || m.Collector == nil {
		return nil // the defaults collect standard output
	}
	source := m.Source
	if source == nil {
		source = &SourceSpec{}
	}
	var errs field.ErrorList
	switch m.Collector.Kind {
	case PushCollector, StdOutCollector, NoneCollector:
	case FileCollector:
		errs = source.validateFile(at.Child("source"))
	case TfEventCollector:
		errs = source.validateEvents(at.Child("source", "fileSystemPath"))
	case PrometheusMetricCollector:
		errs = source.validateHTTP(at.Child("source", "httpGet"))
	case CustomCollector:
		errs = m.validateCustom(at)
	default:
		return field.ErrorList{field.NotSupported(at.Child("collector", "kind"), CollectorKind(shorten(string(m.Collector.Kind))),
			[]CollectorKind{StdOutCollector, FileCollector, TfEventCollector, PrometheusMetricCollector, CustomCollector, PushCollector, NoneCollector})}
	}
	if source.Filter == nil || m.Collector.Kind == PushCollector {
		return errs
	}
	return append(errs, source.Filter.validate(at.Child("source", "filter", "metricsFormat"))...)
}

func (s *SourceSpec) validateFile(at *field.Path) field.ErrorList {
	file := s.FileSystemPath
	if file == nil {
		return field.ErrorList{field.Required(at.Child("fileSystemPath"), "specify the file that the program writes")}
	}
	errs := file.validate(at.Child("fileSystemPath"), FileKind)
	switch file.Format {
	case TextFormat:
	case JSONFormat:
		if s.Filter != nil {
			errs = append(errs, field.Forbidden(at.Child("filter"), "JSON has metric names; filters are for TEXT"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("fileSystemPath", "format"), FileFormat(shorten(string(file.Format))),
			[]FileFormat{TextFormat, JSONFormat}))
	}
	return errs
}

func (s *SourceSpec) validateEvents(at *field.Path) field.ErrorList {
	if s.FileSystemPath == nil {
		return field.ErrorList{field.Required(at, "specify the directory of event files that the program writes")}
	}
	errs := s.FileSystemPath.validate(at, DirectoryKind)
	if s.FileSystemPath.Format != "" {
		errs = append(errs, field.Forbidden(at.Child("format"), "event files have their own format; omit it"))
	}
	return errs
}

// validate checks the path inside the container and its kind.
func (p *FileSystemPath) validate(at *field.Path, kinds ...FileSystemKind) field.ErrorList {
	var errs field.ErrorList
	if !path.IsAbs(p.Path) {
		errs = append(errs, field.Invalid(at.Child("path"), shorten(p.Path), "must be an absolute path inside the container, for example "+DefaultFilePath))
	}
	for _, k := range kinds {
		if p.Kind == k {
			return errs
		}
	}
	return append(errs, field.NotSupported(at.Child("kind"), FileSystemKind(shorten(string(p.Kind))), kinds))
}

func (s *SourceSpec) validateHTTP(at *field.Path) field.ErrorList {
	if s.HttpGet == nil {
		return field.ErrorList{field.Required(at, "specify the path and port that serve metrics")}
	}
	var errs field.ErrorList
	port := s.HttpGet.Port.String()
	if n, err := strconv.Atoi(port); err != nil || n <= 0 || n > math.MaxUint16 {
		errs = append(errs, field.Invalid(at.Child("port"), shorten(port), "must be a port number, for example 8080"))
	}
	if !strings.HasPrefix(s.HttpGet.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), shorten(s.HttpGet.Path), "must start with /, for example /metrics"))
	} else if _, err := url.Parse("http://pod" + s.HttpGet.Path); err != nil {
		errs = append(errs, field.Invalid(at.Child("path"), shorten(s.HttpGet.Path), "must be the path of a URL, for example /metrics"))
	}
	if _, err := url.Parse("http://" + net.JoinHostPort(s.HttpGet.Host, "80")); err != nil {
		errs = append(errs, field.Invalid(at.Child("host"), shorten(s.HttpGet.Host), "must be a host name or address; omit it for the Pod's own"))
	}
	return errs
}

func (m *MetricsCollectorSpec) validateCustom(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	container := at.Child("collector", "customCollector")
	switch c := m.Collector.CustomCollector; {
	case c == nil:
		errs = append(errs, field.Required(container, "specify the container that collects the metrics"))
	case c.Name == "":
		errs = append(errs, field.Required(container.Child("name"), "a container must have a name"))
	case c.Image == "":
		errs = append(errs, field.Required(container.Child("image"), "a container must have an image"))
	}
	if m.Source != nil && m.Source.FileSystemPath != nil {
		errs = append(errs, m.Source.FileSystemPath.validate(at.Child("source", "fileSystemPath"), FileKind, DirectoryKind)...)
	}
	return errs
}

func (f *FilterSpec) validate(at *field.Path) field.ErrorList {
	if n := len(f.MetricsFormat); n > MaxNames {
		return field.ErrorList{field.TooMany(at, n, MaxNames)}
	}
	var errs field.ErrorList
	for i, text := range f.MetricsFormat {
		expression, err := regexp.Compile(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at.Index(i), shorten(text), "must be a regular expression: "+shorten(err.Error())))
		case expression.NumSubexp() < 2:
			errs = append(errs, field.Invalid(at.Index(i), shorten(text),
				`must have two groups, the metric's name and its value, for example ([\w|-]+)\s*=\s*([+-]?\d+)`))
		}
	}
	return errs
}
