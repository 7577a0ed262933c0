// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/internal/testing/chance"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

// askedSpec is an experiment whose trials are asked for.
func askedSpec(trials, parallel int, more string) string {
	return fmt.Sprintf(`{"objective": {"type": "minimize", "objectiveMetricName": "loss"},
  "algorithm": {"algorithmName": "random", "algorithmSettings": [{"name": "random_state", "value": "1"}]},
  "maxTrialCount": %d, "parallelTrialCount": %d,
  "parameters": [
    {"name": "x", "parameterType": "double", "feasibleSpace": {"min": "0", "max": "1"}},
    {"name": "layers", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "4"}},
    {"name": "optimizer", "parameterType": "categorical", "feasibleSpace": {"list": ["adam", "sgd"]}}
  ]%s}`, trials, parallel, more)
}

// post calls a method of ask and tell over HTTP.
func (s *server) post(method, body string, header ...string) (int, map[string]any) {
	s.t.Helper()
	url, err := os.ReadFile(filepath.Join(s.home, "ask-url"))
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, strings.TrimSpace(string(url))+"/v1/"+method, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.token())
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.Host = request.Header.Get("Host")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var reply map[string]any
	if err := json.Unmarshal(text, &reply); err != nil && response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusMethodNotAllowed {
		s.t.Fatalf("%s answered %q: %v", method, text, err)
	}
	return response.StatusCode, reply
}

// token is the owner's, for the services that are asked for trials.
func (s *server) token() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.home, "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestAskAndTell meets the service as programs do, by HTTP and by gRPC, and kills
// what can be killed.
func TestAskAndTell(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	t.Run("Calls", s.asksAndTells)
	t.Run("GRPC", s.stopsEarly)
	t.Run("Hostile", s.refuses)
	t.Run("Killed", s.killsWorkers)
	t.Run("Example", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), "python3", root+"/examples/ask-and-tell/tune.py")
		cmd.Env = append(os.Environ(), "DIWAN_HOME="+s.home)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "error 0.0") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// asksAndTells sends each call twice, as when an answer was lost.
