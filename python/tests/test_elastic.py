# SPDX-License-Identifier: Apache-2.0
"""Tests of diwan.elastic: collectives between threads, the ledger, and trainings with scripted agents."""

import json
import random
import socket
import threading
import unittest
import unittest.mock
from array import array

from diwan import elastic
from diwan.elastic.agent import Member, View
from diwan.elastic.group import Group, Interrupted, Listener


def view_of(listeners, number=1):
    members = [Member(f"w{i}.1", f"w{i}", f"127.0.0.1:{listener.port}") for i, listener in enumerate(listeners)]
    return View("w0.1", number, members, [], [])


def at_each(size, do):
    """Runs do(group) for each member of a view, in a thread each, and returns the results by rank; errors are results."""
    listeners = [Listener() for _ in range(size)]
    view, results = view_of(listeners), [None] * size

    def run(rank):
        group = None
        try:
            group = Group(view, rank, listeners[rank], timeout=10)
            results[rank] = do(group)
        except Exception as error:  # noqa: BLE001
            results[rank] = error
        finally:
            if group:
                group.close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for listener in listeners:
        listener.close()
    return results


class GroupTest(unittest.TestCase):
    def test_all_reduce(self):
        for size in range(1, 6):
            for length in (0, 1, 3, 1000, 40000):
                for kind in "fd":
                    def do(group):
                        values = array(kind, ((group.rank + 1) * (i % 7) for i in range(length)))
                        group.all_reduce(values)
                        return values.tobytes()

                    want = array(kind, (sum(range(1, size + 1)) * (i % 7) for i in range(length))).tobytes()
                    for result in at_each(size, do):
                        self.assertEqual(result, want, f"{size} members, {length} values of {kind}")

    def test_all_reduce_is_the_same_everywhere(self):
        def do(group):
            draw = random.Random(group.rank)
            values = array("f", (draw.gauss(0, 1) for _ in range(999)))
            group.all_reduce(values)
            return values.tobytes()

        results = at_each(4, do)
        self.assertEqual(len(set(results)), 1)

    def test_broadcast_and_gather(self):
        for size in range(1, 6):
            for length in (0, 1, 1 << 18, 3 * (1 << 18) + 5):
                data = bytes(length)
                for source in {0, size - 1, size // 2}:
                    results = at_each(size, lambda g: g.broadcast(data if g.rank == source else b"", source))
                    self.assertEqual([len(r) if isinstance(r, bytes) else r for r in results], [length] * size)
        self.assertEqual(at_each(3, lambda g: g.all_gather(b"x" * g.rank)), [[b"", b"x", b"xx"]] * 3)

    def test_flag_of_one_is_known_to_all(self):
        for size in range(1, 5):
            for flagged in range(size):
                def do(group):
                    group.flag = group.rank == flagged
                    group.all_reduce(array("d", [1.0]))
                    first, group.flag = group.flagged, False
                    group.all_reduce(array("d", [1.0]))
                    return first, group.flagged

                self.assertEqual(at_each(size, do), [(True, False)] * size)

    def test_a_member_that_goes_interrupts_the_others(self):
        def do(group):
            if group.rank == 1:
                return "gone"
            while True:
                group.all_reduce(array("d", [1.0] * 10000))

        for rank, result in enumerate(at_each(4, do)):
            if rank != 1:
                self.assertIsInstance(result, Interrupted)

    def test_an_abandoned_group_does_not_wait(self):
        listener, absent = Listener(), Listener()
        view = view_of([listener, absent])
        with self.assertRaisesRegex(Interrupted, "is over"):
            Group(view, 0, listener, abandoned=lambda: True)
        listener.close()
        absent.close()

    def test_different_lengths_are_told(self):
        results = at_each(2, lambda g: g.all_reduce(array("d", [1.0] * (4 + 2 * g.rank))))
        self.assertTrue(any(isinstance(r, ValueError) and "do not agree" in str(r) for r in results), results)

    def test_strangers_are_not_let_in(self):
        listener = Listener()
        for greeting in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00[]", b"\x04\x00\x00\x00null"):
            with socket.create_connection(("127.0.0.1", listener.port)) as stranger:
                stranger.sendall(greeting)
                stranger.shutdown(socket.SHUT_WR)
                while not select_accept(listener):
                    pass
        self.assertEqual(listener.waiting, {})
        listener.close()

    def test_what_cannot_be_summed(self):
        for values in (b"read-only", array("i", [1]), memoryview(array("d", [1, 2, 3]))[::2]):
            with self.assertRaises(TypeError):
                Group(view_of([]), 0, None).all_reduce(values)


def select_accept(listener):
    import select

    if select.select([listener.socket], [], [], 5)[0]:
        listener.accept()
        return True
    return False


class LedgerTest(unittest.TestCase):
    def test_each_sample_once_in_each_epoch(self):
        draw = random.Random(1)
        for _ in range(200):
            samples, batch, epochs = draw.randint(1, 60), draw.randint(1, 70), draw.randint(1, 3)
            ledger = elastic.Ledger(samples, batch, epochs, seed=draw.randint(0, 9), shuffle=draw.random() < 0.5)
            used = [[0] * samples for _ in range(epochs)]
            while not ledger.done:
                size = draw.randint(1, 9)
                leases = [ledger.lease(rank, size) for rank in range(size)]
                self.assertEqual(sum(map(len, leases)), ledger.count)
                self.assertLessEqual(max(map(len, leases)) - min(map(len, leases)), 1)
                if draw.random() < 0.3:
                    continue  # the step was interrupted
                if draw.random() < 0.3:  # handed over to a newcomer
                    newcomer = elastic.Ledger(samples, batch, epochs, seed=ledger.seed, shuffle=ledger.shuffle)
                    newcomer.load(ledger.dump())
                    ledger = newcomer
                for lease in leases:
                    for sample in lease:
                        used[ledger.epoch][sample] += 1
                ledger.commit()
            self.assertEqual(used, [[1] * samples] * epochs)

    def test_refused(self):
        ledger = elastic.Ledger(10, 3)
        for other, reason in ((elastic.Ledger(11, 3), "other data"), (elastic.Ledger(10, 4), "other batches"), (elastic.Ledger(10, 3, seed=5), "another order")):
            with self.assertRaises(ValueError, msg=reason):
                ledger.load(other.dump())
        for data in (b"", b"{", b"{}", ledger.dump().replace(b'"cursor": 0', b'"cursor": 10')):
            with self.assertRaises((ValueError, KeyError)):
                ledger.load(data)
        for samples, batch, epochs in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
            with self.assertRaises(ValueError):
                elastic.Ledger(samples, batch, epochs)
        with self.assertRaises(ValueError):
            ledger.lease(2, 2)


class ScriptedAgents:
    """Agents of several workers that say what a test wants. Each is a socket of this machine."""

    def __init__(self, names):
        self.servers = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
        self.connections, self.addresses, self.broken = {}, {}, []
        self.all_joined = threading.Barrier(len(names) + 1)
        for name in names:
            threading.Thread(target=self._serve, args=(name,), daemon=True).start()

    def at(self, name):
        return "127.0.0.1:%d" % self.servers[name].getsockname()[1]

    def _serve(self, name):
        connection, _ = self.servers[name].accept()
        lines = connection.makefile("r")
        self.addresses[name] = json.loads(lines.readline())["join"]["address"]
        self.connections[name] = connection
        self.all_joined.wait()
        for line in lines:
            request = json.loads(line)
            if "broken" in request:
                self.broken.append((name, request["broken"]["number"]))

    def tell(self, number, names, to=None):
        members = [{"id": name, "name": name, "address": self.addresses[name]} for name in names]
        for name in to or names:
            state = {"view": {"history": "h", "number": number, "members": members}, "rank": names.index(name), "ready": True}
            self.connections[name].sendall(json.dumps({"state": state}).encode() + b"\n")

    def close(self):
        for s in list(self.connections.values()) + list(self.servers.values()):
            s.close()


class AgentTest(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.server.getsockname()[1]

    def tearDown(self):
        self.server.close()

    def accept(self, *replies):
        connection, _ = self.server.accept()
        with connection.makefile("r") as lines:
            self.assertIn("join", json.loads(lines.readline()))
        for reply in replies:
            connection.sendall(json.dumps(reply).encode() + b"\n")
        return connection

    def state(self, number, ready=True):
        return {"state": {"view": {"history": "h", "number": number, "members": [{"id": "a"}]}, "rank": 0, "ready": ready}}

    def test_a_worker_attaches_again(self):
        agent = elastic.Agent("127.0.0.1:1", self.at)
        self.accept({"member": {"id": "a.1"}}, self.state(3)).close()
        again = self.accept({"member": {"id": "a.2"}}, self.state(5))
        self.assertEqual(agent.wait(timeout=20).view.number, 5)
        self.assertEqual(agent.member.id, "a.2")
        agent.close()
        again.close()

    def test_waiting(self):
        agent = elastic.Agent("127.0.0.1:1", self.at)
        connection = self.accept(self.state(1, ready=False))
        view = agent.wait(timeout=20, ready=False).view
        self.assertIsNone(agent.wait(timeout=0.05), "the view is not one to train in")
        self.assertIsNone(agent.wait(view, timeout=0.05, ready=False), "there is no other view")
        connection.sendall(json.dumps(self.state(2)).encode()[:20])  # a line in two parts
        connection.sendall(json.dumps(self.state(2)).encode()[20:] + b"\n")
        self.assertEqual(agent.wait(view, timeout=20).view.number, 2)
        agent.close()
        connection.close()

    def test_refusal_is_told(self):
        agent = elastic.Agent("127.0.0.1:1", self.at)
        connection = self.accept({"error": "cannot join: another worker is attached to this agent"})
        with self.assertRaisesRegex(elastic.AgentError, "another worker"):
            agent.wait(timeout=20)
        agent.close()
        connection.close()

    def test_no_agent(self):
        self.server.close()
        with self.assertRaisesRegex(elastic.AgentError, "does `diwan elastic agent` run"):
            elastic.Agent("127.0.0.1:1", self.at, patience=0.1)


class Counting:
    """A training that notes in its state which samples made it, in order."""

    def __init__(self, samples, batch):
        self.ledger = elastic.Ledger(samples, batch, shuffle=False)
        self.state = array("d", bytes(8 * samples))

    def load(self, data):
        self.state = array("d", data)

    def training(self, agents, name):
        return elastic.Training(self.ledger, lambda: self.state.tobytes(), self.load, agent=agents.at(name), host="127.0.0.1")

    def step(self, step):
        values = array("d", bytes(8 * len(self.state)))
        for sample in step.samples:
            values[sample] = 1
        step.all_reduce(values)
        for i, value in enumerate(values):
            self.state[i] += value


class TrainingTest(unittest.TestCase):
    def test_who_missed_a_step_takes_it_over(self):
        """a and b finish a step that c does not; a then dies; b and c go on in a view of their own."""
        agents = ScriptedAgents("abc")
        counts = {name: Counting(30, 6) for name in "abc"}
        outcome = {}

        def run(name):
            count, dead = counts[name], None
            try:
                with count.training(agents, name) as training:
                    for step in training:
                        with step:
                            count.step(step)
                            if step.cursor == 6 and step.group.view.number == 1:
                                if name == "c":
                                    raise Interrupted("c lost the end of the step")
                                if name == "a":
                                    dead = KeyboardInterrupt()
                                    raise dead
                outcome[name] = (count.ledger.done, list(count.state))
            except BaseException as error:  # noqa: BLE001
                outcome[name] = error
                self.assertIs(error, dead)

        threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in "abc"]
        for thread in threads:
            thread.start()
        agents.all_joined.wait(10)
        agents.tell(1, "abc")
        threads[0].join(20)
        while not {"b", "c"} <= {name for name, number in agents.broken if number == 1}:
            threading.Event().wait(0.01)
        agents.tell(2, "cb")
        for thread in threads:
            thread.join(20)
        agents.close()
        self.assertIsInstance(outcome["a"], KeyboardInterrupt)
        for name in "bc":
            self.assertEqual(outcome[name], (True, [1.0] * 30))

    def test_a_view_that_is_over_before_all_have_met_in_it(self):
        """a is told of views 1 and 2, b of view 2 alone: a does not wait for b in view 1."""
        agents = ScriptedAgents("ab")
        counts = {name: Counting(30, 6) for name in "ab"}

        def run(name):
            with counts[name].training(agents, name) as training:
                for step in training:
                    with step:
                        counts[name].step(step)

        with unittest.mock.patch("diwan.elastic.group.CONNECT", 1000.0):
            threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in "ab"]
            for thread in threads:
                thread.start()
            agents.all_joined.wait(10)
            agents.tell(1, "ab", to="a")
            agents.tell(2, "ab")
            for thread in threads:
                thread.join(20)
        agents.close()
        for name in "ab":
            self.assertEqual((counts[name].ledger.done, list(counts[name].state)), (True, [1.0] * 30))

    def test_a_view_that_grew_is_finished_and_others_are_not(self):
        agents = ScriptedAgents("a")
        training = Counting(10, 5).training(agents, "a")
        agents.all_joined.wait(10)
        for before, after, want, reason in (
            ((1, "ab"), (2, "abc"), False, "one more came"),
            ((1, "ab"), (2, "ac"), True, "one is gone"),
            ((1, "ab"), (3, "abc"), True, "one may have gone and come back"),
            ((1, "ab"), (2, "ab"), True, "it was renewed, because it did not work"),
        ):
            views = [View("h", number, [Member(name, name, "") for name in names], [], []) for number, names in (before, after)]
            training._view, training._agent._state = views[0], elastic.State(views[1], 0, True, "")
            self.assertEqual(training._abandoned(), want, reason)
        training.close()
        agents.close()

    def test_a_step_without_a_collective_operation(self):
        """It counts once all have done it, so that ledgers do not part."""
        agents = ScriptedAgents("ab")
        order = []

        def run(name):
            count = Counting(4, 2)
            with count.training(agents, name) as training:
                for step in training:
                    with step:
                        order.append((step.cursor, name))
                        if name == "b":
                            threading.Event().wait(0.1)

        threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in "ab"]
        for thread in threads:
            thread.start()
        agents.all_joined.wait(10)
        agents.tell(1, "ab")
        for thread in threads:
            thread.join(20)
        agents.close()
        self.assertEqual([cursor for cursor, _ in order], [0, 0, 2, 2])

    def test_a_user_error_is_not_hidden(self):
        agents = ScriptedAgents("a")
        count = Counting(10, 5)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            training = count.training(agents, "a")
            agents.all_joined.wait(10)
            agents.tell(1, "a")
            with training:
                for step in training:
                    with step:
                        1 / 0
        self.assertEqual(count.ledger.position, 0)
        agents.close()


if __name__ == "__main__":
    unittest.main()
