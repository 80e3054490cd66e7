"""The fixpoint engine: what runs when, what waits for what, and when waiting is over.

There are things that depend on each other, and nobody knows all of them beforehand: some bring others into being. Each looks
for itself at what it needs, and says what it lacks. The engine decides who looks when; and once nobody can bring anything any
more, it knows so from the structure, not from a clock, and tells those who still wait. The live daemon steps it by hand
(:mod:`wharfinger.runtime.scheduler.machine`), plans run it to its end (`converge`); it knows neither packages nor clusters.

*Vocabulary.* An *id* names a node or data, there or not. A *node* has a *body*, which a driver runs when the engine says so
(Dispatch), one *run* after the other, never two at once. A body *ends* (Terminal, Noop, DependencyFailed, Crashed), and then
stands by its result and by what it *reads*; or it *blocks* on what it *lacks*, and is *parked* on that; or it waits for the world
*outside*. Only a Terminal carries *emissions*: ids with a digest of their content. One with another digest than before is an
*arrival*, and so is what comes from outside. An arrival, a result that differs, and a removal are *changes*.

*Who runs.* A node runs when it is new. After that it runs again

* charged: when its own content arrives; when something changes that it reads, having ended; when it is *swept* (below) and its
  Terminals brought anything about since it was last charged;
* free: when it was asked to; when what it lacks changes or ends a run; when what it waits for outside comes, or something changes
  that it reads meanwhile; when it is swept otherwise; when it is picked at a fixpoint.

Causes meet in one run. Whether one came during a run is asked of *stamps*: of every id when it last changed and last ended a
run, of every run when it began, all of one clock. A run with a later cause is *overtaken*: what it emitted stands, its result is
published to nobody, and the node runs again without having been done. With `Rules.budget` charges spent, a node is *exhausted*
instead of charged; so is one that would be created deeper than `Rules.depth`. It does not run again before the episode is over:
never where the engine drains, at the next rest (nothing is to run, nothing runs) where it does not.

*Fixpoints*, where `Rules.drain` says so. When nothing is to run, nothing runs and nobody waits outside, whoever asked for that is
swept, if anything arrived since it last ran. Else the parked are asked harder, each connected component by itself, see
:mod:`wharfinger.runtime.fixpoint.levels`; whoever blocks at the last level is unresolved, which ends it. Else it has converged.

*Why it ends.* Assumed is:

========================  ====================================================================================================
every run is reported     once, whatever happens in the body: `test_every_run_is_reported_once`
bodies end                and one run emits finitely much: `test_a_body_that_does_not_end_holds_up_judgement_and_nobody_else`
blocking brings nothing   about, by construction: `test_blocking_brings_nothing_about`
only bodies make          and what they make is in their Terminals; all else is the world outside, and counts as that:
                          `test_what_is_made_beside_the_outcome_is_the_world_outside`
the world outside ends    it says finitely much, and answers whoever waits for it: `test_the_world_outside_costs_what_it_says`
========================  ====================================================================================================

Not assumed is that bodies are deterministic, that a node never emits itself, that there are no cycles, that what bodies call
lacking is not there, or that creation ends: `test_nothing_is_assumed_of_what_bodies_say`. Now, in one episode:

1. *Terminals with an arrival are finitely many for each node.* After an end, a node runs next because it is charged, was asked,
   or is swept; after one that brought something about, a sweep is charged. So between two of them lies a charge or an asking:
   there are at most 1 + budget + askings.
2. *So are nodes.* Those at depth 0 are seeded or come from outside. Each of those at depth d + 1 was an arrival from one at depth
   d; of these there are finitely many (1). None runs below `Rules.depth`.
3. *So are arrivals, and sweeps:* a node is swept only if something arrived since its last run began.
4. *So are ends,* by bodies or by the engine: after each, a node runs again only charged, asked, or swept. Exhausted it is once.
5. *So are free runs.* A node that is woken, or runs again without being parked, does so for a change or an end that is later than
   its last run; there are finitely many of these (3, 4, the world outside). While it is not woken, a parked node is picked twice
   at most, then it is unresolved; and every fixpoint picks or ends somebody, or is the last.
6. So there are finitely many runs, and each is reported. After the last one it has converged, or an answer is owed from outside.

A verdict is no guess: at a fixpoint no body runs that could report anything, so nothing that is lacked can come but by whoever is
picked now, or by the world outside; if it does after all, it is a change, and whoever ended for the lack of it runs again.

*Cost.* An event costs O(log n) for each id that its node names and for each node that it wakes, a fixpoint O(p log p) for the p
nodes parked since the last one; neither looks at any other. Where everything can be satisfied, a node runs once, and once more
for each time that something came which it lacked.
"""
