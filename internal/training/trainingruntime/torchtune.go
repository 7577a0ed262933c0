// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// tune is the command of a job that leaves its program to torchtune, as the
// kubeflow SDK's BuiltinTrainer does.
var tune = []string{"tune", "run"}

// The models that torchtune's runtimes have, as the names of its configurations
// begin.
const (
	llama32Small  = "llama3_2/1B"
	llama32Medium = "llama3_2/3B"
	llama33       = "llama3_3/70B"
	qwen25        = "qwen2_5/1.5B"
)

// fixed are the settings that a runtime of torchtune makes, and no job may.
var fixed = []string{"output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file"}

// tunes reports whether a job leaves its program to torchtune.
func tunes(job *v1alpha1.TrainJob) bool {
	return job.Spec.Trainer != nil && slices.Equal(job.Spec.Trainer.Command, tune)
}

// torchtune is the command of such a job on these nodes, of which each has that
// many processes: "auto" is one for each GPU. The job's arguments follow it.
func (l *layout) torchtune(processes string) []string {
	command := slices.Clone(tune)
	if l.numNodes() > 1 || processes == "auto" && l.gpus() > 1 || processes != "auto" && processes != "1" {
		command = append(command, fmt.Sprintf("--rdzv_endpoint=%s:%d", l.master(), port))
	}
	recipe, config := l.recipe(processes)
	command = append(command, recipe, "--config", config)
	for _, word := range l.node().Command {
		if slices.Contains(fixed, setting(word)) {
			command = append(command, word)
		}
	}
	return command
}

// setting is the name in NAME=VALUE.
func setting(word string) string {
	name, _, _ := strings.Cut(word, "=")
	return name
}

// recipe is which of torchtune's recipes a job wants, with which configuration.
func (l *layout) recipe(processes string) (recipe, config string) {
	model, nodes, args := model(l.job), l.numNodes(), l.job.Spec.Trainer.Args
	kind, devices, suffix := "full", "distributed", ""
	if nodes == 1 && (processes == "1" || l.gpus() == 1) {
		devices, suffix = "single_device", "_single_device"
	}
	switch {
	case nodes > 1:
		return "full_finetune_distributed", model + "_full_multinode"
	case quantized(args):
		return "lora_finetune_" + devices, model + "_qlora" + suffix
	case adapted(args):
		kind = "lora"
	}
	return kind + "_finetune_" + devices, model + "_" + kind + suffix
}

// model is that of a job's runtime, torchtune-NAME-SIZE; "" when the runtime is
// not named so.
func model(job *v1alpha1.TrainJob) string {
	words := strings.Split(job.Spec.RuntimeRef.Name, "-")
	if len(words) != 3 {
		return ""
	}
	return strings.ReplaceAll(words[1], ".", "_") + "/" + strings.ToUpper(words[2])
}

// adapted reports whether arguments ask for LoRA.
func adapted(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "model.lora_attn_modules") })
}

// quantized reports whether arguments ask for QLoRA, which DoRA rules out.
func quantized(args []string) bool {
	says := func(name string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			key, value, ok := strings.Cut(arg, "=")
			return ok && strings.Contains(key, name) && strings.EqualFold(strings.TrimSpace(value), "true")
		})
	}
	return says("model.quantize_base") && !says("model.use_dora")
}

// validateTorchtune returns what of a job torchtune cannot do.
func (l *layout) validateTorchtune() field.ErrorList {
	var errs field.ErrorList
	spec, trainer, model := field.NewPath("spec"), l.job.Spec.Trainer, model(l.job)
	wrong := func(at *field.Path, value any, format string, args ...any) {
		errs = append(errs, field.Invalid(at, value, fmt.Sprintf(format, args...)))
	}
	at, ref := spec.Child("trainer"), spec.Child("runtimeRef", "name")
	if !slices.Contains([]string{llama32Small, llama32Medium, llama33, qwen25}, model) {
		wrong(ref, l.job.Spec.RuntimeRef.Name, "must have a supported pretrained model, invalid model configured: %v", model)
	}
	nodes, processes := ptr.Deref(trainer.NumNodes, 1), "auto"
	if nodes > 1 && model != llama33 {
		wrong(at.Child("numNodes"), nodes, "must be 1 for %v model", model)
	}
	if trainer.NumProcPerNode != nil {
		processes = fmt.Sprint(*trainer.NumProcPerNode)
	}
	_, config := l.recipe(processes)
	if strings.Contains(config, "_qlora") && model == qwen25 {
		wrong(ref, l.job.Spec.RuntimeRef.Name, "QLoRA is not supported for %v model", model)
	}
	if strings.HasSuffix(config, "_qlora") && (model == llama32Small || model == llama32Medium) {
		wrong(at.Child("numProcPerNode"), processes, "must be auto or 1 for %v model when using QLoRA", model)
		wrong(at.Child("resourcesPerNode"), trainer.ResourcesPerNode, "must have gpu resource with value 1 for %v model when using QLoRA", model)
	}
	if nodes > 1 && (adapted(trainer.Args) || quantized(trainer.Args)) {
		wrong(at.Child("numNodes"), nodes, "LoRA fine-tuning is not supported for multi-node training in TorchTune")
	}
	for i, arg := range trainer.Args {
		if name := setting(arg); slices.Contains(fixed, name) {
			wrong(at.Child("args").Index(i), arg, "must not set immutable config %q in trainer args; it is managed by the runtime", name)
		}
	}
	return errs
}
