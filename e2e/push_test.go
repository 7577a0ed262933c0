// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// pushing is a trial that reports by Katib's SDK, the address of the DB manager
// being what the SDK takes by itself.
const pushing = `
import sys, kubeflow.katib as katib
for step in range(3):
    katib.report_metrics({"loss": float(sys.argv[1]) + 1 / (1 + step), "step": step})
`

// TestPush has trials report with the unmodified SDK, and reads their metrics
// as the SDK does.
func TestPush(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t) // the name of the DB manager leads Pods to it where they have hosts files
	python := sdks(t)
	program := filepath.Join(t.TempDir(), "push.py")
	if err := os.WriteFile(program, []byte(pushing), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	x := shape{
		name: "push", trials: 3, parallel: 2, command: python + " " + program + " ${trialParameters.x}",
		spec: "  metricsCollectorSpec: {collector: {kind: Push}}",
	}
	if err := x.create(s); err != nil {
		t.Fatal(err)
	}
	s.ended("default", "push", 2*time.Minute)
	list := s.trialsOf("push")
	if len(list) != 3 {
		t.Fatalf("%d trials, want 3", len(list))
	}
	client := s.dbManagerClient(t)
	for i := range list {
		metrics, _, _ := unstructured.NestedSlice(list[i].Object, "status", "observation", "metrics")
		if len(metrics) != 1 {
			t.Errorf("trial %s observed %v", list[i].GetName(), metrics)
		}
		log, err := client.GetObservationLog(t.Context(), &v1beta1.GetObservationLogRequest{TrialName: list[i].GetName(), MetricName: "step"})
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, l := range log.GetObservationLog().GetMetricLogs() {
			steps = append(steps, l.GetMetric().GetValue())
		}
		if got := strings.Join(steps, " "); got != "0 1 2" {
			t.Errorf("trial %s has the steps %q, want 0 1 2", list[i].GetName(), got)
		}
		_, err = client.ReportObservationLog(t.Context(), &v1beta1.ReportObservationLogRequest{TrialName: list[i].GetName()})
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a report after the end: %v, want FAILED_PRECONDITION", err)
		}
	}
	s.stranger(t, python, list[0].GetName())
}

// stranger runs a Pod of no trial, which may read and not report.
func (s *server) stranger(t *testing.T, python, trial string) {
	t.Helper()
	s.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: stranger}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: python
    command: [%s, -c]
    args:
    - |
      import grpc, os
      from kubeflow.katib import katib_api_pb2 as api, katib_api_pb2_grpc as service, report_metrics
      client = service.DBManagerStub(grpc.insecure_channel("katib-db-manager.kubeflow:6789"))
      log = client.GetObservationLog(api.GetObservationLogRequest(trial_name="%s"), timeout=20)
      assert len(log.observation_log.metric_logs) == 6, log
      os.environ["KATIB_TRIAL_NAME"] = "%[2]s"
      try:
          report_metrics({"loss": 0}, timeout=20)
      except RuntimeError as e:
          assert "PERMISSION_DENIED" in str(e), e
      else:
          raise SystemExit("a stranger has reported")
`, python, trial))
	s.phase(t, pods, "stranger", "Succeeded")
}

// dbManagerClient speaks to the DB manager as the user's programs do.
func (s *server) dbManagerClient(t *testing.T) v1beta1.DBManagerClient {
	t.Helper()
	conn, err := grpc.NewClient(s.dbManager(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return v1beta1.NewDBManagerClient(conn)
}
