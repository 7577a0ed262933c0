// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestDrain ends the webhooks while a client asks on one connection: each question is
// answered, and the last answer has the client close the connection.
func TestDrain(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	o := &Operator{webhooks: listener, drain: time.Second, handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	ended := make(chan error, 1)
	go func() { ended <- o.serveWebhooks(ctx) }()
	client := http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	for asked := 0; ; asked++ {
		response, err := client.Post("http://"+listener.Addr().String(), "application/json", nil)
		if err != nil {
			t.Fatalf("question %d: %v", asked, err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.Close {
			break
		}
		if asked == 10 {
			end()
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