func (s *server) asksAndTells(t *testing.T) {
	create := `{"name": "asked", "spec": ` + askedSpec(2, 1, `, "trialTemplate": {"maxRetryCount": 1, "external": {"leaseSeconds": 5, "maxAttempts": 3}}`) + `}`
	twice := func(method, body string) map[string]any {
		t.Helper()
		code, first := s.post(method, body)
		again, second := s.post(method, body)
		if code != 200 || again != 200 || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("%s %s: %d %v, then %d %v", method, body, code, first, again, second)
		}
		return first
	}
	if reply := twice("create", create); reply["namespace"] != "default" {
		t.Errorf("created in %v", reply)
	}
	if code, reply := s.post("create", strings.Replace(create, `"maxTrialCount": 2`, `"maxTrialCount": 3`, 1)); code != 409 || reply["code"] != "AlreadyExists" {
		t.Errorf("another experiment of the name: %d %v", code, reply)
	}
	trial := twice("ask", `{"experiment": "asked", "request_id": "first", "wait_seconds": 20}`)["trial"].(map[string]any)
	parameters := trial["parameters"].(map[string]any)
	if _, ok := parameters["x"].(float64); !ok || parameters["layers"] != float64(int(parameters["layers"].(float64))) || !strings.Contains("adam sgd", parameters["optimizer"].(string)) {
		t.Errorf("parameters are %v", parameters)
	}
	if reply := twice("ask", `{"experiment": "asked", "request_id": "second"}`); reply["trial"] != nil || reply["done"] != false {
		t.Errorf("with one trial at a time, a second gets %v", reply)
	}
	of := func(lease, more string) string {
		return fmt.Sprintf(`{"trial": %q, "lease": %q%s}`, trial["name"], lease, more)
	}
	for i := range 3 {
		twice("report", of("first", fmt.Sprintf(`, "sequence": %d, "metrics": {"loss": %d}`, i, 3-i)))
	}
	if code, reply := s.post("report", of("first", `, "sequence": 7, "metrics": {"loss": 1}`)); code != 409 || !strings.Contains(fmt.Sprint(reply), "want 3") {
		t.Errorf("a report after a gap: %d %v", code, reply)
	}
	// The program goes silent: another gets the trial, and starts over.
	reply := twice("ask", `{"experiment": "asked", "request_id": "third", "wait_seconds": 20, "worker": "patient"}`)["trial"].(map[string]any)
	if reply["name"] != trial["name"] || reply["attempt"] != 2.0 || fmt.Sprint(reply["parameters"]) != fmt.Sprint(trial["parameters"]) {
		t.Errorf("after %v comes %v, want the same again", trial, reply)
	}
	for _, method := range []string{"report", "complete"} {
		if code, reply := s.post(method, of("first", `, "metrics": {"loss": 1}`)); code != 409 || reply["code"] != "FailedPrecondition" {
			t.Errorf("%s of the silent: %d %v", method, code, reply)
		}
	}
	twice("report", of("third", `, "metrics": {"loss": 0.5}`))
	twice("complete", of("third", `, "metrics": {"loss": 0.25}, "message": "well done"`))
	metrics, _, _ := unstructured.NestedSlice(s.get(trials, trial["name"].(string)).Object, "status", "observation", "metrics")
	eventually(t, time.Minute, func() error {
		metrics, _, _ = unstructured.NestedSlice(s.get(trials, trial["name"].(string)).Object, "status", "observation", "metrics")
		if want := "[map[latest:0.25 max:0.5 min:0.25 name:loss]]"; fmt.Sprint(metrics) != want {
			return fmt.Errorf("observed %v, want %s", metrics, want)
		}
		return nil
	})
	// The next one cannot be run, once, and then nobody says anything of it as
	// often as it may be taken.
	trial = twice("ask", `{"experiment": "asked", "request_id": "clumsy", "wait_seconds": 20}`)["trial"].(map[string]any)
	if code, reply := s.post("complete", of("clumsy", `, "failed": true, "message": "no GPU"`)); code != 200 {
		t.Errorf("to fail: %d %v", code, reply)
	}
	for i := range 2 {
		again := twice("ask", fmt.Sprintf(`{"experiment": "asked", "request_id": "silent %d", "wait_seconds": 20}`, i))["trial"].(map[string]any)
		if again["name"] != trial["name"] || again["attempt"] != float64(i+2) {
			t.Errorf("after the failure comes %v, want %v again", again, trial["name"])
		}
	}
	if reply := twice("ask", `{"experiment": "asked", "request_id": "late", "wait_seconds": 20}`); reply["done"] != true {
		t.Errorf("at the end there is %v", reply)
	}
	got := twice("get", `{"experiment": "asked"}`)
	if got["condition"] != "Succeeded" || got["succeeded"] != 1.0 || got["failed"] != 1.0 || fmt.Sprint(got["best"].(map[string]any)["metrics"]) != "map[loss:0.25]" {
		t.Errorf("the experiment is %v", got)
	}
}

