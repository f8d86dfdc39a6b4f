"""Chooses the competing peers and their arrangements, by measurements on each machine."""

from comparison import machine
from comparison.contenders import Peer, readable
from comparison.options import JOBS, MODELS_OF, ROOT, pick_options
from comparison.pairing import reached
from peers.command_line import say
from peers.job_file import JobError
from peers.recipe import read_recipe


class Choosing:
    """Chooses the peers of one model. `comparison`: compare.Comparison. Results also go into `entry`."""

    def __init__(self, comparison, model, entry):
        self.comparison, self.arguments = comparison, comparison.arguments
        self.model, self.entry = model, entry

    def contenders(self):
        """Returns the best of PyTorch, TensorFlow and JAX, their upper bounds, and each of the best with its best
        mini-batch, if they exist. In quick mode these are PyTorch's two best."""
        comparison, model = self.comparison, self.model
        if comparison.python is None:
            comparison.skip(
                f"{model}: the peers: '{self.arguments.peers}' is not there; bench/peers/environment.sh makes it"
            )
            return []
        try:
            read_recipe(ROOT / JOBS[model], self.arguments.max_epochs)
        except JobError as error:
            comparison.skip(f"{model}: the peers: {str(error).removeprefix(f'{ROOT}/')}")
            return []
        found = []
        if self.has("torch"):
            found += self.of(self.peer("PyTorch", "pytorch_peer.py", "--device", self.arguments.device))
        for name in (name for name, models in MODELS_OF.items() if model in models):
            module = name.lower()
            if reason := self.reason_against_others():
                comparison.skip(f"{model}: {name}: {reason}")
            elif self.has(module):
                found += self.of(self.peer(name, f"{module}_peer.py"))
        return found

    def reason_against_others(self):
        """Returns why only PyTorch competes, or None."""
        if self.arguments.device == "cuda":
            return "on CPUs only"
        if self.arguments.quick:
            return "not in quick mode"
        return "--arrangement is PyTorch's" if self.arguments.arrangement else None

    def has(self, module):
        if machine.has_module(self.comparison.python, module):
            return True
        self.comparison.skip(f"{self.model}: '{module}' is not in '{self.arguments.peers}'")
        return False

    def peer(self, name, script, *options):
        job = ROOT / JOBS[self.model]
        command = [self.comparison.python, str(ROOT / "bench/peers" / script), "--model", self.model, "--job", str(job)]
        command += ["--data-root", self.arguments.data_root, "--rate-rule", self.arguments.rate_rule, *options]
        return Peer(name, command, self.comparison.folder / self.model)

    def of(self, peer):
        """Returns the contenders of one framework."""
        if self.arguments.arrangement:
            return [peer.arranged(self.arguments.arrangement)]
        picked = self.pick(peer)
        if picked is None:
            return []
        if self.arguments.quick:
            return [peer.arranged(picked[which]) for which in ("winner", "second") if picked[which]]
        found = [peer.arranged(picked["winner"])]
        if picked["fastest"] != picked["winner"] and not picked["is_fastest_a_model"]:
            found.append(peer.arranged(picked["fastest"], is_upper_bound=True))
        if self.entry["targets"] and self.entry["trains"]:
            found += self.with_best_mini_batch(peer, picked)
        return found

    def pick(self, peer, *more):
        """Returns the answer of the peer's `pick`, or None if it fails or no arrangement that trains one model runs."""
        comparison = self.comparison
        options = [*pick_options(self.arguments, self.model, peer.name), *more]
        say(f"{self.model}: {peer.name}'s arrangements, one after another")
        self.entry["commands"].append(readable(peer.words("pick", *options)))
        picked = comparison.guarded(
            f"{self.model}: {peer.name}'s arrangements", peer.pick, options, comparison.seconds_left
        )
        if picked is None:
            return None
        comparison.result["versions"].update(peer.versions)
        if picked["winner"] is None:
            comparison.skip(f"{self.model}: {peer.name}: no arrangement that trains one model ran; see {peer.log.path}")
            return None
        results = {one["name"]: one for one in picked["results"]}
        picked["framework"] = peer.name
        picked["is_fastest_a_model"] = results[picked["fastest"]]["trains_one_model"]
        self.entry["picked"].append(picked)
        comparison.save()
        return picked

    def with_best_mini_batch(self, peer, picked):
        """Returns the peer with the mini-batch that reaches the highest target first with one seed, as Crossbow's
        authors chose it. The arrangement is picked again. The contender with the job's mini-batch also competes."""
        results = {one["name"]: one for one in picked["results"]}
        usual = results[picked["winner"]]["got"]["mini_batch"]
        tried = []
        for size in (size for size in self.arguments.mini_batches if size != usual):
            among = [word for name in picked["best_of_divisions"] for word in ("--among", name)]
            again = self.pick(peer, "--mini-batch", str(size), *among)
            if again is not None:
                contender = peer.arranged(again["winner"], mini_batch=size)
                tried.append((contender, self.tried(contender, size)))
        self.entry["mini_batches"] += [one for _, one in tried]
        ending = [pair for pair in tried if pair[1]["seconds"] is not None]
        if not ending:
            if tried:
                self.comparison.skip(f"{self.model}: {peer.name} with a larger mini-batch: none reached the target")
            return []
        best, chosen = min(ending, key=lambda pair: pair[1]["seconds"])
        chosen["is_chosen"] = True
        return [best]

    def tried(self, contender, size):
        """Trains once to the target."""
        comparison, seed, target = self.comparison, self.arguments.seeds[0], max(self.entry["targets"])
        say(f"{self.model}: {contender.name} trains to {100 * target:g} %, seed {seed}, to choose the mini-batch")
        self.entry["commands"].append(readable(contender.training(target, seed, self.arguments.max_epochs)))
        what = f"{self.model}: {contender.name}, seed {seed}, to choose the mini-batch"
        run = comparison.guarded(
            what, contender.train, target, seed, self.arguments.max_epochs, comparison.seconds_left
        )
        hit = run and reached(target, run)
        return {
            "contender": contender.name,
            "mini_batch": size,
            "seed": seed,
            "outcome": run["outcome"] if run else "died",
            "epochs": hit[0] if hit else None,
            "seconds": hit[1] if hit else None,
            "is_chosen": False,
        }
