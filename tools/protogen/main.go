// SPDX-License-Identifier: Apache-2.0

// Command protogen makes Go code from .proto files. It compiles them itself and
// hands the result to protoc-gen-go and protoc-gen-go-grpc, so that nothing
// beside Go has to be installed. Paths are relative to the repository, in which
// the code is written beside each file.
//
//	go run -C tools ./protogen api/manager/v1beta1/api.proto
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// root is the repository, seen from the module of the tools.
const root = ".."

func main() {
	if err := generate(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, paths []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments travel
	}
	compiled, err := compiler.Compile(ctx, paths...)
	if err != nil {
		return err
	}
	var files []*descriptorpb.FileDescriptorProto
	for _, file := range compiled {
		imports := file.Imports() // before what imports them
		for i := range imports.Len() {
			files = append(files, protoutil.ProtoFromFileDescriptor(imports.Get(i).FileDescriptor))
		}
		files = append(files, protoutil.ProtoFromFileDescriptor(file))
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: paths,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      files,
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, plugin, request); err != nil {
			return fmt.Errorf("cannot run %s: %w", plugin, err)
		}
	}
	return nil
}

// run has a plugin make code, and writes it.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", *response.Error)
	}
	for _, file := range response.File {
		if err := os.WriteFile(filepath.Join(root, file.GetName()), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
