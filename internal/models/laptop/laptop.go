// SPDX-License-Identifier: Apache-2.0

// Package laptop is what models add to a laptop: their kinds and reconcilers.
package laptop

import (
	"diwan.dev/diwan/internal/models"
	"diwan.dev/diwan/internal/platform/laptop"
)

// New returns the wing.
func New() laptop.Wing {
	domain := models.Domain()
	return laptop.Wing{Name: models.Name, Domain: &domain}
}
