# SPDX-License-Identifier: Apache-2.0
"""Train functions with MLX and DeepSpeed on the runtimes of MPI, by the SDK as upstream's examples do it."""

import os
import sys

from kubeflow.trainer import CustomTrainer, TrainerClient


def with_mlx(EXAMPLES):
    import sys

    import mlx.core as mx
    import mlx.nn as nn
    import mlx.optimizers as optim

    sys.path.insert(0, EXAMPLES)
    import digits

    world = mx.distributed.init(strict=True, backend="mpi")
    rank, size = world.rank(), world.size()
    pixels, labels, test_pixels, test_labels = (mx.array(array) for array in digits.load())
    pixels, labels = pixels[rank::size], labels[rank::size]
    mx.random.seed(1)
    model = nn.Sequential(nn.Linear(64, 32), nn.relu, nn.Linear(32, 10))
    optimizer = optim.SGD(learning_rate=0.5)
    step = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))
    for _ in range(300):
        _, gradients = step(pixels, labels)
        optimizer.update(model, nn.utils.average_gradients(gradients))
        mx.eval(model.parameters())
    accuracy = mx.mean(mx.argmax(model(test_pixels), axis=1) == test_labels).item()
    print(f"rank {rank} of {size} has seen {len(labels)} rows, accuracy={accuracy:.4f}", flush=True)


def with_deepspeed(EXAMPLES):
    import sys

    import deepspeed
    import torch
    import torch.distributed as dist

    sys.path.insert(0, EXAMPLES)
    import digits

    deepspeed.init_distributed(dist_backend="gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    pixels, labels, test_pixels, test_labels = (torch.tensor(array) for array in digits.load())
    pixels, labels = pixels[rank::size].float(), labels[rank::size]
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 100,
            "gradient_accumulation_steps": 1,
            "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
        },
    )
    for _ in range(10):
        for at in range(0, 700, 100):
            engine.backward(torch.nn.functional.cross_entropy(engine(pixels[at : at + 100]), labels[at : at + 100]))
            engine.step()
    accuracy = (engine(test_pixels.float()).argmax(1) == test_labels).float().mean().item()
    print(f"rank {rank} of {size} has seen {len(labels)} rows, accuracy={accuracy:.4f}", flush=True)


name, examples = sys.argv[1:]
client = TrainerClient()
runtime = next(runtime for runtime in client.list_runtimes() if runtime.name == name)
train = {"mlx-distributed": with_mlx, "deepspeed-distributed": with_deepspeed}[name]
job = client.train(
    runtime=runtime,
    trainer=CustomTrainer(func=train, func_args={"EXAMPLES": examples}, num_nodes=2),
)
try:
    client.wait_for_job_status(job, timeout=270)
finally:
    print("\n".join(client.get_job_logs(job)), flush=True)
steps = {step.name: step.status for step in client.get_job(job).steps}
assert steps["node-0"] == "Succeeded", steps  # the launcher; the other node serves on
log = "\n".join(client.get_job_logs(job))
for rank in range(2):
    line = next(line for line in log.splitlines() if f"rank {rank} of 2 has seen 71" in line)
    assert float(line.split("accuracy=")[1]) > 0.93, line
client.delete_job(job)
