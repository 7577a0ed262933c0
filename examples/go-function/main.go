// SPDX-License-Identifier: Apache-2.0

// Command go-function tunes a Go function with package optimize and shows its
// progress: no server, no cluster. Run it with `go run ./examples/go-function`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"diwan.dev/diwan/optimize"
)

// himmelblau is 0 at four points and positive elsewhere.
func himmelblau(p optimize.Point) float64 {
	x, y := p.Float("x"), p.Float("y")
	return (x*x+y-11)*(x*x+y-11) + (x+y*y-7)*(x+y*y-7)
}

func main() {
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		log.Fatal(err)
	}
	study := optimize.NewStudy(space, optimize.Options{})
	err = study.Run(context.Background(), 60, 4, optimize.Single(himmelblau), optimize.ShowProgress(os.Stderr))
	if err != nil {
		log.Fatal(err)
	}
	best, _ := study.Best()
	fmt.Println(best.Point)
}
