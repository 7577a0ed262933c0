# SPDX-License-Identifier: Apache-2.0
"""Train a small network on digits with TensorFlow, synchronously or with parameter servers.

TF_CONFIG, which is set in a TFJob, lists the cluster. Parameter servers, if any, hold the
weights, workers compute gradients when the chief tells them to, and only the chief knows when training ends.
Without them, workers have the same weights and average their gradients in every step.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import digits

BATCH = 32
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()

cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
served = "ps" in cluster.cluster_spec().jobs
if served and cluster.task_type != "chief":
    tf.distribute.Server(cluster.cluster_spec(), cluster.task_type, cluster.task_id).join()
strategy = (
    tf.distribute.ParameterServerStrategy(cluster) if served
    else tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=cluster))

pixels, labels, test_pixels, test_labels = digits.load()


def network():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu", input_shape=(64,)), tf.keras.layers.Dense(10)])


def batches(context):
    """Rows in a different order for each reader, endlessly; in synchronous training each reads its shard."""
    rows = tf.data.Dataset.from_tensor_slices((pixels.astype("float32"), labels))
    if not served:
        rows = rows.shard(context.num_input_pipelines, context.input_pipeline_id)
    return rows.shuffle(len(labels)).repeat().batch(BATCH)


with strategy.scope():
    tf.keras.utils.set_random_seed(1)
    model = network()
    model.compile(
        # Asynchronous gradients are computed from older weights: momentum would overshoot.
        optimizer=tf.keras.optimizers.SGD(args.lr, momentum=0 if served else 0.9),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
workers = 1 if served else strategy.num_replicas_in_sync
model.fit(
    tf.keras.utils.experimental.DatasetCreator(batches),
    epochs=args.epochs, steps_per_epoch=len(labels) // (BATCH * workers), verbose=0)

trained = network()
trained.set_weights(model.get_weights())
accuracy = (trained(test_pixels).numpy().argmax(axis=1) == test_labels).mean()
print(f"{cluster.task_type} {cluster.task_id} accuracy={accuracy:.4f}", flush=True)
