// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// ErrWrong is wrapped by permanent errors: the service rejects the
// experiment, or its response is not allowed by the experiment.
var ErrWrong = errors.New("the algorithm service cannot be used for this experiment")

// maxReply bounds an answer in bytes.
const maxReply = 16 << 20

// Client calls algorithm services. Each call has its own connection.
type Client struct {
	// Dial connects to an address, host:port. Nil: as any program does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout bounds a call. Katib's is 60 s.
	Timeout time.Duration
}

// Validate asks the service at an address whether it can search an experiment.
// One that has no opinion can.
func (c Client) Validate(ctx context.Context, address string, e *manager.Experiment) error {
	return c.call(ctx, address, "validate the settings", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := manager.NewSuggestionClient(conn).ValidateAlgorithmSettings(ctx, &manager.ValidateAlgorithmSettingsRequest{Experiment: e})
		return verdict(err)
	})
}

// ValidateStopping asks the service at an address whether it can stop trials by
// some settings.
func (c Client) ValidateStopping(ctx context.Context, address string, spec *kubeflow.EarlyStoppingSpec) error {
	return c.call(ctx, address, "validate the early stopping settings", func(ctx context.Context, conn *grpc.ClientConn) error {
		request := &manager.ValidateEarlyStoppingSettingsRequest{EarlyStopping: EarlyStopping(spec)}
		_, err := manager.NewEarlyStoppingClient(conn).ValidateEarlyStoppingSettings(ctx, request)
		return verdict(err)
	})
}

// verdict reads the answer to a validation: as in Katib, an error that the
// program raised without more is a refusal, and a missing method is none.
func verdict(err error) error {
	switch status.Code(err) {
	case codes.Unimplemented:
		return nil
	case codes.Unknown:
		return fmt.Errorf("%w: %s", ErrWrong, status.Convert(err).Message())
	}
	return err
}

// Suggest asks for suggestions.
func (c Client) Suggest(ctx context.Context, address string, request *manager.GetSuggestionsRequest) (reply *manager.GetSuggestionsReply, err error) {
	err = c.call(ctx, address, "make suggestions", func(ctx context.Context, conn *grpc.ClientConn) error {
		reply, err = manager.NewSuggestionClient(conn).GetSuggestions(ctx, request)
		return err
	})
	return reply, err
}

// Rules requests the early stopping rules for the next trials.
func (c Client) Rules(ctx context.Context, address string, request *manager.GetEarlyStoppingRulesRequest) (rules []kubeflow.EarlyStoppingRule, err error) {
	err = c.call(ctx, address, "make early stopping rules", func(ctx context.Context, conn *grpc.ClientConn) error {
		reply, err := manager.NewEarlyStoppingClient(conn).GetEarlyStoppingRules(ctx, request)
		rules = RulesOf(reply.GetEarlyStoppingRules())
		return err
	})
	return rules, err
}

func (c Client) call(ctx context.Context, address, what string, do func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReply)),
		grpc.WithNoProxy(),
	}
	if c.Dial != nil {
		address = "passthrough:///" + address
		options = append(options, grpc.WithContextDialer(c.Dial))
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		return fmt.Errorf("cannot connect to the algorithm service at %s: %w", address, err)
	}
	defer conn.Close()
	err = do(ctx, conn)
	if status.Code(err) == codes.InvalidArgument {
		err = fmt.Errorf("%w: %s", ErrWrong, status.Convert(err).Message())
	}
	if err != nil {
		return fmt.Errorf("the algorithm service at %s does not %s: %w", conn.Target(), what, err)
	}
	return nil
}