// stopsEarly learns at once, by gRPC, that a trial is not worth continuing.
func (s *server) stopsEarly(t *testing.T) {
	conn, err := grpc.NewClient(s.dbManager(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := asktell.NewAskTellClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.token())
	spec := &structpb.Struct{}
	text := askedSpec(1, 1, `, "earlyStopping": {"algorithmName": "threshold", "algorithmSettings": [{"name": "upper", "value": "5"}]}`)
	if err := spec.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(ctx, &asktell.CreateRequest{Name: "stopped", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	asked, err := client.Ask(ctx, &asktell.AskRequest{Experiment: "stopped", WaitSeconds: 20})
	if err != nil || asked.GetTrial() == nil {
		t.Fatal(asked, err)
	}
	trial := asked.GetTrial()
	for i, want := range []bool{false, true, true} {
		report, err := client.Report(ctx, &asktell.ReportRequest{Trial: trial.GetName(), Lease: trial.GetLease(), Sequence: int64(i), Metrics: map[string]float64{"loss": float64(4 + 2*i)}})
		if err != nil || report.GetStop() != want || want != strings.Contains(report.GetWhy(), "5") {
			t.Errorf("report %d: %v, %v; want stop %v", i, report, err, want)
		}
	}
	if _, err := client.Complete(ctx, &asktell.CompleteRequest{Trial: trial.GetName(), Lease: trial.GetLease()}); err != nil {
		t.Fatal(err)
	}
	s.ended("default", "stopped", time.Minute)
	if _, message, ok := condition(s.get(trials, trial.GetName()), "EarlyStopped"); !ok || !strings.Contains(message, "5") {
		t.Errorf("the trial is not EarlyStopped: %q", message)
	}
}

// refuses sends what no client of ours sends.
func (s *server) refuses(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		header       []string
		code         int
		want         string
	}{
		"NoJSON":      {"ask", `{"experiment"`, nil, 400, "asktell.proto"},
		"Unknown":     {"ask", `{"experiment": "x", "nonsense": 1}`, nil, 400, "nonsense"},
		"Form":        {"ask", `{}`, []string{"Content-Type", "text/plain"}, 400, "application/json"},
		"Page":        {"ask", `{"experiment": "asked"}`, []string{"Origin", "http://evil.example"}, 403, "web pages"},
		"Huge":        {"create", `{"name": "` + strings.Repeat("x", 2<<20) + `"}`, nil, 400, "too large"},
		"Nameless":    {"ask", `{}`, nil, 400, "experiment is missing"},
		"Nobody":      {"ask", `{"experiment": "nobody"}`, nil, 404, "nobody"},
		"Odd":         {"ask", `{"experiment": "a/../b", "namespace": ".."}`, nil, 404, "is invalid"},
		"Control":     {"ask", `{"experiment": "asked", "request_id": "a\u0000b"}`, nil, 400, "printable"},
		"Wait":        {"ask", `{"experiment": "asked", "wait_seconds": "NaN"}`, nil, 400, "wait_seconds"},
		"Site":        {"ask", `{"experiment": "asked"}`, []string{"Sec-Fetch-Site", "same-origin"}, 403, "web pages"},
		"Token":       {"ask", `{"experiment": "asked"}`, []string{"Authorization", "Bearer x"}, 401, "not valid"},
		"Tokenless":   {"ask", `{"experiment": "asked"}`, []string{"Authorization", ""}, 401, "no bearer token"},
		"Rebound":     {"ask", `{"experiment": "asked"}`, []string{"Authorization", "", "Host", "rebound.example"}, 401, "no bearer token"},
		"Leaseless":   {"report", `{"trial": "x"}`, nil, 400, "lease is missing"},
		"Method":      {"delete", `{}`, nil, 404, ""},
		"Invalid":     {"create", `{"name": "bad", "spec": ` + strings.Replace(askedSpec(1, 1, ""), `"random"`, `"magic"`, 1) + `}`, nil, 400, "magic"},
		"NotAsked":    {"create", `{"name": "bad", "spec": {"trialTemplate": {"retain": true}}}`, nil, 400, "external is missing"},
		"Lease":       {"create", `{"name": "bad", "spec": ` + askedSpec(1, 1, `, "trialTemplate": {"external": {"leaseSeconds": 0}}`) + `}`, nil, 400, "leaseSeconds"},
		"Both":        {"create", `{"name": "bad", "spec": ` + askedSpec(1, 1, `, "trialTemplate": {"external": {}, "primaryContainerName": "x"}`) + `}`, nil, 400, "primaryContainerName"},
		"Collector":   {"create", `{"name": "bad", "spec": ` + askedSpec(1, 1, `, "metricsCollectorSpec": {"collector": {"kind": "StdOut"}}`) + `}`, nil, 400, "Push"},
		"NoSpec":      {"create", `{"name": "bad"}`, nil, 400, "spec"},
		"OddLease":    {"report", `{"trial": "` + "\u0000" + `", "lease": "x"}`, nil, 400, ""},
		"NotANumber":  {"report", `{"trial": "x", "lease": "x", "metrics": {"loss": "many"}}`, nil, 400, "asktell.proto"},
		"NoSuchTrial": {"complete", `{"trial": "x", "lease": "x"}`, nil, 404, "x"},
	} {
		code, reply := s.post(c.method, c.body, c.header...)
		if message, _ := reply["message"].(string); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%s: %d %v, want %d and %q", name, code, reply, c.code, c.want)
		}
	}
	s.alive()
}

const (
	askedTrials = 60
	workers     = 5
	workerKills = 15
)

// killsWorkers tunes with several processes, kills them and the server at random
// moments, and wants each trial to end once, with the reports of one attempt.
func (s *server) killsWorkers(t *testing.T) {
	random := chance.New(t)
	create := `{"name": "killed", "spec": ` + askedSpec(askedTrials, 8, `, "trialTemplate": {"external": {"leaseSeconds": 2, "maxAttempts": 100}}`) + `}`
	if code, reply := s.post("create", create); code != 200 {
		t.Fatal(reply)
	}
	diary := filepath.Join(t.TempDir(), "diary")
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "python3", "testdata/asktell/worker.py", root+"/python", diary)
		cmd.Env = append(os.Environ(), "DIWAN_HOME="+s.home)
		cmd.Stderr = &lockedBuffer{}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	running := make([]*exec.Cmd, workers)
	for i := range running {
		running[i] = start()
	}
	for i := range workerKills { // and the server now and then
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		victim := random.IntN(workers)
		_ = running[victim].Process.Kill()
		_ = running[victim].Wait()
		running[victim] = start()
		if i%8 == 7 {
			s.kill()
			s.start()
		}
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a worker ended with %v:\n%s", err, cmd.Stderr)
		}
	}
	s.ended("default", "killed", time.Minute)
	again := 0
	var names []string
	for _, trial := range s.trialsOf("killed") {
		names = append(names, trial.GetName())
		if _, _, ok := condition(&trial, "Succeeded"); !ok {
			t.Errorf("trial %s did not succeed: %v", trial.GetName(), trial.Object["status"])
		}
		if n, _, _ := unstructured.NestedInt64(trial.Object, "status", "lease", "attempt"); n > 1 {
			again++
		}
	}
	if len(names) != askedTrials || again == 0 {
		t.Errorf("%d trials exist, want %d; %d were taken more than once, want some", len(names), askedTrials, again)
	}
	checkWorkers(t, diary)
	store, err := sqlite.Open(t.Context(), filepath.Join(s.home, "observations.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range names {
		points, err := store.Points(t.Context(), observation.Trial{Namespace: "default", Name: name}, observation.Query{Metric: "loss"})
		if err != nil || len(points) != 5 {
			t.Errorf("trial %s has %d values of the loss stored, want those of its last attempt, 5: %v %v", name, len(points), points, err)
		}
	}
}

// checkWorkers requires that no trial starts after it has ended, or ends
// twice.
func checkWorkers(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begun, ended := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var what, trial, pid string
		fmt.Sscan(line, &what, &trial, &pid)
		if ended[trial] {
			t.Errorf("%q, though the trial had ended", strings.TrimSpace(line))
		}
		begun[trial] = true
		ended[trial] = ended[trial] || what == "end"
	}
	if len(begun) != askedTrials {
		t.Errorf("%d trials began, want %d", len(begun), askedTrials)
	}
}
