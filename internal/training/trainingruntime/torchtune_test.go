// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// TestTorchtune holds the commands that Kubeflow Trainer makes of jobs for
// torchtune, by its own cases.
func TestTorchtune(t *testing.T) {
	t.Parallel()
	const (
		llama  = " output_dir=/workspace/output tokenizer.path=/workspace/model/original/tokenizer.model checkpointer.checkpoint_dir=/workspace/model"
		master = "--rdzv_endpoint=j-node-0-0.j:29500 "
		lora   = "args: ['model.lora_attn_modules=[q_proj,v_proj]'],"
		qlora  = "args: ['model.lora_attn_modules=[q_proj]', model.quantize_base=True],"
	)
	cases := map[string]struct{ reason, runtime, trainer, want string }{
		"Runtime's":     {"the runtime has two GPUs", "torchtune-llama3.2-1b", "", master + "full_finetune_distributed --config llama3_2/1B_full" + llama},
		"Four GPUs":     {"so has the job, of any maker", "torchtune-llama3.2-1b", "resourcesPerNode: {limits: {example.com/gpu: 4, cpu: 8}}", master + "full_finetune_distributed --config llama3_2/1B_full" + llama},
		"One GPU":       {"a single device needs no rendezvous", "torchtune-llama3.2-3b", "resourcesPerNode: {limits: {nvidia.com/gpu: 1}}", "full_finetune_single_device --config llama3_2/3B_full_single_device" + llama},
		"One process":   {"nor does one process", "torchtune-llama3.2-1b", "numProcPerNode: 1", "full_finetune_single_device --config llama3_2/1B_full_single_device" + llama},
		"Processes":     {"several do", "torchtune-llama3.2-1b", "numProcPerNode: 4", master + "full_finetune_distributed --config llama3_2/1B_full" + llama},
		"LoRA":          {"on all GPUs", "torchtune-llama3.2-1b", lora, master + "lora_finetune_distributed --config llama3_2/1B_lora" + llama},
		"LoRA on one":   {"on one", "torchtune-llama3.2-1b", lora + "numProcPerNode: 1", "lora_finetune_single_device --config llama3_2/1B_lora_single_device" + llama},
		"QLoRA on one":  {"on one", "torchtune-llama3.2-1b", qlora + "resourcesPerNode: {limits: {nvidia.com/gpu: 1}}", "lora_finetune_single_device --config llama3_2/1B_qlora_single_device" + llama},
		"DoRA":          {"is LoRA, and no QLoRA", "torchtune-llama3.2-1b", "args: ['model.lora_attn_modules=[q_proj]', model.quantize_base=True, model.use_dora=true], numProcPerNode: 1", "lora_finetune_single_device --config llama3_2/1B_lora_single_device" + llama},
		"Not quantized": {"False is no", "torchtune-llama3.2-1b", "args: [model.quantize_base=False], numProcPerNode: 1", "full_finetune_single_device --config llama3_2/1B_full_single_device" + llama},
		"Qwen":          {"its tokenizer has two files", "torchtune-qwen2.5-1.5b", "args: [epochs=3]", master + "full_finetune_distributed --config qwen2_5/1.5B_full output_dir=/workspace/output tokenizer.path=/workspace/model/vocab.json tokenizer.merges_file=/workspace/model/merges.txt checkpointer.checkpoint_dir=/workspace/model"},
		"Nodes":         {"the largest model may have several", "torchtune-llama3.3-70b", "numNodes: 2, numProcPerNode: 8", master + "full_finetune_distributed --config llama3_3/70B_full_multinode" + llama},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := strings.Replace(tc.runtime, "llama3.3-70b", "llama3.2-1b", 1) // a user's runtime
			job := newJob(t, "runtimeRef: {name: "+tc.runtime+"}\ntrainer: {command: [tune, run], "+strings.TrimSuffix(tc.trainer, ",")+"}")
			if errs := Validate(job, shipped(t, template)); len(errs) > 0 {
				t.Fatalf("%s: it is refused: %v", tc.reason, errs)
			}
			o, err := Render(job, shipped(t, template))
			if err != nil {
				t.Fatal(err)
			}
			node := container(&o.JobSet.Spec.ReplicatedJobs[2], v1alpha1.Node)
			if got := strings.Join(node.Command, " "); got != "tune run "+tc.want {
				t.Errorf("%s:\n got %s\nwant tune run %s", tc.reason, got, tc.want)
			}
			if diff := cmp.Diff(job.Spec.Trainer.Args, node.Args); diff != "" {
				t.Errorf("%s: arguments (-want +got):\n%s", tc.reason, diff)
			}
			for _, e := range node.Env {
				if e.Name == torchMaster {
					t.Errorf("%s: %s is set, and would be in the way of --rdzv_endpoint", tc.reason, e.Name)
				}
			}
		})
	}
}

// TestTorchtuneRefuses holds what Kubeflow Trainer refuses, by its own cases.
func TestTorchtuneRefuses(t *testing.T) {
	t.Parallel()
	const qlora = "args: ['model.lora_attn_modules=[q_proj, v_proj]', model.quantize_base=True],"
	cases := map[string]struct {
		reason, runtime, trainer string
		want                     []string
	}{
		"Model":      {"a model that torchtune's images lack", "torchtune-llama3.1-70b", "", []string{"spec.runtimeRef.name: must have a supported pretrained model, invalid model configured: llama3_1/70B"}},
		"No model":   {"the name of the runtime says the model", "torchtune", "", []string{"spec.runtimeRef.name: must have a supported pretrained model, invalid model configured: "}},
		"Nodes":      {"one node is enough for small models", "torchtune-llama3.2-3b", "numNodes: 2", []string{"spec.trainer.numNodes: must be 1 for llama3_2/3B model"}},
		"Qwen":       {"there is no QLoRA for it", "torchtune-qwen2.5-1.5b", qlora, []string{"spec.runtimeRef.name: QLoRA is not supported for qwen2_5/1.5B model"}},
		"QLoRA":      {"there is none on several GPUs", "torchtune-llama3.2-1b", qlora + "resourcesPerNode: {limits: {example.com/gpu: 2}}", []string{"spec.trainer.numProcPerNode: must be auto or 1 for llama3_2/1B model when using QLoRA", "spec.trainer.resourcesPerNode: must have gpu resource with value 1 for llama3_2/1B model when using QLoRA"}},
		"LoRA nodes": {"there is none on several nodes", "torchtune-llama3.3-70b", "numNodes: 2, args: ['model.lora_attn_modules=[q_proj]']", []string{"spec.trainer.numNodes: LoRA fine-tuning is not supported for multi-node training in TorchTune"}},
		"Fixed":      {"the runtime knows where things are", "torchtune-llama3.2-1b", "args: [output_dir=/o, epochs=1, tokenizer.path=/t]", []string{`spec.trainer.args[0]: must not set immutable config "output_dir" in trainer args; it is managed by the runtime`, `spec.trainer.args[2]: must not set immutable config "tokenizer.path" in trainer args; it is managed by the runtime`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := newJob(t, "runtimeRef: {name: "+tc.runtime+"}\ntrainer: {command: [tune, run], "+strings.TrimSuffix(tc.trainer, ",")+"}")
			var got []string
			for _, e := range Validate(job, shipped(t, "torchtune-llama3.2-1b")) {
				got = append(got, e.Field+": "+e.Detail)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
