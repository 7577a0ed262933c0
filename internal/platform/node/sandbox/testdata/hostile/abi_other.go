// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package main

func compat(func(string, ...any)) {}

func x32(func(string, ...any)) {}
