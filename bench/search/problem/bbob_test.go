// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"diwan.dev/diwan/bench/search/problem"
)

// TestBBOBAgainstCOCO compares values with those that testdata/bbob.py
// recorded from COCO 2.8.2.
func TestBBOBAgainstCOCO(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/bbob.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var n [4]int // function, dimension, instance, point
		for i := range n {
			n[i], _ = strconv.Atoi(row[i])
		}
		want, _ := strconv.ParseFloat(row[4], 64)
		optimum, _ := strconv.ParseFloat(row[5], 64)
		p := problem.BBOB(n[0], n[1], n[2])
		x := make([]float64, n[1])
		for i := range x {
			x[i] = float64((37*i+11*n[3]+5*n[0])%101)/10.1 - 5
		}
		got, err := p.Evaluate(t.Context(), p.Point(x), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !agree(got.Actual, want) {
			t.Errorf("%s at point %d: got %v, COCO says %v", p.Name, n[3], got.Actual, want)
		}
		if !agree(p.Optimum, optimum) {
			t.Errorf("%s: got optimum %v, COCO says %v", p.Name, p.Optimum, optimum)
		}
	}
}

// agree allows for a different order of additions: the last digits of a
// rotation decide the sixth digit of the most rugged function.
func agree(got, want float64) bool {
	return math.Abs(got-want) <= 1e-6*math.Max(1, math.Abs(want))
}
