// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"runtime"
	"testing"

	"diwan.dev/diwan/internal/models/store"
)

// TestMemory: what saving, pushing, pulling and exporting allocate altogether does not depend on the size.
func TestMemory(t *testing.T) { // alone, since it counts what the process allocates
	const size, most = 64 << 20, 24 << 20
	h := newHub(t)
	from, to := newStore(t), newStore(t)
	saved(t, from, 1, size) // the pages of its buffer are the test's
	n := h.name(t, "team/model:v1")
	v, err := from.Find(store.Name{Repository: "model", Tag: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Push(t.Context(), from, v, n, Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := Pull(t.Context(), to, n, n, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := to.Export(t.Context(), got, dir, store.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Save(t.Context(), dir, n, store.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d MB were allocated for a model of %d MB", used>>20, size>>20)
	}
}
