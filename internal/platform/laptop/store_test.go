// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest/database"
)

// TestStoreIsWaitedFor opens a store whose server starts later, and one that no
// waiting helps.
func TestStoreIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := database.Postgres().Lend(t)
	server.Kill()
	c := &Cluster{failed: make(chan error, 1)}
	said, opened := make(chan string, 1000), make(chan error, 1)
	go func() {
		_, err := c.openStore(t.Context(), Config{Store: server.URL()}, func(text string) { said <- text })
		opened <- err
	}()
	select {
	case text := <-said:
		if !strings.Contains(text, "waiting for the database") || !strings.Contains(text, "check that the server runs") {
			t.Errorf("said %q", text)
		}
	case err := <-opened:
		t.Fatalf("a server that is away was not waited for: %v", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("with the server back: %v", err)
	}
	c.Stop()

	wrong, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	wrong.Path = "/missing"
	_, err = c.openStore(t.Context(), Config{Store: wrong.String()}, func(text string) { t.Errorf("said %q", text) })
	if err == nil || errors.Is(err, observation.ErrUnavailable) || !strings.Contains(err.Error(), "CREATE DATABASE") {
		t.Errorf("a missing database: %v", err)
	}
}
