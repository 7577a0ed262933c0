// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// anyone lets everyone do everything to trials that are named t….
type anyone struct{}

func (anyone) Trial(_ context.Context, name string, _ Verb) (observation.Trial, error) {
	if !strings.HasPrefix(name, "t") {
		return observation.Trial{}, status.Errorf(codes.NotFound, "there is no trial %q", name)
	}
	return observation.Trial{Namespace: "ns", Name: name}, nil
}

// now is when the reports of these tests come.
func now() time.Time { return time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC) }

// serve runs a server on loopback and returns connections to it.
func serve(t *testing.T, config Config) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(config).Serve(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return conn
}

func configOf(store observation.Store) Config {
	c := DefaultConfig(store, anyone{})
	c.Now = now
	return c
}

func entry(stamp, name, value string) *v1beta1.MetricLog {
	return &v1beta1.MetricLog{TimeStamp: stamp, Metric: &v1beta1.Metric{Name: name, Value: value}}
}

func reportOf(trial string, logs ...*v1beta1.MetricLog) *v1beta1.ReportObservationLogRequest {
	return &v1beta1.ReportObservationLogRequest{TrialName: trial, ObservationLog: &v1beta1.ObservationLog{MetricLogs: logs}}
}

// TestReportsComeBack reports, reads and deletes as Katib's clients do.
func TestReportsComeBack(t *testing.T) {
	t.Parallel()
	client := v1beta1.NewDBManagerClient(serve(t, configOf(memory.New())))
	for _, r := range []*v1beta1.ReportObservationLogRequest{
		reportOf("t", entry("2026-01-02T03:04:06Z", "loss", "0.5"), entry("2026-01-02T05:04:05.25+02:00", "loss", "nan")),
		reportOf("t", entry("2026-01-02T03:04:06Z", "other", "text")),
		reportOf("t", entry("", "loss", "0.25")),
		reportOf("t"),
		reportOf("t2", entry("0001-01-01T00:00:00Z", "loss", "1")),
	} {
		if _, err := client.ReportObservationLog(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third, late := entry("2026-01-02T03:04:05.25Z", "loss", "nan"), entry("2026-01-02T03:04:06Z", "loss", "0.5"),
		entry("2026-01-02T03:04:06Z", "other", "text"), entry("2026-05-06T07:08:09Z", "loss", "0.25")
	for name, c := range map[string]struct {
		reason string
		ask    *v1beta1.GetObservationLogRequest
		want   []*v1beta1.MetricLog
	}{
		"All":     {"in the order of their time; one without a time counts for when it came", &v1beta1.GetObservationLogRequest{TrialName: "t"}, []*v1beta1.MetricLog{first, second, third, late}},
		"Metric":  {"one metric alone", &v1beta1.GetObservationLogRequest{TrialName: "t", MetricName: "other"}, []*v1beta1.MetricLog{third}},
		"Between": {"bounds are inclusive", &v1beta1.GetObservationLogRequest{TrialName: "t", StartTime: "2026-01-02T03:04:06Z", EndTime: "2026-01-02T03:04:06Z"}, []*v1beta1.MetricLog{second, third}},
		"Other":   {"Katib's collectors may send the zero time", &v1beta1.GetObservationLogRequest{TrialName: "t2"}, []*v1beta1.MetricLog{entry("0001-01-01T00:00:00Z", "loss", "1")}},
		"None":    {"a trial that reported nothing", &v1beta1.GetObservationLogRequest{TrialName: "t3"}, nil},
	} {
		got, err := client.GetObservationLog(t.Context(), c.ask)
		if err != nil {
			t.Fatal(err)
		}
		want := &v1beta1.GetObservationLogReply{ObservationLog: &v1beta1.ObservationLog{MetricLogs: c.want}}
		if !proto.Equal(want, got) {
			t.Errorf("%s: %s\ngot %v\nwant %v", name, c.reason, got, want)
		}
	}
	if _, err := client.DeleteObservationLog(t.Context(), &v1beta1.DeleteObservationLogRequest{TrialName: "t"}); err != nil {
		t.Fatal(err)
	}
	got, err := client.GetObservationLog(t.Context(), &v1beta1.GetObservationLogRequest{TrialName: "t"})
	if err != nil || len(got.GetObservationLog().GetMetricLogs()) != 0 {
		t.Errorf("a deleted log has %v, %v", got, err)
	}
}

// TestRefusals sends what no store could keep, and wants the rest kept.
func TestRefusals(t *testing.T) {
	t.Parallel()
	store := memory.New()
	config := configOf(store)
	config.MaxPoints, config.MaxMessage = 5, 100_000
	client := v1beta1.NewDBManagerClient(serve(t, config))
	if _, err := client.ReportObservationLog(t.Context(), reportOf("t", entry("", "loss", "1"), entry("", "loss", "2"))); err != nil {
		t.Fatal(err)
	}
	good := entry("", "loss", "3")
	for name, c := range map[string]struct {
		reason string
		ask    *v1beta1.ReportObservationLogRequest
		code   codes.Code
		want   string
	}{
		"Unknown":   {"nobody would ever read it", reportOf("x", good), codes.NotFound, `"x"`},
		"Time":      {"a time in another form", reportOf("t", good, entry("2026-01-02 03:04:05", "loss", "1")), codes.InvalidArgument, "metric_logs[1].time_stamp"},
		"Year":      {"a year that databases do not have", reportOf("t", entry("9999-12-31T23:59:59-23:00", "loss", "1")), codes.InvalidArgument, "year 10000"},
		"NoMetric":  {"a point without a metric", reportOf("t", &v1beta1.MetricLog{}), codes.InvalidArgument, "name"},
		"Zero":      {"a text with a zero byte", reportOf("t", entry("", "loss", "\x00")), codes.InvalidArgument, "zero bytes"},
		"LongName":  {"more than Katib's column holds", reportOf("t", entry("", strings.Repeat("n", 256), "1")), codes.InvalidArgument, "255"},
		"LongValue": {"more than Katib's column holds", reportOf("t", entry("", "loss", strings.Repeat("1", 65_536))), codes.InvalidArgument, "65535"},
		"TooMany":   {"one trial may not fill the disk", reportOf("t", good, good, good, good), codes.ResourceExhausted, "at most 5"},
		"Huge":      {"nor the memory", reportOf("t", entry("", "loss", strings.Repeat("1", 200_000))), codes.ResourceExhausted, "larger than max"},
	} {
		_, err := client.ReportObservationLog(t.Context(), c.ask)
		if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.want) {
			t.Errorf("%s: %s: got %v, want %s with %q", name, c.reason, err, c.code, c.want)
		}
	}
	_, err := client.GetObservationLog(t.Context(), &v1beta1.GetObservationLogRequest{TrialName: "t", EndTime: "today"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "end_time") {
		t.Errorf("reading until today: %v, want INVALID_ARGUMENT that names end_time", err)
	}
	points, err := store.Points(t.Context(), observation.Trial{Namespace: "ns", Name: "t"}, observation.Query{})
	if err != nil || len(points) != 2 {
		t.Errorf("the store has %v, %v; want the two good points alone", points, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReportObservationLog(t.Context(), reportOf("t", good)); status.Code(err) != codes.Unavailable {
		t.Errorf("report to a closed store: %v, want UNAVAILABLE, so that clients try again", err)
	}
}

// TestReportsAtOnce has many clients report for one trial by two servers.
func TestReportsAtOnce(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 25
	store := memory.New()
	servers := []v1beta1.DBManagerClient{
		v1beta1.NewDBManagerClient(serve(t, configOf(store))), v1beta1.NewDBManagerClient(serve(t, configOf(store))),
	}
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d/%d", c, i)
				if _, err := servers[c%2].ReportObservationLog(t.Context(), reportOf("t", entry("", name, "1"), entry("", name, "2"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	points, err := store.Points(t.Context(), observation.Trial{Namespace: "ns", Name: "t"}, observation.Query{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, p := range points {
		got[p.Metric] += p.Value
	}
	for c := range clients {
		for i := range each {
			want[fmt.Sprintf("%d/%d", c, i)] = "12"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points by metric: -want, +got:\n%s", diff)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	client := grpc_health_v1.NewHealthClient(serve(t, configOf(memory.New())))
	for _, service := range []string{"", "api.v1.beta1.DBManager"} {
		got, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, got, err)
		}
	}
}

// FuzzReport checks that any bytes of a request are rejected clearly or stored
// whole.
func FuzzReport(f *testing.F) {
	for _, r := range []*v1beta1.ReportObservationLogRequest{
		reportOf("t", entry("2026-01-02T03:04:05Z", "loss", "1")), reportOf("t", entry("", "", ""), nil),
		reportOf("t", entry("0000-01-01T00:00:00+23:59", "loss", "\x00")), {TrialName: "t"},
	} {
		text, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &v1beta1.ReportObservationLogRequest{}
		if proto.Unmarshal(text, r) != nil {
			return
		}
		r.TrialName = "t"
		store := memory.New()
		_, err := New(configOf(store)).ReportObservationLog(t.Context(), r)
		points, readErr := store.Points(t.Context(), observation.Trial{Namespace: "ns", Name: "t"}, observation.Query{})
		if readErr != nil {
			t.Fatal(readErr)
		}
		sent := len(r.GetObservationLog().GetMetricLogs())
		if err == nil && len(points) != sent || err != nil && (len(points) != 0 || status.Code(err) != codes.InvalidArgument) {
			t.Errorf("%v: stored %d points, error %v", r, len(points), err)
		}
	})
}
