// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

func main() { panic("this is measured on Linux") }
