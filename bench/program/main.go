// SPDX-License-Identifier: Apache-2.0

// Command program is a trial that takes 100 ms and prints ten metric lines.
// Its argument is the loss that it comes to.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	for step := range 10 {
		time.Sleep(10 * time.Millisecond)
		fmt.Printf("step=%d loss=%s%d\n", step, os.Args[1], 9-step)
	}
}
