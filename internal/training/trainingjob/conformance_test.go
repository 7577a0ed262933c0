// SPDX-License-Identifier: Apache-2.0

package trainingjob_test

import (
	"testing"

	"diwan.dev/diwan/internal/training/trainingjob"
	"diwan.dev/diwan/internal/training/trainingjob/trainingjobtest"
)

func TestFrameworksConform(t *testing.T) {
	t.Parallel()
	for _, f := range trainingjob.Frameworks() {
		trainingjobtest.Conform(t, f)
	}
}
