// SPDX-License-Identifier: Apache-2.0

package signature

import "fmt"

// tensorrtHeader is how much of a plan is known to be its header, in bytes.
const tensorrtHeader = 28

// readTensorRT reads the header of a plan. Plans are NVIDIA's secret: only the version
// of TensorRT that made one is known to be in it, because NVIDIA told
// (https://github.com/NVIDIA/TensorRT/issues/3073). A plan runs with that version, on
// the kind of GPU that it was made for, alone.
func readTensorRT(r *reading, f *file) error {
	at := int64(0)
	// Ultralytics puts a length and a JSON document in front.
	if head, err := f.peek(0, 5); err == nil && len(head) == 5 && head[4] == '{' {
		length := int64(little.Uint32(head))
		metadata, err := f.json(4, length, everything)
		if err != nil {
			return err
		}
		if entries, ok := metadata.(object); ok {
			for name := range entries {
				r.sig.setMetadata(name, getText(entries, name))
			}
		}
		at = 4 + length
	}
	head, err := f.need(at, tensorrtHeader)
	if err != nil {
		return err
	}
	magic := string(head[:4])
	if magic != "ftrt" && magic != "ptrt" {
		return f.errorf(at, "it starts with %q: this is no plan of TensorRT", magic)
	}
	version := head[24:28]
	r.sig.FormatVersion = fmt.Sprint(head[8])
	r.sig.Producer = fmt.Sprintf("tensorrt %d.%d.%d.%d", version[0], version[1], version[2], version[3])
	r.sig.note("a plan is opaque: its inputs, outputs, weights and GPU can be read by TensorRT alone")
	return nil
}
