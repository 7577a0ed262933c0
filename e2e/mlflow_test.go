// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMLflow has MLflow's own client use the Models of a laptop, and strangers try to.
func TestMLflow(t *testing.T) {
	t.Parallel()
	python := environment(t, "mlflow.txt")
	s := newServer(t)
	uri, token := s.mlflow(t)
	s.python(t, python, "mlflow_client.py", "MLFLOW_TRACKING_URI="+uri, "MLFLOW_REGISTRY_URI="+uri, "MLFLOW_TRACKING_TOKEN="+token, "GIT_PYTHON_REFRESH=quiet")
	if got := s.gives(t, "kubectl", "get", "modelversions", "churn-v2", "-o", "jsonpath={.spec.stage} {.spec.uri}"); !strings.HasPrefix(got, "Production oci://registry.example.com/churn@sha256:22") {
		t.Errorf("the version that MLflow made is %s", got)
	}
	for name, c := range map[string]struct {
		header, value string
		status        int
		says          string
	}{
		"without a token":      {"", "", http.StatusUnauthorized, "MLFLOW_TRACKING_TOKEN"},
		"with another token":   {"Authorization", "Bearer " + strings.Repeat("A", len(token)), http.StatusUnauthorized, "UNAUTHENTICATED"},
		"of a web page":        {"Origin", "https://example.com", http.StatusForbidden, "web pages"},
		"for a name of theirs": {"Host", "rebound.example.com" + uri[strings.LastIndex(uri, ":"):], http.StatusMisdirectedRequest, "no such name"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, uri+"/api/2.0/mlflow/registered-models/get?name=churn", nil)
		if err != nil {
			t.Fatal(err)
		}
		if name != "without a token" && c.header != "Authorization" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if c.header == "Host" {
			request.Host = c.value
		} else if c.header != "" {
			request.Header.Set(c.header, c.value)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("a request %s is answered with %s: %s (%v)", name, answer.Status, body, err)
		}
	}
	for _, c := range []struct {
		flag, value string
		code        int
		says        string
	}{
		{"--address", "0.0.0.0:0", 2, "must be on loopback"},
		{"--address", "5001", 2, "missing port"},
		{"--home", t.TempDir(), 1, "start it with `diwan up`"},
	} {
		if _, stderr, code := s.diwan("model", "mlflow", c.flag, c.value); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("diwan model mlflow %s %s: exit code %d, %s", c.flag, c.value, code, stderr)
		}
	}
}

// mlflow runs `diwan model mlflow` for the time of the test.
func (s *server) mlflow(t *testing.T) (uri, token string) {
	t.Helper()
	cmd := exec.Command(binary, "model", "mlflow", "--home", s.home, "--address", "127.0.0.1:0")
	cmd.Dir, cmd.Stderr = abs(t, root), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s model mlflow ended: %v", filepath.Base(binary), err)
		}
	})
	lines := bufio.NewReader(out)
	for _, value := range []*string{&uri, &token} {
		line, err := lines.ReadString('\n')
		_, after, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			t.Fatalf("diwan model mlflow says %q (%v)", line, err)
		}
		*value = after
	}
	return uri, token
}
