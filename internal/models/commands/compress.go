// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/models/compress"
	"diwan.dev/diwan/internal/models/onnx"
	"diwan.dev/diwan/internal/platform/cli"
)

// compressCommand returns the command that compresses ONNX models.
func compressCommand(streams cli.Streams) *cobra.Command {
	var method string
	var o compress.Options
	var methods []string
	for _, m := range compress.Methods {
		methods = append(methods, string(m))
	}
	command := &cobra.Command{
		Use:   "compress IN OUT --method METHOD",
		Short: "Make an ONNX model smaller",
		Long: `Compress reads an ONNX model and writes a smaller one, without executing it. The methods:

  int8          weights in 8 bits with a scale per channel, computed with in float32: a quarter
                of the size, somewhat slower
  dynamic-int8  matrices and convolutions multiplied in 8 bits, the range of inputs found as
                they come: a quarter of the size, and faster where these are large
  fp16          weights and computation in half precision: half the size. Inputs and outputs
                stay float32
  prune         a part of the weights, the smallest of each tensor, become zero: the size stays,
                but the file packs better

Small tensors and those of other operators stay as they are; -o json lists the larger ones of them
with the reason. Weigh the accuracy on your own data: no method knows it.`,
		Example: `  diwan model compress model.onnx small.onnx --method int8
  diwan model compress model.onnx sparse.onnx --method prune --sparsity 0.5`,
		Args: arguments(2, 2, "the model's file and that of the result"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) < 2 {
				return []string{"onnx"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := command.Flags()
	flags.StringVar(&method, "method", "", "how: "+strings.Join(methods, ", "))
	flags.Float64Var(&o.Sparsity, "sparsity", 0, "the part of the weights that prune zeroes, between 0 and 1")
	flags.BoolVar(&o.ReduceRange, "reduce-range", false, "dynamic-int8 with weights of 7 bits, for x86 processors without VNNI, which saturate sums of 8")
	command.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp))
	command.RunE = with(streams, func(ctx context.Context, s *session, args []string) error {
		m := compress.Method(method)
		switch {
		case !slices.Contains(methods, method):
			return cli.Usagef("cannot use --method %q: must be one of %s", method, strings.Join(methods, ", "))
		case (m == compress.Prune) != flags.Changed("sparsity"):
			return cli.Usagef("--sparsity goes with --method prune, and --method prune needs it")
		case m == compress.Prune && !(o.Sparsity > 0 && o.Sparsity < 1):
			return cli.Usagef("cannot use --sparsity %v: must be above 0 and below 1", o.Sparsity)
		case o.ReduceRange && m != compress.DynamicInt8:
			return cli.Usagef("--reduce-range goes with --method dynamic-int8")
		}
		report, err := compressFile(ctx, args[0], args[1], m, o)
		if err != nil {
			return err
		}
		return s.print(report, text(args[1], report))
	})
	return command
}

// compressFile compresses the model in a file into another.
func compressFile(ctx context.Context, in, out string, method compress.Method, o compress.Options) (_ *compress.Report, err error) {
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return nil, fmt.Errorf("cannot write %s: it is a folder; name a file in it", out)
	}
	model, err := onnx.Open(ctx, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	compressed, report, err := compress.Model(model.Model, method, o)
	if err != nil {
		return nil, fmt.Errorf("compress %s: %w", in, err)
	}
	report.Before = model.Size
	report.After, err = compressed.WriteFile(ctx, out)
	return report, err
}

// text says what a compression did.
func text(out string, r *compress.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %.1f %% of %s", out, size(r.After), 100*float64(r.After)/float64(max(1, r.Before)), size(r.Before))
	fmt.Fprintf(&b, "; %d of %d weights by %s", r.Weights, r.All, r.Method)
	if r.Method == compress.Prune {
		fmt.Fprintf(&b, ", %d are zero", r.Zeros)
	}
	if r.Clamped > 0 {
		fmt.Fprintf(&b, "\n%d weights were beyond the range of float16 and are now its largest numbers", r.Clamped)
	}
	return b.String()
}
