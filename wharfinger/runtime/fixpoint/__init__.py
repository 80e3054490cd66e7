"""The fixpoint engine, which decides when each node runs, and detects when a node waits for something that will not appear.

Nodes depend on each other, and not all nodes are known beforehand: some nodes create other nodes. The body of a node looks up
what it needs, and reports the ids that it lacks. The engine decides which body runs when. From the state of its nodes, without
any timeout, the engine detects that no body can produce anything more. Then it runs the waiting nodes again at a stricter
level. This level tells the bodies that the lacked ids will not appear. The daemon steps the engine event by event
(:mod:`wharfinger.runtime.scheduler.machine`); plans run it to its end (`converge`). The engine knows neither packages nor
clusters.

*Vocabulary.* An *id* names a node or data, whether the node or the data is present or not. A *node* has a *body*, which a
driver runs when the engine requests it (Dispatch): one *run* after the other, never two at once. A run of a body has one of
three outcomes. It *ends* (Terminal, Noop, DependencyFailed, Crashed), and its result is then valid until an id that it *reads*
changes. Or it *blocks* on the ids that it *lacks*, and the node is *parked* on these ids. Or it waits for the world *outside*,
which is everything except the bodies. Only a Terminal has *emissions*: ids with a digest of their content. An emission, or an
id from outside, is an *arrival* if its digest differs from the former digest. An arrival, a result that differs from the former
one, and a removal are *changes*.

*Which nodes run.* A new node runs. Each later run has a cause, which is either charged to the node's budget or free. Three
causes are charged:

* the node's own content arrives;
* the node has ended, and an id that it reads changes;
* the node is *swept* (see below), and its Terminals produced an arrival since it was last charged.

All other causes are free:

* a run is requested;
* an id that the node lacks changes, or the node of that id ends a run;
* the node waits for the world outside, and the answer arrives, or an id that it reads changes;
* the node is swept, and its Terminals produced no arrival since it was last charged;
* the node is parked, and is picked at a fixpoint to run at a stricter level.

Several causes may share one run. *Stamps*, which all come from one clock, show whether a cause arose during a run: an id has
the stamp of its last change, and the stamp of the last time that a run of its node ended. A run has the stamp of its beginning.
A run is *overtaken* if a cause for another run of its node has a later stamp. Then the emissions of the overtaken run are
published, but its result is not, and the node runs again without having ended.

A node that would be charged more than `Rules.budget` times is *exhausted* instead; so is a node whose chain of creators would
be longer than `Rules.depth`. An exhausted node does not run again before the *episode* is over. If `Rules.drain` is set, the
episode is never over. Otherwise the episode is over as soon as no node runs or is to run.

*Fixpoints*, if `Rules.drain` is set. As soon as no node runs, is to run, or waits for the world outside, the engine *sweeps*
the nodes that requested this (``sweep`` of `Finished`): each of them runs again if anything arrived since its last run. If no
swept node runs again, the parked nodes are run at stricter levels, each connected component separately
(:mod:`wharfinger.runtime.fixpoint.levels`). A node that blocks even at the strictest level ends as unresolved. If no node is
parked, the engine has converged.

*Why the engine converges.* The proof relies on the following assumptions. Each is followed by its test in
`tests/runtime/fixpoint/test_assumptions.py`:

* Every run is reported exactly once, whatever happens in the body (`test_every_run_is_reported_once`).
* Every run of a body ends, and emits finitely many ids (`test_an_endless_body_delays_judgement_only`).
* A run that blocks creates nothing, because its outcome has no emissions (`test_blocking_creates_nothing`).
* A body creates ids by the emissions of its Terminals. Everything that it creates in another way counts as a report from
  outside (`test_creations_beside_the_outcome_count_as_outside`).
* The world outside reports finitely many events, and answers each node that waits for it
  (`test_runs_for_the_outside_are_bounded_by_its_reports`).

The proof does not assume that bodies are deterministic, that a node never emits itself, that there are no cycles, that a lacked
id is absent, or that nodes stop creating other nodes (`test_unruly_bodies_still_converge`). The proof, for one episode:

1. *Each node has finitely many Terminals with an arrival.* After a node has ended, its next run is charged, or requested, or
   caused by a sweep, which is charged if the node has produced an arrival. So there is a charge or a request between two
   Terminals with an arrival, and a node has at most 1 + budget + requests such Terminals.
2. *There are finitely many nodes.* Nodes at depth 0 are seeded or come from outside. Each node at depth d + 1 was an arrival
   from a node at depth d, and the nodes at depth d produce finitely many arrivals (1). No node deeper than `Rules.depth` runs.
3. *There are finitely many arrivals and sweeps:* a node is swept only if something arrived since its last run began.
4. *There are finitely many ends,* by bodies or by the engine: after an end, the node runs again only if it is charged,
   requested, or swept. It is exhausted at most once.
5. *There are finitely many free runs.* If a node is woken, or runs again without being parked, the cause is a change or an end
   that is later than the node's last run, and there are finitely many changes and ends (3, 4, the world outside). A parked
   node that is not woken is picked at most twice, and then ends as unresolved. Every fixpoint except the last picks or ends a
   node.
6. So there are finitely many runs, and each run is reported. After the last run the engine has converged, or an answer from
   outside is still missing.

At a fixpoint, no body runs that could still report anything. So a lacked id can appear only through a node that is picked now,
or from the world outside. If the id does appear, that is a change, and each node that ended because it lacked the id runs
again.

*Cost.* An event costs O(log n) for each id that its node names and for each node that it wakes; a fixpoint costs O(p log p)
for the p nodes that were parked since the last fixpoint. Other nodes cost nothing. If no node stays unresolved, a node runs
once, and once more each time that a lacked id appears.
"""
